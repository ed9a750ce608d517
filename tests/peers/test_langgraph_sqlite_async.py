"""The tests of LangGraph's SQLite store, on ours: asynchronous."""

from contextlib import asynccontextmanager

import pytest

from tests.peers.suites import cases_of, load, require

require("langgraph.store.sqlite", "sqlite_vec")

from agents.adapters.langgraph import PreferenceStore  # noqa: E402

upstream = load(
    "langgraph-checkpoint-sqlite", "tests/test_async_store.py",
    test_store={"CharacterEmbeddings": object},
)  # fmt: skip
globals().update(
    cases_of(
        upstream,
        about_theirs=(
            "test_vector_store_initialization", "test_vector_insert_with_auto_embedding",
            "test_vector_update_with_embedding", "test_vector_search_with_filters",
            "test_vector_search_pagination", "test_vector_search_edge_cases",
            "test_embed_with_path",
        ),
    )
)  # fmt: skip


@pytest.fixture
def store(caller, closing, monkeypatch):
    """Stands for a store with an index too, for tests that ask nothing of the index."""
    store = PreferenceStore(caller)

    @asynccontextmanager
    async def create(*_arguments, **_more):
        yield store

    monkeypatch.setattr(upstream, "create_vector_store", create)
    return store


@pytest.fixture
def fake_embeddings(store):
    return None
