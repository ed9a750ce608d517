"""Legal holds: a held record is neither changed nor deleted, by anybody, until the hold ends."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.core.management import call_command

from audit.actors import SYSTEM
from preferences.holds import held
from preferences.models import Preference
from preferences.services import purge_expired
from tenants.times import format_time
from tenants.units import unit_of_work
from tests.http.client import delete, put, race
from tests.http.conftest import Clock, World

PATH = "subjects/alice/holds/tone"
WHY = {"reason": "case closed"}


@pytest.fixture
def filled(world: World) -> World:
    world.alice.give("me", "support")
    world.alice.write("me", "tone", "warm")
    return world


def hold(world: World, **members: Any) -> Any:
    answer = world.operator.put(PATH, {"reason": "case 12", **members})
    assert answer.status == 200, answer
    return answer.json


def test_nobody_changes_or_deletes_it(filled: World) -> None:
    hold(filled)
    for caller in (filled.alice, filled.agent, filled.operator, filled.owner):
        scope = "me" if caller is filled.alice else "user::alice"
        with filled.denied(2):
            gone = caller.forget(scope, "tone", query=WHY)
            written = caller.write(scope, "tone", "cool", query={"mode": "upsert"})
        assert gone.outcome == written.outcome == (403, "restricted")
        assert "hold" in gone.json["detail"]
    assert filled.alice.read("me", "tone").json["value"] == "warm"
    batch = filled.alice.batch(
        delete("me", "tone"), put("me", "reply_style", "brief"), atomic=False
    )
    assert [one["status"] for one in batch.json["results"]] == [403, 201]


def test_the_person_sees_what_is_held_and_why(filled: World) -> None:
    shown = hold(filled)
    assert filled.alice.get("subjects/me/holds").json["results"] == [shown]
    assert (shown["key"], shown["reason"], shown["until"]) == ("tone", "case 12", None)
    assert [one.reason for one in filled.events("preference.held")] == ["case 12"]


def test_it_ends_by_hand_and_leaves_an_event(filled: World) -> None:
    hold(filled)
    assert filled.operator.delete(PATH).outcome == (400, "validation_error")
    assert filled.operator.delete(PATH, query=WHY).status == 204
    assert filled.operator.delete(PATH, query=WHY).outcome == (404, "not_found")
    (event,) = filled.events("preference.released")
    assert (event.actor, event.key, event.reason) == ("operator", "tone", "case closed")
    assert filled.alice.get("subjects/me/holds").json["results"] == []
    assert filled.alice.forget("me", "tone").status == 204


def test_it_ends_by_itself(filled: World, frozen: Clock) -> None:
    hold(filled, until=format_time(frozen.now + timedelta(seconds=60)))
    frozen.move(59)
    assert filled.alice.forget("me", "tone").outcome == (403, "restricted")
    frozen.move(1)
    assert filled.alice.get("subjects/me/holds").json["results"] == []
    assert filled.alice.forget("me", "tone").status == 204


def test_expiry_does_not_take_it(filled: World, frozen: Clock) -> None:
    """It reads like none, is not purged, and nothing is created over it."""
    assert filled.alice.write("me", "limited", 1, ttl_seconds=60).status == 201
    filled.operator.put("subjects/alice/holds/limited", {"reason": "case 12"})
    frozen.move(61)
    assert filled.alice.read("me", "limited").outcome == (404, "not_found")
    assert purge_expired(tenant_id=filled.tenant.pk, actor=SYSTEM) == 0
    assert filled.alice.write("me", "limited", 2).outcome == (403, "restricted")
    filled.operator.delete("subjects/alice/holds/limited", query=WHY)
    assert purge_expired(tenant_id=filled.tenant.pk, actor=SYSTEM) == 1


def test_a_bulk_deletion_leaves_it(filled: World) -> None:
    filled.alice.write("me", "reply_style", "brief")
    hold(filled)
    call_command("delete_preferences", filled.tenant.slug, "user::alice", "--reason", "asked")
    assert filled.alice.read("me", "tone").status == 200
    assert filled.alice.read("me", "reply_style").status == 404


def test_plain_sql_cannot_take_it_either(filled: World, superuser: psycopg.Connection[Any]) -> None:
    hold(filled)
    for statement in (
        "DELETE FROM consentful_preference WHERE tenant_id = %s",
        "UPDATE consentful_preference SET value = '1' WHERE tenant_id = %s",
        "UPDATE consentful_preference SET held_until = NULL, expires_at = now() WHERE tenant_id = %s",
    ):
        with pytest.raises(psycopg.Error, match="legal hold"):
            superuser.execute(statement, [filled.tenant.pk])
    with unit_of_work(tenant_id=filled.tenant.pk, actor=SYSTEM):
        assert held(Preference.objects.filter(tenant=filled.tenant)).count() == 1


def test_a_hold_waits_for_writes_in_flight(filled: World) -> None:
    writers = [lambda: filled.alice.write("me", "tone", "new", query={"mode": "upsert"})] * 4
    *written, held_now = race([*writers, lambda: filled.operator.put(PATH, {"reason": "case 12"})])
    assert held_now.status == 200
    for answer in written:
        assert answer.code in (None, "restricted")
        if answer.code is None:
            assert answer.json["updated_at"] < held_now.json["since"]


@pytest.mark.parametrize("name", ["alice", "bob", "agent", "bound", "auditor"])
def test_only_an_operator_holds(filled: World, name: str) -> None:
    caller = getattr(filled, name)
    assert caller.put(PATH, {"reason": "x"}).outcome == (403, "permission_denied")
    assert caller.delete(PATH, query=WHY).outcome == (403, "permission_denied")


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ({}, (400, "validation_error")),
        ({"reason": " "}, (400, "validation_error")),
        ({"reason": "x", "until": "2001-01-01T00:00:00Z"}, (400, "validation_error")),
        ({"reason": "x", "until": "soon"}, (400, "validation_error")),
    ],
)
def test_a_hold_says_why_and_ends_ahead(filled: World, body: Any, outcome: Any) -> None:
    assert filled.operator.put(PATH, body).outcome == outcome
    assert filled.operator.put("subjects/alice/holds/gone", {"reason": "x"}).status == 404
