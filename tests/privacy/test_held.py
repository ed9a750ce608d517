"""A record under a legal hold: told as held, out of reach meanwhile, gone when the hold ends."""

from datetime import timedelta
from typing import Any

import pytest

from audit.actors import SYSTEM
from preferences.models import Preference
from privacy.jobs import run_erasure
from tenants.times import format_time
from tenants.units import unit_of_work
from tests.http.conftest import Clock, World
from tests.trails import prove

WHY = {"reason": "case closed"}


@pytest.fixture
def filled(world: World) -> World:
    assert world.alice.give("me", "support").status == 200
    assert world.alice.write("me", "tone", "warm").status == 201
    assert world.alice.write("me", "theme", "dark").status == 201
    return world


def hold(world: World, **members: Any) -> None:
    answer = world.operator.put("subjects/alice/holds/tone", {"reason": "case 12", **members})
    assert answer.status == 200, answer


def records(answer: Any) -> tuple[str, int, int]:
    (one,) = [one for one in answer.json["holders"] if one["holder"] == "preferences"]
    return one["status"], one["erased"], one["held"]


def keys_told(world: World) -> set[str]:
    """The keys of records that can still be read in the trail."""
    events = world.events()
    return {one.key for one in events if one.record != "definition" and one.key is not None}


def left(world: World) -> list[Preference]:
    with unit_of_work(tenant_id=world.tenant.pk, actor=SYSTEM):
        return list(Preference.objects.filter(tenant=world.tenant))


def test_it_is_held_and_goes_when_the_hold_is_ended_by_hand(filled: World) -> None:
    hold(filled)
    answer = filled.alice.post("subjects/me/erasures", {})
    assert (answer.status, answer.json["status"]) == (201, "pending")
    assert records(answer) == ("held", 1, 1)
    pseudonym = answer.json["pseudonym"]
    (row,) = left(filled)
    assert (row.scope, row.actor) == (f"user::{pseudonym}", pseudonym)
    # Who comes back under the name finds nothing there, and may use the address.
    assert filled.alice.give("me", "support").status == 200
    assert filled.alice.read("me", "tone").outcome == (404, "not_found")
    assert filled.alice.write("me", "tone", "cool").status == 201
    path = f"erasures/{answer.json['id']}"
    run_erasure(answer.json["id"])
    assert records(filled.alice.get(path)) == ("held", 1, 1)
    ended = filled.operator.delete(f"subjects/{pseudonym}/holds/tone", query=WHY)
    assert ended.status == 204, ended
    assert run_erasure(answer.json["id"])
    done = filled.alice.get(path)
    assert (done.json["status"], records(done)) == ("done", ("done", 2, 0))
    # What was written after coming back stays.
    assert [one.scope for one in left(filled)] == ["user::alice"]
    prove(filled.tenant)


def test_it_goes_when_the_hold_ends_by_itself(filled: World, frozen: Clock) -> None:
    hold(filled, until=format_time(frozen.now + timedelta(days=1)))
    answer = filled.operator.post("subjects/alice/erasures", {}, query=WHY)
    assert records(answer) == ("held", 1, 1)
    frozen.move(86_401)
    assert run_erasure(answer.json["id"])
    assert left(filled) == []
    assert keys_told(filled) == set()
    prove(filled.tenant)


def test_by_key_a_held_record_stays_where_it_is_until_then(filled: World) -> None:
    hold(filled)
    answer = filled.alice.post("subjects/me/erasures", {"keys": ["tone", "theme"]})
    assert (answer.json["status"], records(answer)) == ("pending", ("held", 1, 1))
    assert filled.alice.read("me", "tone").json["value"] == "warm"
    ended = filled.operator.delete("subjects/alice/holds/tone", query=WHY)
    assert ended.status == 204
    assert run_erasure(answer.json["id"])
    assert left(filled) == []
    assert filled.alice.get(f"erasures/{answer.json['id']}").json["status"] == "done"
    assert keys_told(filled) == set()
    prove(filled.tenant)
