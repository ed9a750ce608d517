"""What a person sees: all that is held, who wrote and read it, and what was done about them."""

from typing import Any

import pytest

from privacy.holders import stores
from tests.http.client import API
from tests.http.conftest import Clock, World

WHY = {"reason": "asked for help"}


def held(who: API, key: str, subject: str = "me") -> Any:
    """Return one record of all that is held."""
    records = who.get(f"subjects/{subject}/data").json["preferences"]
    return next(one for one in records if one["key"] == key)


def test_a_record_says_what_for_under_which_notice_and_for_how_long(world: World) -> None:
    world.alice.give("me", "support")
    world.alice.write("me", "tone", ttl_seconds=60)
    world.alice.write("me", "k")
    tone, k = held(world.alice, "tone"), held(world.alice, "k")
    assert (tone["purpose"], tone["notice_version"]) == ("support", 1)
    assert tone["retention"] == {"until": tone["expires_at"], "rule": "deadline"}
    assert (k["purpose"], k["notice_version"]) == ("service", None)
    assert k["retention"] == {"until": None, "rule": "until_deleted"}


def test_a_record_says_who_wrote_and_who_read_it(world: World, frozen: Clock) -> None:
    world.alice.write("me", "k")
    frozen.move(1)
    world.agent.write("user::alice", "k", query={"mode": "upsert"})
    world.agent.read("user::alice", "k")
    world.operator.read("user::alice", "k", query=WHY)
    record = held(world.alice, "k")
    assert [(one["actor"], one["times"]) for one in record["written_by"]] == [
        ("agent", 1),
        ("alice", 1),
    ]
    assert record["written_by"][0]["last_at"] == record["updated_at"]
    today = frozen.now.date().isoformat()
    assert record["read_by"] == [
        {"actor": "agent", "last_day": today, "days": 1},
        {"actor": "operator", "last_day": today, "days": 1},
    ]


def test_what_a_person_holds_besides_is_there(world: World) -> None:
    world.alice.write("me", "k", headers={"Idempotency-Key": "once"})
    assert world.bound.read("me", "k").status == 200
    data = world.alice.get("subjects/me/data").json
    told = {store.name for _, store in stores()} - {"events", "readings"}
    assert set(data) == {"subject", "objections", "holds", *told}
    (identity,) = data["identity"]
    assert (identity["subject"], identity["login"]) == ("alice", "alice")
    assert data["roles"] == [{"role": "member"}]
    assert [one["on_behalf_of"] for one in data["tokens"]] == [None, "alice"]
    (repeat,) = data["repeats"]
    assert repeat["answer"]["status"] == 201
    assert world.alice.token not in world.alice.get("subjects/me/data").content.decode()


def test_a_decision_says_what_was_shown_and_how_it_is_known(world: World) -> None:
    world.operator.give("alice", "support", locale="de", evidence="by telephone")
    world.alice.withdraw("me", "support")
    (support,) = [
        one
        for one in world.alice.get("subjects/me/data").json["consents"]
        if one["purpose"] == "support"
    ]
    given, withdrawn = support["history"]
    assert given["notice"] == "Wir merken uns, wie Sie Antworten mögen."
    assert given["evidence"] == "by telephone"
    assert (withdrawn["decision"], withdrawn["notice"]) == ("withdrawn", None)


def test_all_is_seen_after_a_withdrawal(world: World) -> None:
    world.alice.give("me", "support")
    world.alice.write("me", "tone", "loud")
    world.alice.withdraw("me", "support")
    assert world.alice.read("me", "tone").status == 403
    assert held(world.alice, "tone")["value"] == "loud"


def test_nothing_of_anybody_else_is_there(world: World) -> None:
    world.bob.write("me", "k", "bobs-own-value")
    world.bob.give("me", "support")
    world.agent.read("user::bob", "k")
    world.alice.write("me", "k")
    for path in ("data", "activity"):
        assert b"bob" not in world.alice.get(f"subjects/me/{path}").content


# Activity ------------------------------------------------------------------------------------


def acts(who: API, subject: str = "me", **query: Any) -> list[tuple[str, str, str | None]]:
    answer = who.get(f"subjects/{subject}/activity", query=query)
    assert answer.status == 200
    return [(one["action"], one["actor"], one["target"]["key"]) for one in answer.json["results"]]


