"""The tests of LangGraph's base package, with our store in the place of the one in memory."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.peers.suites import cases_of, load, require

require("langgraph.store.memory", "pytest_mock")

from django.db import connections  # noqa: E402

from agents.adapters.langgraph import PreferenceStore  # noqa: E402
from tests.http.conftest import World  # noqa: E402
from tests.peers.conftest import caller_of  # noqa: E402

upstream = load("langgraph-checkpoint", "tests/test_store.py")
VECTORS = "Vector search is not offered."
NOT_OFFERED = dict.fromkeys(
    (
        "test_vector_search_scores_every_item", "test_vector_store_initialization",
        "test_vector_insert_with_auto_embedding", "test_async_vector_insert_with_auto_embedding",
        "test_vector_update_with_embedding", "test_async_vector_update_with_embedding",
        "test_vector_search_with_filters", "test_async_vector_search_with_filters",
        "test_async_batched_vector_search_concurrent", "test_vector_search_pagination",
        "test_async_vector_search_pagination", "test_embed_with_path", "test_non_ascii",
    ),
    VECTORS,
)  # fmt: skip


class Store(PreferenceStore):
    """Our store, which the tests make without arguments and call from inside their event loop."""

    waiting = []

    def __init__(self, **more):
        super().__init__(self.waiting.pop(), **more)

    def batch(self, ops):
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return super().batch(ops)
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(self.batch_and_close, list(ops)).result()

    def batch_and_close(self, ops):
        try:
            return super().batch(ops)
        finally:
            connections.close_all()


upstream.InMemoryStore = Store
globals().update(cases_of(upstream, not_offered=NOT_OFFERED))


@pytest.fixture(scope="module")
def untouched():
    """A caller whose tenant nothing is stored in."""
    return caller_of(World(), "alice")


@pytest.fixture(autouse=True)
def stores(request, untouched, closing):
    """Callers of fresh tenants, made before an event loop runs; one will do for what is refused."""
    if "invalid" in request.node.name:
        Store.waiting[:] = [untouched]
    else:
        Store.waiting[:] = [caller_of(World(), "alice") for _ in range(2)]


@pytest.fixture
def fake_embeddings():
    return upstream.CharacterEmbeddings(dims=500)
