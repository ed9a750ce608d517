"""Forgetting over HTTP: what goes, what stays, who may ask, and coming back."""

from typing import Any

from tests.http.conftest import World
from tests.trails import prove


def fill(world: World) -> None:
    assert world.alice.give("me", "support").status == 200
    assert world.alice.write("me", "reply_style", "brief").status == 201
    assert world.alice.write("me", "theme", "dark").status == 201


def holders(answer: Any) -> dict[str, Any]:
    return {one["holder"]: one for one in answer.json["holders"]}


def test_everything_goes_and_the_trail_still_verifies(world: World) -> None:
    fill(world)
    answer = world.alice.post("subjects/me/erasures", {})
    assert answer.status == 201, answer
    assert answer.json["status"] == "done"
    found = holders(answer)
    assert (found["preferences"]["status"], found["preferences"]["erased"]) == ("done", 2)
    assert world.alice.get("subjects/me/data").json["preferences"] == []
    again = world.alice.get(f"erasures/{answer.json['id']}")
    assert again.json == answer.json
    prove(world.tenant)


def test_a_forgotten_person_comes_back_with_nothing_of_before(world: World) -> None:
    fill(world)
    assert world.alice.post("subjects/me/erasures", {}).status == 201
    assert world.alice.write("me", "reply_style", "brief").outcome == (403, "consent_required")
    assert world.alice.give("me", "support").status == 200
    assert world.alice.write("me", "reply_style", "brief").status == 201
    assert len(world.alice.get("consents/me/support/history").json["results"]) == 1
    assert len(world.events("tombstone.returned")) == 1
    prove(world.tenant)
