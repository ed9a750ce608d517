"""The best records first, over HTTP: scores, order, gate, and how much is looked at."""

import pytest

from preferences import ranked
from preferences.readings import flush_readings

DAY = 86_400


def rank(who, *scopes, **query):
    return who.get("preferences/ranked", query={"scope": list(scopes), **query})


def keys(who, *scopes, **query):
    answer = rank(who, *scopes, **query)
    assert answer.status == 200
    return answer.keys


def rewrite(who, scope, key, value, times):
    for _ in range(times):
        assert who.write(scope, key, value, query={"mode": "upsert"}).status in (200, 201)


def test_each_record_comes_with_its_score_and_the_parts_of_it(world, frozen):
    op = world.operator
    op.write("repo::acme/checkout", "lint", "Run the linter first", metadata={"outcome": 1})
    frozen.move(14 * DAY)
    rewrite(op, "repo::acme/checkout", "queue", "The queue is flaky", 3)
    answer = rank(world.alice, "repo::acme/checkout", term=["LINT", "deploy"])
    assert answer.keys == ["lint", "queue"]
    best, other = answer.json["results"]
    score, parts = best.pop("score"), best.pop("parts")
    assert best == world.alice.read("repo::acme/checkout", "lint").json
    assert parts == pytest.approx(
        {"recency": 0.5, "recurrence": 0.5, "relevance": 0.5, "outcome": 1.0}
    )
    assert score == pytest.approx(sum(parts.values()) / 4)
    assert other["parts"] == {"recency": 1.0, "recurrence": 1.0, "relevance": 0.0, "outcome": 0.5}
    assert answer.json["next"] is answer.json["previous"] is None
    assert answer.json["withheld"] == []


def test_equal_ones_stand_in_the_order_of_the_scopes(world, frozen):
    scopes = ["repo::acme/checkout", "project::atlas", "global"]
    for scope in reversed(scopes):
        for key in ("b", "a"):
            world.operator.write(scope, key, "same")
    for asked in (scopes, scopes[::-1]):
        results = rank(world.alice, *asked).json["results"]
        assert [(one["scope"], one["key"]) for one in results] == [
            (scope, key) for scope in asked for key in ("a", "b")
        ]
    assert len(keys(world.alice, "global", "global")) == 2


@pytest.mark.parametrize(
    ("metadata", "outcome"),
    [
        ({"outcome": 0}, 0), ({"outcome": 0.25}, 0.25), ({"outcome": 1}, 1), ({}, 0.5),
        ({"outcome": True}, 0.5), ({"outcome": "1"}, 0.5), ({"outcome": 2}, 0.5),
        ({"outcome": -1}, 0.5), ({"outcome": None}, 0.5), ({"a": {"outcome": 1}}, 0.5),
    ],
)  # fmt: skip
def test_an_outcome_is_a_number_in_the_metadata(world, metadata, outcome):
    world.operator.write("global", "k", "v", metadata=metadata)
    (one,) = rank(world.alice, "global").json["results"]
    assert one["parts"]["outcome"] == outcome


def test_a_limit_keeps_the_best_and_diverse_the_different(world, frozen):
    for key, value, times in [
        ("a", "run the linter first", 9), ("b", "Run the linter, first!", 8),
        ("c", {"do": "pin base images"}, 1), ("d", 4, 1),
    ]:  # fmt: skip
        rewrite(world.operator, "global", key, value, times)
    assert keys(world.alice, "global") == ["a", "b", "c", "d"]
    assert keys(world.alice, "global", limit=2) == ["a", "b"]
    assert keys(world.alice, "global", limit=2, diverse="true") == ["a", "c"]
    assert keys(world.alice, "global", diverse="false", limit=1) == ["a"]


def test_the_gate_is_that_of_every_read(world):
    alice = world.alice
    alice.give("me", "support")
    alice.write("me", "tone", "brief")
    alice.write("me", "habit", "early")
    alice.withdraw("me", "support")
    answer = rank(alice, "me")
    assert answer.keys == ["habit"]
    assert answer.json["withheld"] == [{"purpose": "support", "reason": "consent_required"}]
    for who in (world.bob, world.operator):
        assert rank(who, "user::alice").json["results"] == []
    assert keys(world.agent, "user::alice") == ["habit"]
    assert rank(world.operator, "me").outcome == (403, "permission_denied")


def test_what_is_expired_or_archived_is_not_ranked(world, frozen):
    world.alice.write("me", "brief", "v", ttl_seconds=60)
    written = world.alice.write("me", "old", "v")
    body = {"scope": "me", "key": "old", "revision": written.revision}
    assert keys(world.alice, "me") == ["brief", "old"]
    world.alice.post("preferences/archive", body)
    frozen.move(60)
    assert keys(world.alice, "me") == []


def test_no_more_than_so_many_are_looked_at(world, frozen, monkeypatch):
    monkeypatch.setattr(ranked, "MOST_RANKED", 4)
    for number in range(5):
        world.operator.write("global", f"g{number}", "v", metadata={"outcome": 1 - number / 10})
        world.operator.write("project::x", f"x{number}", "v")
    # Those created last, an equal share of each scope.
    assert keys(world.alice, "global") == ["g1", "g2", "g3", "g4"]
    assert keys(world.alice, "project::x", "global") == ["g3", "g4", "x3", "x4"]


def test_only_what_was_shown_counts_as_read(world):
    for key, outcome in (("a", 1), ("b", 0), ("c", 0)):
        world.alice.write("me", key, "v", metadata={"outcome": outcome})
    assert keys(world.agent, "user::alice", limit=1) == ["a"]
    flush_readings()
    read = {
        one["key"]: [reader["actor"] for reader in one["read_by"]]
        for one in world.alice.get("subjects/me/data").json["preferences"]
    }
    assert {key: len(readers) for key, readers in read.items()} == {"a": 1, "b": 0, "c": 0}


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({}, "invalid_scope"),
        ({"scope": "nowhere"}, "invalid_scope"),
        ({"scope": "repo::acme/*"}, "invalid_scope"),
        ({"scope": "me", "term": ""}, "validation_error"),
        ({"scope": "me", "term": "x" * 101}, "validation_error"),
        ({"scope": "me", "term": ["x"] * 33}, "validation_error"),
        ({"scope": "me", "limit": 201}, "validation_error"),
        ({"scope": "me", "diverse": "yes"}, "validation_error"),
        ({"scope": "me", "weights": "1"}, "validation_error"),
    ],
)
def test_what_is_malformed(world, query, code):
    assert world.alice.get("preferences/ranked", query=query).outcome == (400, code)
