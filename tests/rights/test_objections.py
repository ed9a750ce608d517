"""Objection (GDPR article 21): a purpose that rests on an interest is shut for whoever objects."""

import pytest

from preferences.catalog import load_catalog
from tests.factories import CATALOG
from tests.http.client import race
from tests.http.conftest import World

WHY = {"reason": "asked by phone"}
NEWS = "subjects/me/objections/news"


def test_an_objection_shuts_the_purpose_and_no_other(world: World) -> None:
    assert world.alice.write("me", "news", 1).status == 201
    assert world.alice.write("me", "resale", 1).status == 201
    answer = world.alice.put(NEWS, {})
    assert (answer.status, answer.json["status"]) == (200, "objected")
    with world.denied(2):
        for refused in (
            world.alice.read("me", "news"),
            world.operator.write("user::alice", "news"),
        ):
            assert refused.outcome == (403, "objected")
            assert refused.json["purpose"] == "news"
    listed = world.alice.listing(scope="me").json
    assert [one["key"] for one in listed["results"]] == ["resale"]
    assert listed["withheld"] == [{"purpose": "news", "reason": "objected"}]
    assert world.alice.get("subjects/me/data").json["preferences"][0]["key"] == "news"
    assert world.alice.forget("me", "news").status == 204


def test_taken_back_it_is_as_it_was(world: World) -> None:
    world.alice.write("me", "news", 1)
    world.alice.put(NEWS, {})
    assert world.alice.delete(NEWS).status == 204
    assert world.alice.read("me", "news").status == 200
    assert world.alice.delete(NEWS).outcome == (404, "not_found")
    assert [one.action for one in world.events("consent.objected", "consent.objection_lifted")] == [
        "consent.objected", "consent.objection_lifted",
    ]  # fmt: skip
    history = world.alice.get("consents/me/news/history").json["results"]
    assert [one["decision"] for one in history] == ["objected", "objection_lifted"]


def test_where_a_person_stands(world: World) -> None:
    before = world.alice.get("subjects/me/objections").json["results"]
    assert [(one["purpose"], one["status"]) for one in before] == [
        ("news", "none"), ("resale", "none"),
    ]  # fmt: skip
    stand = world.alice.put(NEWS, {}).json
    assert world.alice.put(NEWS, {}).json == stand
    assert world.alice.get("subjects/me/objections").json["results"][0] == stand
    # What is no consent is not listed among consents.
    assert "news" not in {one["purpose"] for one in world.alice.get("consents/me").json["results"]}


@pytest.mark.parametrize(
    ("purpose", "words"),
    [("support", "withdrawn, not objected to"), ("duty", "no right to object")],
)
def test_what_cannot_be_objected_to(world: World, purpose: str, words: str) -> None:
    answer = world.alice.put(f"subjects/me/objections/{purpose}", {})
    assert answer.outcome == (400, "validation_error")
    assert words in answer.json["detail"]
    assert world.alice.put("subjects/me/objections/nothing", {}).outcome == (404, "not_found")


def test_an_operator_records_and_overrides_with_words(world: World) -> None:
    path = "subjects/alice/objections/news"
    assert world.operator.put(path, {}).outcome == (400, "validation_error")
    world.operator.put(path, {"evidence": "call of 3 May"})
    assert world.alice.read("me", "news").outcome == (403, "objected")
    assert world.operator.delete(path).outcome == (400, "validation_error")
    assert world.operator.delete(path, query={"reason": "a court case"}).status == 204
    (event,) = world.events("consent.objection_lifted")
    assert (event.actor, event.subject, event.reason) == ("operator", "alice", "a court case")


@pytest.mark.parametrize("name", ["bob", "agent", "bound", "auditor"])
def test_nobody_else_objects(world: World, name: str) -> None:
    caller = getattr(world, name)
    path = "subjects/alice/objections/news"
    assert caller.put(path, {"evidence": "x"}).outcome == (403, "permission_denied")
    assert caller.delete(path, query=WHY).outcome == (403, "permission_denied")


def test_an_objection_waits_for_writes_in_flight(world: World) -> None:
    writers = [lambda: world.operator.write("user::alice", "news", 1, query={"mode": "upsert"})] * 4
    *written, objected = race([*writers, lambda: world.alice.put(NEWS, {})])
    assert objected.status == 200
    for answer in written:
        assert answer.code in (None, "objected")
        if answer.code is None:
            assert answer.json["updated_at"] < objected.json["since"]


def test_a_purpose_that_comes_to_rest_on_consent_asks_anew(world: World) -> None:
    world.alice.put(NEWS, {})
    notices = [{"version": 1, "locale": "en", "text": "Why we keep what serves news."}]
    load_catalog(
        tenant=world.tenant,
        catalog={**CATALOG, "purposes": [
            *CATALOG["purposes"],
            {"slug": "news", "lawful_basis": "consent", "notices": notices},
        ]},
    )  # fmt: skip
    assert world.alice.status_of("me", "news") == "none"
    assert world.alice.give("me", "news").json["status"] == "given"
