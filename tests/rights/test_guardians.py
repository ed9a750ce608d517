"""Guardians: a login that acts for one person, with a mandate, and both names in the trail."""

from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command

from tenants.times import format_time
from tests.http.conftest import Clock, World
from tests.privacy.dumps import dump, find_lines
from tests.trails import prove

PATH = "subjects/kim/guardians/alice"
MANDATE = {"evidence": "birth certificate 17/2020"}


@pytest.fixture
def guarded(world: World) -> World:
    """Alice is the guardian of kim, who has no login."""
    world.alice.get("whoami")
    world.bob.get("whoami")
    answer = world.operator.put(PATH, MANDATE)
    assert answer.status == 200, answer
    return world


def test_she_decides_and_both_are_named(guarded: World) -> None:
    assert guarded.alice.give("kim", "support").json["status"] == "given"
    assert guarded.alice.withdraw("kim", "support").json["status"] == "withdrawn"
    given, withdrawn = guarded.events("consent.given", "consent.withdrawn")
    for event in (given, withdrawn):
        assert (event.actor, event.on_behalf_of, event.subject) == ("alice", "kim", "kim")
    rows = guarded.alice.get("consents/kim/support/history").json["results"]
    assert [(row["actor"], row["method"]) for row in rows] == [("alice", "guardian")] * 2


def test_her_reading_leaves_an_event(guarded: World) -> None:
    guarded.operator.write("user::kim", "limited", 1)
    data = guarded.alice.get("subjects/kim/data")
    assert [one["key"] for one in data.json["preferences"]] == ["limited"]
    (event,) = guarded.events("data.disclosed")
    assert (event.actor, event.on_behalf_of, event.subject) == ("alice", "kim", "kim")
    (record,) = guarded.alice.get("subjects/kim/data").json["preferences"]
    assert [(one["actor"], one["days"]) for one in record["read_by"]] == [("alice", 1)]


def test_she_restricts_and_objects_too(guarded: World) -> None:
    assert guarded.alice.put("subjects/kim/restriction", {}).json["method"] == "guardian"
    assert guarded.alice.put("subjects/kim/objections/news", {}).json["status"] == "objected"
    assert guarded.operator.write("user::kim", "limited", 1).outcome == (403, "restricted")


def test_she_has_it_forgotten(guarded: World) -> None:
    guarded.operator.write("user::kim", "limited", 1)
    answer = guarded.alice.post("subjects/kim/erasures", {"keys": ["limited"]})
    assert (answer.status, answer.json["status"]) == (201, "done")
    (event,) = guarded.events("preference.deleted")
    assert (event.actor, event.key) == ("alice", None)  # blanked with what was erased
    assert guarded.alice.get("subjects/kim/data").json["preferences"] == []
    assert guarded.bob.post("subjects/kim/erasures", {}).outcome == (403, "permission_denied")


def test_forgetting_the_ward_leaves_the_guardian_as_she_was(
    guarded: World, superuser: psycopg.Connection[Any], tmp_path: Path
) -> None:
    """Her name and her own traces stay; of kim nothing does, not as the one she acted for either."""
    marker = f"zzward{guarded.tenant.slug.replace('-', '')}"
    alice = guarded.alice
    alice.give("me", "support")
    assert alice.write("me", "limited", 1, headers={"Idempotency-Key": "hers"}).status == 201
    assert guarded.operator.put(f"subjects/{marker}/guardians/alice", MANDATE).status == 200
    assert alice.give(marker, "support").status == 200
    assert guarded.operator.write(f"user::{marker}", "theme", "dark").status == 201
    assert alice.put(f"subjects/{marker}/restrictions/theme", {}).status == 200
    answer = alice.post(f"subjects/{marker}/erasures", {}, headers={"Idempotency-Key": "once"})
    assert (answer.status, answer.json["status"]) == (201, "done")
    assert answer.json["method"] == "guardian"
    again = alice.write("me", "limited", 1, headers={"Idempotency-Key": "hers"})
    assert again.headers["Idempotency-Replayed"] == "true"
    assert alice.read("me", "limited").json["provenance"]["actor"] == "alice"
    actors = {one.actor for one in guarded.events("preference.created", "consent.given")}
    assert actors == {"alice", "operator"}
    # What she did last is hers by name, too, for somebody who has none any more.
    (made,) = guarded.events("erasure.created")
    assert (made.actor, made.on_behalf_of) == ("alice", answer.json["pseudonym"])
    dump(tmp_path / "after.sql")
    assert find_lines(marker, tmp_path / "after.sql") == []
    prove(guarded.tenant)


def test_a_ward_who_forgets_itself_takes_nobody_along(guarded: World) -> None:
    assert guarded.operator.put("subjects/bob/guardians/alice", MANDATE).status == 200
    guarded.alice.give("me", "support")
    assert guarded.alice.write("me", "limited", 1).status == 201
    assert guarded.alice.give("bob", "support").status == 200
    assert guarded.bob.post("subjects/me/erasures", {}).status == 201
    assert guarded.alice.read("me", "limited").json["provenance"]["actor"] == "alice"
    assert {one.actor for one in guarded.events("consent.given")} == {"alice"}


def test_she_reads_what_became_of_it(guarded: World) -> None:
    guarded.operator.write("user::kim", "limited", 1)
    made = guarded.alice.post("subjects/kim/erasures", {"keys": ["limited"]}).json["id"]
    assert guarded.alice.get(f"erasures/{made}").json["status"] == "done"
    assert guarded.alice.get(f"erasures/{made}/receipt").status == 200
    assert guarded.bob.get(f"erasures/{made}").outcome == (404, "not_found")


