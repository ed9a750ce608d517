"""The tests of LangGraph's SQLite store, on ours: filters, and names that look like patterns."""

from contextlib import contextmanager

import pytest

from tests.peers.suites import cases_of, load, require

require("langgraph.store.sqlite", "sqlite_vec")

from agents.adapters.langgraph import PreferenceStore  # noqa: E402
from tests.http.conftest import World  # noqa: E402
from tests.peers.conftest import caller_of  # noqa: E402

upstream = load("langgraph-checkpoint-sqlite", "tests/test_store.py")


@contextmanager
def create_store(*_arguments, **_more):
    """Stand for a store with an index, for tests that ask nothing of the index."""
    yield PreferenceStore(caller_of(World(), "alice"))


upstream.create_vector_store = create_store
globals().update(
    cases_of(
        upstream,
        about_theirs=(
            "test_vector_store_initialization", "test_vector_insert_with_auto_embedding",
            "test_vector_update_with_embedding", "test_vector_search_with_filters",
            "test_vector_search_pagination", "test_vector_search_edge_cases",
            "test_embed_with_path", "test_embed_with_path_operation_config", "test_scores",
            "test_non_ascii",
            "test_escape_glob_literal", "test_namespace_match_pattern", "test_nonnull_migrations",
            "test_list_namespaces_prefix_uses_indexable_condition",
        ),
    )
)  # fmt: skip


@pytest.fixture
def store(caller):
    return PreferenceStore(caller)


@pytest.fixture
def fake_embeddings():
    return None
