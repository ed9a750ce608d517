"""The tools over MCP: what they give, what they refuse, and what they leave behind."""

import json
from functools import partial

import pytest

from agents.tool_schemas import TOOLS
from preferences.schemas import compile_schema
from tests.agents.client import LEGACY, MCP, MODERN
from tests.factories import CATALOG
from tests.http.client import race


def test_one_memory_from_first_to_last(world, connect):
    world.alice.give("me", "support")
    agent = connect("bound")
    made = agent.call("set_memory", key="reply_style", value="brief", detail="said so").given
    assert (made["scope"], made["key"], made["value"]) == ("user::alice", "reply_style", "brief")
    assert (made["created"], made["replayed"]) == (True, False)
    assert made["provenance"]["source"] == "agent"
    assert made["provenance"]["detail"] == "said so"
    read = agent.call("get_memory", key="reply_style").given
    assert read["revision"] == made["revision"]
    assert read == world.alice.read("me", "reply_style").json

    again = agent.call("set_memory", key="reply_style", value="detailed").refusal
    assert again["code"] == "already_exists"
    assert again["current"]["revision"] == made["revision"]
    new = agent.call(
        "set_memory", key="reply_style", value="detailed", expected_revision=made["revision"]
    ).given
    assert new["created"] is False
    assert new["revision"] != made["revision"]
    stale = agent.call("delete_memory", key="reply_style", expected_revision=made["revision"])
    assert (stale.code, stale.refusal["current"]["revision"]) == ("stale_revision", new["revision"])
    gone = agent.call("delete_memory", key="reply_style", expected_revision=new["revision"]).given
    assert gone == {
        "scope": "user::alice", "key": "reply_style", "revision": new["revision"],
        "deleted": True, "replayed": False,
    }  # fmt: skip
    assert agent.call("get_memory", key="reply_style").code == "not_found"
    assert [one.action for one in world.events("preference.created", "preference.deleted")] == [
        "preference.created",
        "preference.deleted",
    ]


@pytest.mark.parametrize("era", [MODERN, LEGACY, "2025-06-18", "2025-03-26"])
def test_C087_scopes_are_never_ignored(world, connect, era):
    for person in (world.alice, world.bob):
        person.give("me", "support")
    agent, bound = connect("agent", era=era), connect("bound", era=era)
    made = agent.call("set_memory", scope="user::bob", key="tone", value="dry").given
    assert (made["scope"], made["key"]) == ("user::bob", "tone")
    assert world.bob.read("me", "tone").json["revision"] == made["revision"]
    assert world.alice.read("me", "tone").status == 404
    listed = agent.call("list_memories", scope="user::bob").given
    assert listed["scope"] == "user::bob"
    assert [(one["scope"], one["key"]) for one in listed["results"]] == [("user::bob", "tone")]
    refused = agent.call("set_memory", scope="user::nobody", key="tone", value="dry").refusal
    assert (refused["code"], refused["purpose"]) == ("consent_required", "support")
    for tool, more in (("set_memory", {"key": "tone", "value": 1}), ("list_memories", {}),
                       ("get_memory", {"key": "tone"}), ("delete_memory", {"key": "tone"})):  # fmt: skip
        assert agent.call(tool, **more).code == "invalid_scope"

    with world.denied(4):
        for tool, more in (("set_memory", {"key": "tone", "value": 1}), ("list_memories", {}),
                           ("get_memory", {"key": "tone"}), ("delete_memory", {"key": "tone"})):  # fmt: skip
            assert bound.call(tool, scope="user::bob", **more).code == "permission_denied"
    assert bound.call("set_memory", key="tone", value="warm").given["scope"] == "user::alice"
    assert world.bob.read("me", "tone").json["value"] == "dry"
    assert len(world.events("preference.created")) == 2


def test_arguments_that_nothing_reads_are_refused(connect):
    agent = connect("bound")
    for name in ("tenant", "user", "user_id", "subject", "revision", "mode", "Key", ""):
        for tool in TOOLS:
            refused = agent.call(tool, **{name: "x"}).refusal
            assert refused["code"] == "validation_error"
            assert refused["errors"][0]["pointer"] == f"/{name}"
    assert agent.call("get_memory").refusal["errors"][0]["pointer"] == "/key"
    assert agent.call("set_memory", key="k").refusal["errors"][0]["pointer"] == "/value"