def test_her_export_leaves_an_event_too(guarded: World) -> None:
    assert guarded.alice.get("subjects/kim/export").status == 200
    assert guarded.alice.get("subjects/kim/export", query={"format": "json"}).status == 200
    found = guarded.events("data.disclosed")
    assert [(one.actor, one.on_behalf_of) for one in found] == [("alice", "kim")] * 2


def test_she_is_told_for_whom_she_acts(guarded: World, frozen: Clock) -> None:
    until = format_time(frozen.now + timedelta(seconds=60))
    guarded.operator.put("subjects/ada/guardians/alice", {**MANDATE, "expires_at": until})
    assert guarded.alice.get("whoami").json["wards"] == ["ada", "kim"]
    assert guarded.bob.get("whoami").json["wards"] == []
    assert guarded.operator.get("whoami").json["wards"] == []
    frozen.move(60)
    assert guarded.alice.get("whoami").json["wards"] == ["kim"]


def test_for_that_person_alone(guarded: World) -> None:
    assert guarded.alice.give("bob", "support").outcome == (403, "permission_denied")
    assert guarded.alice.get("subjects/bob/data").outcome == (403, "permission_denied")
    assert guarded.bob.give("kim", "support").outcome == (403, "permission_denied")
    # Her own stays her own.
    assert guarded.alice.give("me", "support").json["status"] == "given"
    (event,) = guarded.events("consent.given")
    assert (event.subject, event.on_behalf_of) == ("alice", None)


def test_values_stay_with_those_who_read_them(guarded: World) -> None:
    """What a mandate opens is a person's rights, not everyday reading and writing."""
    assert guarded.alice.read("user::kim", "limited").outcome == (403, "permission_denied")
    assert guarded.alice.write("user::kim", "limited").outcome == (403, "permission_denied")


def test_it_ends_when_it_ends(guarded: World, frozen: Clock) -> None:
    until = format_time(frozen.now + timedelta(seconds=60))
    guarded.operator.put(PATH, {**MANDATE, "expires_at": until})
    assert guarded.alice.give("kim", "support").status == 200
    frozen.move(60)
    assert guarded.alice.withdraw("kim", "support").outcome == (403, "permission_denied")
    guarded.operator.put(PATH, MANDATE)
    assert guarded.alice.withdraw("kim", "support").status == 200
    assert guarded.operator.delete(PATH, query={"reason": "of age"}).status == 204
    assert guarded.alice.give("kim", "support").outcome == (403, "permission_denied")
    assert guarded.operator.delete(PATH, query={"reason": "of age"}).status == 404


def test_who_may_act_is_shown_and_every_change_is_an_event(guarded: World) -> None:
    shown = {"username": "alice", **MANDATE, "expires_at": None}
    assert guarded.alice.get("subjects/kim/guardians").json["results"] == [shown]
    guarded.operator.delete(PATH, query={"reason": "of age"})
    events = guarded.events("guardianship.created", "guardianship.deleted")
    assert [(one.action, one.actor, one.subject) for one in events] == [
        ("guardianship.created", "operator", "kim"), ("guardianship.deleted", "operator", "kim"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["alice", "bob", "agent", "bound", "auditor"])
def test_nobody_appoints_oneself(world: World, name: str) -> None:
    caller = getattr(world, name)
    answer = caller.put(f"subjects/kim/guardians/{name}", MANDATE)
    assert answer.outcome == (403, "permission_denied")


@pytest.mark.parametrize(
    ("path", "body", "outcome"),
    [
        (PATH, {}, (400, "validation_error")),
        (PATH, {"evidence": " "}, (400, "validation_error")),
        (PATH, {**MANDATE, "expires_at": "2001-01-01T00:00:00Z"}, (400, "validation_error")),
        ("subjects/kim/guardians/nobody-here", MANDATE, (404, "not_found")),
        ("subjects/kim/guardians/a%00b", MANDATE, (404, "not_found")),
        ("subjects/alice/guardians/alice", MANDATE, (400, "validation_error")),
    ],
)
def test_what_makes_no_guardian(world: World, path: str, body: Any, outcome: Any) -> None:
    world.alice.get("whoami")
    assert world.operator.put(path, body).outcome == outcome


def test_a_login_of_another_tenant_is_not_told(world: World) -> None:
    other = World()
    other.personas["zoe"] = None  # type: ignore[assignment]
    from tenants.roles import Role
    from tests.factories import Persona

    Persona(other.tenant, "zoe-of-elsewhere", Role.MEMBER)
    answer = world.operator.put("subjects/kim/guardians/zoe-of-elsewhere", MANDATE)
    assert answer.outcome == (404, "not_found")


def test_an_agent_does_not_become_one(guarded: World) -> None:
    guarded.bound.get("whoami")
    guarded.operator.put("subjects/kim/guardians/bound", MANDATE)
    assert guarded.bound.give("kim", "support").outcome == (403, "permission_denied")


def test_the_commands(world: World) -> None:
    world.alice.get("whoami")
    slug = world.tenant.slug
    call_command("grant_guardian", slug, "alice", "kim", "--evidence", "court order 5")
    assert world.alice.give("kim", "support").status == 200
    call_command("revoke_guardian", slug, "alice", "kim")
    assert world.alice.withdraw("kim", "support").status == 403
    with pytest.raises(CommandError, match="no guardian"):
        call_command("revoke_guardian", slug, "alice", "kim", stderr=StringIO())
