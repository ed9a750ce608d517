"""The words beside the records: those of old records, and plans that find them by an index."""

import importlib
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.db import connection

from audit.actors import SYSTEM
from tenants.units import unit_of_work
from tests.http.conftest import World

BACKFILL = "preferences.migrations.0010_words_of_old_records"


@pytest.fixture
def world() -> World:
    return World()


def words_of(world: World) -> dict[str, str]:
    with unit_of_work(tenant_id=world.tenant.pk, actor=SYSTEM), connection.cursor() as cursor:
        cursor.execute(
            "SELECT p.key, w.words::text FROM consentful_preference_words w"
            " JOIN consentful_preference p ON p.tenant_id = w.tenant_id AND p.id = w.preference_id"
            " WHERE w.tenant_id = %s",
            [world.tenant.pk],
        )
        return dict(cursor.fetchall())


def test_the_words_of_old_records_are_those_of_new_ones(
    world: World, superuser: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    migration = importlib.import_module(BACKFILL)
    monkeypatch.setattr(migration, "BATCH", 2)
    for number in range(5):
        world.operator.write("repo::acme/checkout", f"k{number}", f"word number{number}")
    world.operator.write("project::x", "number", 3)
    world.alice.write("me", "own", ["a", {"b": "c"}])
    written = world.alice.write("me", "old", "text")
    body = {"scope": "me", "key": "old", "revision": written.revision}
    assert world.alice.post("preferences/archive", body).status == 200
    before = words_of(world)
    assert sorted(before) == ["k0", "k1", "k2", "k3", "k4", "own"]
    superuser.execute("SET session_replication_role = replica")
    superuser.execute(
        "DELETE FROM consentful_preference_words WHERE tenant_id = %s", [world.tenant.pk]
    )
    assert words_of(world) == {}
    with connection.as_owner():
        migration.note_words(None, SimpleNamespace(connection=connection))
    assert words_of(world) == before


def test_an_index_finds_the_words(world: World, superuser: psycopg.Connection[Any]) -> None:
    """Under the policy of the tenants none would: hence the function of the owner."""
    superuser.execute("SET enable_seqscan = off")
    plan = superuser.execute(
        "EXPLAIN SELECT w.preference_id FROM consentful_preference_words w"
        " WHERE w.words @@ (websearch_to_tsquery('simple', 'x') && 'y'::tsquery) AND w.tenant_id = 1"
        " ORDER BY w.preference_id + 0 DESC LIMIT 2000"
    ).fetchall()
    assert any("consentful_words_found" in line for (line,) in plan)


def test_no_place_is_told_by_its_words(world: World) -> None:
    world.alice.write("me", "k", "text")
    (words,) = words_of(world).values()
    assert "alice" not in words
    assert "user" not in words


def test_words_follow_their_value_through_every_change(world: World) -> None:
    def replaced(value: object, revision: str) -> str:
        answer = world.alice.write("me", "k", value, revision=revision)
        assert answer.status == 200
        return answer.revision

    revision = world.alice.write("me", "k", 1).revision
    assert words_of(world) == {}
    revision = replaced("green tea", revision)
    assert "'green'" in words_of(world)["k"]
    revision = replaced(["black", 3], revision)
    assert "'black'" in words_of(world)["k"]
    assert "green" not in words_of(world)["k"]
    revision = replaced([3], revision)
    assert words_of(world) == {}
    revision = replaced("white", revision)
    revision = replaced("x" * 9000, revision)
    assert words_of(world) == {}
    revision = replaced("white", revision)
    body = {"scope": "me", "key": "k", "revision": revision}
    archived = world.alice.post("preferences/archive", body)
    assert words_of(world) == {}
    body = {"scope": "me", "key": "k", "revision": archived.json["revision"]}
    assert world.alice.post("preferences/restore", body).status == 200
    assert "'white'" in words_of(world)["k"]


def test_words_that_stay_the_same_are_not_written_again(
    world: World, superuser: psycopg.Connection[Any]
) -> None:
    def version() -> object:
        return superuser.execute(
            "SELECT w.xmin, w.ctid FROM consentful_preference_words w WHERE w.tenant_id = %s",
            [world.tenant.pk],
        ).fetchall()

    written = world.alice.write("me", "k", {"note": "green tea", "cups": 1})
    before = version()
    more = world.alice.write("me", "k", {"note": "green tea", "cups": 2}, revision=written.revision)
    assert (more.status, version()) == (200, before)
    world.alice.write("me", "k", {"note": "black tea", "cups": 2}, revision=more.revision)
    assert version() != before


def test_a_value_with_a_blank_before_it_is_searched_and_replaced(
    world: World, superuser: psycopg.Connection[Any]
) -> None:
    """JSON keeps its blanks: plain SQL can store one that the backfill reads as any other."""
    world.alice.write("me", "k", "green")
    superuser.execute(
        "UPDATE consentful_preference SET value = ' \"green\"' WHERE tenant_id = %s",
        [world.tenant.pk],
    )
    migration = importlib.import_module(BACKFILL)
    migration.note_words(None, SimpleNamespace(connection=superuser))
    found = superuser.execute(
        "SELECT revision FROM consentful_preference WHERE tenant_id = %s", [world.tenant.pk]
    ).fetchone()
    assert found is not None
    answer = world.alice.write("me", "k", "black", revision=found[0])
    assert answer.status == 200
    assert "'black'" in words_of(world)["k"]