def test_malformed_arguments_are_refused_by_name(connect):
    agent = connect("bound")
    assert agent.call("get_memory", key=" k").code == "invalid_key"
    assert agent.call("get_memory", key=3).code == "invalid_key"
    assert agent.call("get_memory", key="k", scope=["me"]).code == "invalid_scope"
    assert agent.call("get_memory", key="k", scope="repo::x").code == "invalid_scope"
    for revision in ("", "X" * 32, 3):
        refused = agent.call("set_memory", key="k", value=1, expected_revision=revision).refusal
        assert refused["code"] == "invalid_revision"
        assert refused["errors"][0]["pointer"] == "/expected_revision"
    for ttl in (0, -1, 1.5, True, "9"):
        assert agent.call("set_memory", key="k", value=1, ttl_seconds=ttl).code == "invalid_ttl"
    for tags in ("t", [1], [""], ["t" * 65]):
        assert agent.call("set_memory", key="k", value=1, tags=tags).code == "validation_error"
    for limit in (0, 101, True, "5", 1.0):
        assert agent.call("list_memories", limit=limit).code == "validation_error"
    for cursor in ("x", 3, ""):
        assert agent.call("list_memories", cursor=cursor).code == "validation_error"
    assert agent.call("list_memories", key_prefix=3).code == "validation_error"
    for key in ("", "é", "x" * 256, 3):
        assert agent.call("set_memory", key="k", value=1, idempotency_key=key).code == (
            "validation_error"
        )
    assert agent.call("set_memory", key="k", value="x" * 70_000).code == "too_large"


def test_C015_names_are_taken_as_they_stand(world, connect):
    """No white space is trimmed away, so that nothing lands at another address."""
    world.alice.write("me", "theme", "light")
    agent = connect("bound")
    for key in (
        "theme\n",
        " theme",
        "theme ",
        "theme\t",
        "theme\u200b",
        "theme\r\n",
        "a/theme",
        "",
    ):
        for tool, more in (
            ("get_memory", {}),
            ("set_memory", {"value": "dark"}),
            ("delete_memory", {}),
        ):
            assert agent.call(tool, key=key, **more).code == "invalid_key"
    for scope in ("me\n", " me", "user::alice\n", "user:: alice", "project::x ", "Global", ""):
        for tool, more in (
            ("get_memory", {}),
            ("set_memory", {"value": "dark"}),
            ("delete_memory", {}),
        ):
            assert agent.call(tool, key="theme", scope=scope, **more).code == "invalid_scope"
    assert world.alice.read("me", "theme").json["value"] == "light"


def test_only_what_definitions_let_agents_write(world, make_world, connect):
    agent = connect("agent")
    with world.denied(2):
        assert agent.call("set_memory", scope="user::alice", key="staff_note", value=1).code == (
            "permission_denied"
        )
        assert agent.call("set_memory", scope="project::x", key="policy", value=1).code == (
            "permission_denied"
        )
    assert agent.call("set_memory", scope="project::x", key="theme", value="pink").code == (
        "invalid_value"
    )
    assert agent.call("set_memory", scope="project::X", key="undeclared", value=1).given[
        "scope"
    ] == ("project::x")
    strict = make_world({**CATALOG, "definitions": [], "undeclared": {}})
    elsewhere = MCP(strict.tenant.slug, strict.agent.token)
    for scope in ("project::x", "repo::a/b", "branch::a/b::c", "global", "user::alice"):
        assert elsewhere.call("set_memory", scope=scope, key="k", value=1).code == "undeclared_key"


def test_the_gate_holds_for_every_tool(world, connect):
    world.alice.give("me", "support")
    agent = connect("bound")
    made = agent.call("set_memory", key="tone", value="dry").given
    world.alice.withdraw("me", "support")
    with world.denied(3):
        refused = agent.call("get_memory", key="tone").refusal
        assert (refused["code"], refused["purpose"]) == ("consent_required", "support")
        assert agent.call("set_memory", key="tone", value="warm",
                          expected_revision=made["revision"]).code == "consent_required"  # fmt: skip
        assert agent.call("get_memory", key="banner").code == "purpose_not_allowed"
    listed = agent.call("list_memories", scope="me").given
    assert listed["results"] == []
    assert listed["withheld"] == [{"purpose": "support", "reason": "consent_required"}]
    assert agent.call("delete_memory", key="tone").given["deleted"] is True


