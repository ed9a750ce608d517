"""The tests of LangGraph's PostgreSQL store, on ours: synchronous."""

import pytest

from tests.peers.suites import cases_of, load, require

require("langgraph.store.postgres")

from agents.adapters.langgraph import PreferenceStore  # noqa: E402

STAND_INS = {"DEFAULT_URI": "", "VECTOR_TYPES": ["vector"], "CharacterEmbeddings": object}
upstream = load("langgraph-checkpoint-postgres", "tests/test_store.py", conftest=STAND_INS)
globals().update(
    cases_of(
        upstream,
        about_theirs=(
            # They build stores with an index of vectors.
            "test_vector_store_initialization", "test_vector_insert_with_auto_embedding",
            "test_vector_update_with_embedding", "test_vector_search_with_filters",
            "test_vector_search_pagination", "test_vector_search_edge_cases",
            "test_embed_with_path_sync", "test_embed_with_path_operation_config", "test_scores",
            "test_non_ascii",
            # They write SQL to its table, since it shows what has expired until it is swept.
            "test_omit_expired_filters_read_paths",
            "test_omit_expired_disabled_preserves_expired_rows",
            "test_omit_expired_refresh_ttl_only_refreshes_live_rows",
            "test_omit_expired_search_pagination",
            # They ask how it builds its SQL.
            "test_escape_like_literal", "test_namespace_match_pattern", "test_nonnull_migrations",
        ),
        not_offered={"test_store_ttl": "Reading extends no deadline here."},
    )
)  # fmt: skip


@pytest.fixture
def store(caller):
    return PreferenceStore(caller)
