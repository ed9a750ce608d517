"""What a hold keeps from an erasure is reported, and goes when the hold ends."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from privacy.jobs import run_erasures
from tenants.times import format_time
from tests.http.conftest import Clock, World
from tests.trails import prove

WHY = {"reason": "asked by mail"}


@pytest.fixture
def filled(world: World) -> World:
    for key in ("limited", "theme"):
        assert world.alice.write("me", key, "light" if key == "theme" else 1).status == 201
    return world


def hold(world: World, key: str = "theme", **members: Any) -> None:
    answer = world.operator.put(f"subjects/alice/holds/{key}", {"reason": "case 12", **members})
    assert answer.status == 200


def status_of(world: World, erasure: str) -> tuple[str, str, int]:
    answer = world.owner.get(f"erasures/{erasure}").json
    (found,) = [one for one in answer["holders"] if one["holder"] == "preferences"]
    return answer["status"], found["status"], found["held"]


def left(world: World, superuser: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    return superuser.execute(
        "SELECT scope, key FROM consentful_preference WHERE tenant_id = %s ORDER BY key",
        [world.tenant.pk],
    ).fetchall()


def test_an_erasure_of_keys_leaves_what_is_held(
    filled: World, superuser: psycopg.Connection[Any]
) -> None:
    hold(filled)
    answer = filled.alice.post("subjects/me/erasures", {"keys": ["theme", "limited"]})
    assert answer.status == 201, answer
    erasure = answer.json["id"]
    assert status_of(filled, erasure) == ("pending", "held", 1)
    assert left(filled, superuser) == [("user::alice", "theme")]
    run_erasures()
    assert status_of(filled, erasure) == ("pending", "held", 1)
    filled.operator.delete("subjects/alice/holds/theme", query=WHY)
    run_erasures()
    assert status_of(filled, erasure) == ("done", "done", 0)
    assert left(filled, superuser) == []


def test_a_forgotten_person_is_gone_and_the_record_waits(
    filled: World, superuser: psycopg.Connection[Any], frozen: Clock
) -> None:
    """The name is free at once; what is held stays under the pseudonym until the hold ends."""
    frozen.move(60)
    hold(filled, until=format_time(frozen.now + timedelta(seconds=60)))
    answer = filled.operator.post("subjects/alice/erasures", {}, query=WHY)
    assert answer.status == 201, answer
    erasure = answer.json["id"]
    assert status_of(filled, erasure) == ("pending", "held", 1)
    ((scope, key),) = left(filled, superuser)
    assert (scope.startswith("user::erased-"), key) == (True, "theme")
    frozen.move(59)
    run_erasures()
    assert len(left(filled, superuser)) == 1
    frozen.move(1)
    run_erasures()
    assert status_of(filled, erasure) == ("done", "done", 0)
    assert left(filled, superuser) == []
    prove(filled.tenant)


def test_restrictions_objections_and_holds_are_shown_with_the_data(filled: World) -> None:
    hold(filled)
    filled.alice.put("subjects/me/restrictions/theme", {})
    filled.alice.put("subjects/me/objections/news", {})
    data = filled.alice.get("subjects/me/data").json
    assert [one["key"] for one in data["holds"]] == ["theme"]
    assert [one["key"] for one in data["restrictions"]] == ["theme"]
    (news, _) = data["objections"]
    assert news["status"] == "objected"
    assert [one["decision"] for one in news["history"]] == ["objected"]