def test_repeated_calls_are_done_once(world, connect):
    agent = connect("bound")
    ask = {"key": "k", "value": 1, "idempotency_key": "a"}
    first = agent.call("set_memory", **ask).given
    second = agent.call("set_memory", **ask).given
    assert second == {**first, "replayed": True}
    assert agent.call("set_memory", **{**ask, "value": 2}).code == "idempotency_mismatch"
    assert agent.call("delete_memory", key="k", idempotency_key="a").code == "idempotency_mismatch"
    for replayed in (False, True):
        gone = agent.call("delete_memory", key="k", idempotency_key="b").given
        assert gone["replayed"] is replayed
    assert len(world.events("preference.created", "preference.deleted")) == 2


def test_lists_go_on_where_they_stopped(world, connect):
    agent = connect("bound")
    for number in range(5):
        agent.call("set_memory", key=f"k{number}", value=number, tags=["t"])
    agent.call("set_memory", scope="project::x", key="k9", value=9, tags=["t"])
    seen, cursor = [], None
    while True:
        page = agent.call("list_memories", tags=["t"], limit=2, cursor=cursor).given
        seen += [one["key"] for one in page["results"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == ["k0", "k1", "k2", "k3", "k4", "k9"]
    cursor = agent.call("list_memories", tags=["t"], limit=2).given["next_cursor"]
    # Bound to the list and to the caller.
    assert agent.call("list_memories", limit=2, cursor=cursor).code == "validation_error"
    assert connect("alice").call("list_memories", tags=["t"], cursor=cursor).given["results"]
    assert connect("bob").call("list_memories", tags=["t"], cursor=cursor).code == (
        "validation_error"
    )
    assert agent.call("list_memories", key_prefix="k_").given["results"] == []


def test_values_come_back_as_they_went_in(connect):
    agent = connect("bound")
    for number, text in enumerate(
        (b"-0.0", b"1.0", b"1e22", b"123456789012345678901234567890", b"null", b'"\\u00e9\\ud83d\\ude00"',
         b'{"b": [], "a": {}}', b"[" * 64 + b"]" * 64)
    ):  # fmt: skip
        made = agent.call_raw(b'{"key": "k%d", "value": %s}' % (number, text))
        world_text = made.content
        assert made.given["created"]
        stored = text.replace(b"1e22", b"1e+22").replace(b'{"b": [], "a": {}}', b'{"a":{},"b":[]}')
        stored = stored.replace(b'"\\u00e9\\ud83d\\ude00"', '"é😀"'.encode())
        assert b'"value": %s,' % stored in world_text


def test_stewards_say_why_elsewhere(world, connect):
    world.alice.write("me", "k", 1)
    operator = connect("operator")
    for tool in ("get_memory", "delete_memory"):
        assert operator.call(tool, scope="user::alice", key="k").code == "validation_error"
    assert operator.call("list_memories", scope="user::alice").code == "validation_error"
    assert operator.call("set_memory", scope="user::alice", key="staff_note", value=1).given
    assert operator.call("get_memory", scope="me", key="k").code == "permission_denied"


def test_answers_fit_their_schemas(world, connect):
    world.alice.give("me", "support")
    agent = connect("bound", can_ask=True)
    given = {
        "set_memory": agent.call(
            "set_memory", key="tone", value={"a": ["words"]}, ttl_seconds=60
        ).given,
        "get_memory": agent.call("get_memory", key="tone").given,
        "list_memories": agent.call("list_memories").given,
        "search_memories": agent.call("search_memories", query="words").given,
        "delete_memory": agent.call("delete_memory", key="tone").given,
    }
    for name, answer in given.items():
        schema = compile_schema(json.dumps(TOOLS[name].gives))
        assert list(schema.errors(answer)) == []
        assert list(schema.errors({})) != []


def test_search(world, connect):
    world.alice.give("me", "support")
    world.alice.write("me", "tone", "likes dry jokes about tabs")
    world.bob.write("me", "k", "jokes of bob")
    world.operator.write("repo::acme/checkout", "rule", "No jokes in commits")
    agent, bound = connect("agent"), connect("bound")
    found = bound.call("search_memories", query="JOKES").given
    assert found["scope"] is None
    assert {(one["scope"], one["key"]) for one in found["results"]} == {
        ("user::alice", "tone"), ("repo::acme/checkout", "rule"),
    }  # fmt: skip
    assert all(0 < one["score"] <= 1 for one in found["results"])
    found = bound.call("search_memories", query="jokes", scope="repo::Acme/*").given
    assert (found["scope"], [one["key"] for one in found["results"]]) == ("repo::acme/*", ["rule"])
    found = bound.call("search_memories", query="jokes", scope="me", limit=1).given
    assert (found["scope"], [one["key"] for one in found["results"]]) == ("user::alice", ["tone"])
    found = agent.call("search_memories", query="jokes", scope="user::bob").given
    assert [one["key"] for one in found["results"]] == ["k"]
    # One that names no place, or a place of somebody else's, is told so.
    assert agent.call("search_memories", query="jokes").code == "invalid_scope"
    with world.denied(1):
        assert bound.call("search_memories", query="jokes", scope="user::bob").code == (
            "permission_denied"
        )
    assert connect("operator").call("search_memories", query="x", scope="user::bob").code == (
        "validation_error"
    )
    for query in ("", " ", "x" * 201, "a\x07", 3, None, ["a"]):
        refused = bound.call("search_memories", query=query).refusal
        assert (refused["code"], refused["errors"][0]["pointer"]) == ("validation_error", "/query")
    for limit in (0, 101, True):
        assert bound.call("search_memories", query="x", limit=limit).code == "validation_error"
    world.alice.withdraw("me", "support")
    found = bound.call("search_memories", query="jokes", scope="me").given
    assert found["results"] == []
    assert found["withheld"] == [{"purpose": "support", "reason": "consent_required"}]


def test_expired_memories_are_gone_at_their_moment(frozen, world, connect):
    agent = connect("bound")
    made = agent.call("set_memory", key="k", value="words", ttl_seconds=60).given
    frozen.move(59.999999)
    assert agent.call("get_memory", key="k").given["revision"] == made["revision"]
    frozen.move(0.000001)
    assert agent.call("get_memory", key="k").code == "not_found"
    assert agent.call("list_memories").given["results"] == []
    assert agent.call("search_memories", query="words").given["results"] == []
    again = agent.call("set_memory", key="k", value=1, expected_revision=made["revision"]).refusal
    assert (again["code"], again["current"]) == ("stale_revision", None)
    assert agent.call("set_memory", key="k", value=1).given["created"] is True


def test_a_restored_database_serves_nothing_about_persons(world, connect, monkeypatch):
    agent = connect("bound")
    monkeypatch.setattr("tenants.restores.questions", [lambda: True])
    for tool, more in (("get_memory", {"key": "k"}), ("set_memory", {"key": "k", "value": 1}),
                       ("list_memories", {}), ("search_memories", {"query": "k"}),
                       ("delete_memory", {"key": "k"})):  # fmt: skip
        refused = agent.call(tool, **more).refusal
        assert (refused["code"], refused["retry_after"]) == ("store_unavailable", 60)
    assert agent.call("get_memory", scope="project::x", key="k").code == "not_found"


def test_of_two_writers_who_read_the_same_one_is_told(world):
    made = MCP(world.tenant.slug, world.agent.token).call(
        "set_memory", scope="project::x", key="k", value=0
    )
    revision = made.given["revision"]

    def write(value):
        return MCP(world.tenant.slug, world.agent.token).call(
            "set_memory", scope="project::x", key="k", value=value, expected_revision=revision
        )

    replies = race([partial(write, value) for value in range(6)])
    won = [one.result["structuredContent"] for one in replies if not one.result["isError"]]
    lost = [one.refusal for one in replies if one.result["isError"]]
    assert len(won) == 1
    assert {one["code"] for one in lost} == {"stale_revision"}
    assert {one["current"]["revision"] for one in lost} == {won[0]["revision"]}
