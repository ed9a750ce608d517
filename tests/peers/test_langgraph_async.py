"""The tests of LangGraph's PostgreSQL store, on ours: asynchronous."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connections

from tests.peers.suites import cases_of, load, require

require("langgraph.store.postgres")

from agents.adapters.langgraph import PreferenceStore  # noqa: E402
from tests.peers.test_langgraph_postgres import STAND_INS  # noqa: E402

upstream = load("langgraph-checkpoint-postgres", "tests/test_async_store.py", conftest=STAND_INS)
globals().update(
    cases_of(
        upstream,
        about_theirs=(
            "test_vector_store_initialization", "test_vector_insert_with_auto_embedding",
            "test_vector_update_with_embedding", "test_vector_search_with_filters",
            "test_vector_search_pagination", "test_vector_search_edge_cases",
            "test_embed_with_path", "test_search_sorting",
            "test_omit_expired_filters_read_paths",
            "test_omit_expired_disabled_preserves_expired_rows",
            "test_omit_expired_refresh_ttl_only_refreshes_live_rows",
            "test_omit_expired_search_pagination",
            # It counts how often its pool is asked.
            "test_abatch_uses_single_pool_checkout",
        ),
        not_offered={"test_store_ttl": "Nothing has to sweep: what has expired is gone at once."},
    )
)  # fmt: skip


class ClosingPool(ThreadPoolExecutor):
    """Threads that close their connections when they are done, as Django asks of everybody's own."""

    def __exit__(self, *fault):
        # Nobody passes before each thread is here.
        barrier = Barrier(self._max_workers)
        for _ in range(self._max_workers):
            self.submit(lambda: (barrier.wait(), connections.close_all()))
        return super().__exit__(*fault)


upstream.ThreadPoolExecutor = ClosingPool


@pytest.fixture
def store(caller, closing):
    return PreferenceStore(caller)