def test_activity_tells_who_read_or_changed_what(world: World, frozen: Clock) -> None:
    world.alice.give("me", "support")
    for act in (
        lambda: world.alice.write("me", "tone", "loud-as-a-marker"),
        lambda: world.agent.read("user::alice", "tone"),
        lambda: acts(world.alice),  # one's own reads leave nothing, and write what waits
        lambda: world.operator.read("user::alice", "tone", query=WHY),
        lambda: acts(world.alice),
        lambda: world.alice.forget("me", "tone"),
    ):
        frozen.move(1)
        act()
    assert acts(world.alice) == [
        ("preference.deleted", "alice", "tone"),
        ("data.disclosed", "operator", "tone"),
        ("preference.created", "alice", "tone"),
        ("consent.given", "alice", None),
        ("subject.changed", "system", None),
        ("subject.created", "system", None),
    ]


def test_a_reading_stands_among_them_while_its_record_does(world: World, frozen: Clock) -> None:
    world.alice.write("me", "k", "loud-as-a-marker")
    frozen.move(1)
    world.agent.read("user::alice", "k")
    acts(world.alice)
    frozen.move(1)
    world.alice.write("me", "j")
    assert acts(world.alice)[:3] == [
        ("preference.created", "alice", "j"),
        ("preference.read", "agent", "k"),
        ("preference.created", "alice", "k"),
    ]
    answer = world.alice.get("subjects/me/activity")
    assert b"loud-as-a-marker" not in answer.content
    read = answer.json["results"][1]
    assert (read["target"]["scope"], read["purpose"]) == ("user::alice", "service")


def test_why_somebody_looked_is_told_and_refused_attempts_are_not(world: World) -> None:
    world.alice.write("me", "k")
    assert world.bob.read("user::alice", "k").status == 403
    assert world.operator.get("subjects/alice/data", query=WHY).status == 200
    newest = world.alice.get("subjects/me/activity").json["results"]
    disclosed = next(one for one in newest if one["action"] == "data.disclosed")
    assert (disclosed["actor"], disclosed["reason"]) == ("operator", "asked for help")
    assert "access.denied" not in {one["action"] for one in newest}


def test_pages_hold_each_exactly_once_while_others_come(world: World) -> None:
    for number in range(10):
        world.alice.write("me", f"k{number}")
    world.agent.listing(scope="user::alice")
    whole = acts(world.alice, limit=200)
    assert len(whole) == 22
    found: list[Any] = []
    path = "subjects/me/activity?limit=3"
    while path:
        answer = world.alice.get(path)
        assert answer.json["previous"] is None
        found += [
            (one["action"], one["actor"], one["target"]["key"]) for one in answer.json["results"]
        ]
        world.alice.write("me", f"later{len(found)}")
        world.agent.listing(scope="user::alice")
        path = (answer.json["next"] or "").partition("testserver")[2]
    assert found == whole


def test_a_cursor_of_another_person_is_none(world: World) -> None:
    for who in (world.alice, world.bob):
        who.write("me", "k")
        who.write("me", "j")
    cursor = world.alice.get("subjects/me/activity?limit=1").json["next"].partition("?")[2]
    answer = world.bob.get(f"subjects/me/activity?{cursor}")
    # `me` is one address for everyone: the position means the same, and shows one's own alone.
    assert answer.status == 200
    assert b"alice" not in answer.content
    assert world.operator.get(f"subjects/alice/activity?{cursor}", query=None).status == 400


def test_an_operator_gives_a_reason_and_leaves_an_event(world: World) -> None:
    world.alice.write("me", "k")
    assert world.operator.get("subjects/alice/activity").outcome == (400, "validation_error")
    assert acts(world.operator, "alice", **WHY)
    (event,) = world.events("data.disclosed")
    assert (event.actor, event.subject, event.reason) == ("operator", "alice", "asked for help")


@pytest.mark.parametrize("path", ["data", "activity"])
def test_an_unknown_person_is_known_with_nothing(world: World, path: str) -> None:
    answer = world.operator.get(f"subjects/nobody/{path}", query=WHY)
    assert answer.status == 200
    if path == "activity":
        # The look itself is the first thing that was ever done about this name.
        assert [one["action"] for one in answer.json["results"]] in ([], ["data.disclosed"])
    else:
        assert answer.json["preferences"] == answer.json["identity"] == []
