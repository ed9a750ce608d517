"""Forgetting several memories at once: nothing is deleted that the person did not confirm."""

import json

import pytest

from tests.agents.client import LEGACY, MCP


@pytest.fixture
def kept(world, connect):
    """Three memories of alice, and an agent whose client can ask her."""
    for key in ("a", "b", "c"):
        assert world.alice.write("me", key, key).status == 201
    return connect("bound", can_ask=True)


def ask(agent, **arguments):
    """Return the question, and a function that answers it."""
    asked = agent.call("forget_memories", **arguments).result
    assert asked["resultType"] == "input_required"
    ((name, question),) = asked["inputRequests"].items()
    assert question["method"] == "elicitation/create"

    def answer(action="accept", *, by=agent, tool="forget_memories", state=None, **changes):
        content = changes.pop("content", {"confirm": True})
        return by.request("tools/call", {
            "name": tool, "arguments": {**arguments, **changes},
            "requestState": asked["requestState"] if state is None else state,
            "inputResponses": {name: {"action": action, "content": content}},
        })  # fmt: skip

    return question["params"], answer


def test_the_person_is_asked_first(world, kept):
    question, answer = ask(kept, keys=["a", "b", "none"])
    assert question["mode"] == "form"
    assert question["message"] == (
        'Forget 3 memories of user::alice for good? They are: "a", "b", "none".'
    )
    assert world.alice.listing().keys == ["a", "b", "c"]
    given = answer().given
    assert (given["scope"], given["confirmed"]) == ("user::alice", True)
    assert [(one["key"], one["forgotten"], one["code"]) for one in given["results"]] == [
        ("a", True, None), ("b", True, None), ("none", False, "not_found"),
    ]  # fmt: skip
    assert world.alice.listing().keys == ["c"]
    assert len(world.events("preference.deleted")) == 2


def test_what_was_written_since_the_question_is_asked_for_anew(world, kept):
    _, answer = ask(kept, keys=["a", "b"])
    assert answer().given["confirmed"] is True
    assert world.alice.write("me", "a", "another").status == 201
    assert answer().result["resultType"] == "input_required"
    assert world.alice.read("me", "a").json["value"] == "another"


@pytest.mark.parametrize(
    ("action", "content"),
    [("decline", None), ("cancel", None), ("accept", {"confirm": False}), ("accept", {}),
     ("accept", None), ("accept", {"confirm": "yes"}), ("accept", {"confirm": 1})],
)  # fmt: skip
def test_anything_but_yes_is_no(world, kept, action, content):
    _, answer = ask(kept, keys=["a", "b"])
    assert answer(action, content=content).given == {
        "scope": "user::alice", "confirmed": False, "results": [],
    }  # fmt: skip
    assert world.alice.listing().keys == ["a", "b", "c"]


def test_an_answer_is_good_for_its_question_alone(world, make_world, kept, connect):
    _, answer = ask(kept, keys=["a"])
    other_arguments = [{"keys": ["b"]}, {"keys": ["a", "b"]}, {"scope": "user::bob"}]
    for changes in other_arguments:
        assert answer(**changes).fault == (200, -32602)
    # Another person who may do the same, and the same agent without its person.
    for name in ("alice", "operator", "agent"):
        assert answer(by=connect(name, can_ask=True)).fault == (200, -32602)
    elsewhere = make_world()
    assert answer(by=MCP(elsewhere.tenant.slug, elsewhere.bound.token, can_ask=True)).fault == (
        200, -32602,
    )  # fmt: skip
    for state in ("", "x", 3, {}):
        assert answer(state=state).fault == (200, -32602)
    # An answer to what was never asked.
    alone = kept.request("tools/call", {
        "name": "forget_memories", "arguments": {"keys": ["a"]},
        "inputResponses": {"elicitation-0": {"action": "accept", "content": {"confirm": True}}},
    })  # fmt: skip
    assert alone.result["resultType"] == "input_required"
    assert world.alice.listing().keys == ["a", "b", "c"]
    assert answer().given["confirmed"] is True


@pytest.mark.parametrize("more", [{}, {"era": LEGACY, "can_ask": True}, {"era": "2025-03-26"}])
def test_clients_that_cannot_ask_are_refused(world, kept, connect, more):
    refused = connect("bound", **more).call("forget_memories", keys=["a", "b"]).refusal
    assert refused["code"] == "validation_error"
    assert "delete_memory" in refused["detail"]
    assert world.alice.listing().keys == ["a", "b", "c"]


def test_refusals_come_before_the_question(world, connect):
    agent, bound = connect("agent", can_ask=True), connect("bound", can_ask=True)
    assert agent.call("forget_memories", keys=["a"]).code == "invalid_scope"
    with world.denied(1):
        assert bound.call("forget_memories", keys=["a"], scope="user::bob").code == (
            "permission_denied"
        )
    for keys in ([], ["a"] * 101, "a", [3], [" "], None):
        assert bound.call("forget_memories", keys=keys).code in ("validation_error", "invalid_key")
    operator = connect("operator", can_ask=True)
    assert operator.call("forget_memories", keys=["a"], scope="user::alice").code == (
        "validation_error"
    )


def test_each_key_is_decided_for_itself(world, connect):
    """What this agent may not delete stays, with its event, while the rest goes."""
    world.alice.give("me", "ads")
    world.alice.write("me", "banner", 1)
    world.alice.write("me", "k", 1)
    _, answer = ask(connect("bound", can_ask=True), keys=["banner", "k", "k"])
    with world.denied(1):
        given = answer().given
    assert [(one["key"], one["code"]) for one in given["results"]] == [
        ("banner", "purpose_not_allowed"), ("k", None),
    ]  # fmt: skip
    assert world.alice.listing().keys == ["banner"]


def test_the_question_shows_keys_as_text(kept):
    question, _ = ask(kept, keys=['"], all of it: ["', "b"])
    assert json.dumps('"], all of it: ["') in question["message"]
