"""Batches and idempotency keys."""

from functools import partial

import pytest

from tests.factories import CATALOG, change_catalog
from tests.http.client import delete, get, put, race

OLD = "0" * 32


def statuses(answer):
    return [one["status"] for one in answer.json["results"]]


def codes(answer):
    return [(one["body"] or {}).get("code") for one in answer.json["results"]]


def test_batch_answers_in_request_order(world):
    world.alice.write("me", "a", 0)
    answer = world.alice.batch(
        put("me", "z", 1), get("me", "a"), delete("me", "a"), put("me", "b", None, mode="upsert")
    )
    assert answer.outcome == (400, "duplicate_address")
    answer = world.alice.batch(put("me", "z", 1), get("me", "none"), delete("me", "a"),
                               put("me", "b", None, mode="upsert", tags=["t"]))  # fmt: skip
    assert answer.status == 200
    assert statuses(answer) == [201, 404, 204, 201]
    first, none, gone, last = (one["body"] for one in answer.json["results"])
    assert first == world.alice.read("me", "z").json
    assert none["code"] == "not_found"
    assert gone is None
    assert last["tags"] == ["t"]


def test_atomic_batch_is_all_or_nothing(world):
    with world.denied(0):
        answer = world.alice.batch(
            put("me", "a", 1), get("me", "none"), put("me", "b", 1, revision=OLD),
            delete("me", "c"),
        )  # fmt: skip
    assert answer.outcome == (409, "stale_revision")
    assert statuses(answer) == [424, 424, 409, 404]
    assert codes(answer) == [
        "failed_dependency",
        "failed_dependency",
        "stale_revision",
        "not_found",
    ]
    assert world.alice.listing().keys == []


def test_atomic_batch_answers_with_the_lowest_index(world):
    # Run in the order of addresses: the second one is met first.
    answer = world.alice.batch(put("me", "z", 1, revision=OLD), put("me", "a", 1, ttl_seconds=0))
    assert answer.outcome == (409, "stale_revision")
    assert statuses(answer) == [409, 400]


def test_denied_batch_leaves_one_event(world):
    with world.denied(1):
        answer = world.alice.batch(put("user::bob", "a"), put("me", "tone"), put("me", "k"))
    assert answer.outcome == (403, "permission_denied")
    assert statuses(answer) == [403, 403, 424]
    with world.denied(1):
        answer = world.alice.batch(put("me", "tone"))
    assert answer.outcome == (403, "consent_required")
    assert answer.json["purpose"] == "support"
    with world.denied(1):
        assert world.alice.batch(get("me", "tone")).outcome == (403, "consent_required")


@pytest.mark.parametrize("atomic", [True, False])
def test_denied_event_of_a_batch_names_the_record(world, atomic):
    world.alice.batch(put("user::bob", "a"), atomic=atomic)
    (event,) = world.events("access.denied")
    assert (event.subject, event.scope, event.key) == ("bob", "user::bob", "a")


def test_each_for_itself(world):
    with world.denied(3):
        answer = world.alice.batch(
            put("me", "z", 1), put("me", "b", 1, revision=OLD), put("user::bob", "a"),
            put("me", "tone"), get("me", "reply_style"), put("me", "x", 1, nothing=1),
            put("me", "limited", 1, ttl_seconds=500), {"op": "fly"}, 5, delete("me", "no"),
            atomic=False,
        )  # fmt: skip
    assert answer.status == 200
    assert statuses(answer) == [201, 409, 403, 403, 403, 400, 400, 400, 400, 404]
    assert world.alice.listing().keys == ["z"]


def test_an_operation_is_refused_for_what_it_would_be_refused_for_alone(world):
    operations = [
        (world.alice, put("user::bob", "k", 1, nothing=1), "permission_denied"),
        (world.alice, put("user::bob", "l", "x" * 70_000), "permission_denied"),
        (world.alice, put("user::bob", "m\n"), "invalid_key"),
        (world.operator, put("me", "m\n"), "invalid_key"),
        (world.operator, put("me", "k", 1, nothing=1), "permission_denied"),
    ]  # fmt: skip
    for who, operation, code in operations:
        alone = who.write(operation["scope"], operation["key"], operation["value"],
                          **{name: operation[name] for name in operation if name == "nothing"})  # fmt: skip
        assert alone.code == code
        with world.denied(int(alone.status == 403)):
            assert who.batch(operation).outcome == alone.outcome
        with world.denied(int(alone.status == 403)):
            assert codes(who.batch(operation, atomic=False)) == [code]


@pytest.mark.parametrize(
    "body",
    [
        {}, {"operations": []}, {"operations": {}}, {"operations": None},
        {"operations": [{"op": "get", "scope": "me", "key": "a"}], "atomic": "yes"},
        {"operations": [{"op": "get", "scope": "me", "key": "a"}], "atomic": None},
        {"operations": [{"op": "get", "scope": "me", "key": "a"}], "atomc": True},
        {"operations": [{"op": "get", "scope": "me", "key": f"k{n}"} for n in range(101)]},
    ],
)  # fmt: skip
def test_refused_batches(world, body):
    assert world.alice.post("preferences/batch", body).outcome == (400, "validation_error")


def test_hundred_operations(world):
    assert world.alice.batch(*(put("me", f"k{n}", n) for n in range(100))).status == 200
    assert len(world.alice.listing(limit=200).keys) == 100


@pytest.mark.parametrize(
    "twins",
    [
        (put("me", "k", 1), put("me", "k", 2)),
        (put("me", "caf\u00e9", 1), put("user::alice", "cafe\u0301", 2)),
        (put("repo::A/B", "k", 1), put("repo::a/b", "k", 2)),
        (put("me", "k", 1), delete("user::alice", "k")),
    ],
)
def test_C103_one_address_twice(world, twins):
    for atomic in (True, False):
        answer = world.alice.batch(put("me", "first", 1), *twins, atomic=atomic)
        assert answer.outcome == (400, "duplicate_address")
        pointers = [error["pointer"] for error in answer.json["errors"]]
        assert pointers == ["/operations/1", "/operations/2"]
        assert "1" in answer.json["detail"]
        assert "2" in answer.json["detail"]
    assert world.alice.listing().keys == []


# Idempotency -----------------------------------------------------------------------------------


def key(text="once"):
    return {"Idempotency-Key": text}


def test_replay(world):
    who = world.alice
    first = who.write("me", "k", {"a": 1.0}, tags=["t"], headers=key())
    assert first.status == 201
    assert "Idempotency-Replayed" not in first.headers
    again = who.write("me", "k", {"a": 1.0}, tags=["t"], headers=key())
    assert again.headers["Idempotency-Replayed"] == "true"
    assert (again.status, again.json, again.etag) == (201, first.json, first.etag)
    assert len(world.events("preference.created")) == 1
    later = who.write("me", "k", 2, revision=first.revision)
    again = who.write("me", "k", {"a": 1.0}, tags=["t"], headers=key())
    assert (again.status, again.json) == (201, first.json)
    assert who.read("me", "k").json == later.json


@pytest.mark.parametrize("change", ["value", "key", "query", "header", "method"])
def test_mismatch(world, change):
    who = world.alice
    assert who.write("me", "k", 1, headers=key()).status == 201
    answer = {
        "value": lambda: who.write("me", "k", 2, headers=key()),
        "key": lambda: who.write("me", "l", 1, headers=key()),
        "query": lambda: who.write("me", "k", 1, query={"mode": "upsert"}, headers=key()),
        "header": lambda: who.write("me", "k", 1, headers={**key(), "If-None-Match": "*"}),
        "method": lambda: who.forget("me", "k", headers=key()),
    }[change]()
    assert answer.outcome == (422, "idempotency_mismatch")
    assert who.read("me", "k").json["value"] == 1


def test_keys_belong_to_their_caller(world):
    assert world.alice.write("project::a", "theme", "dark", headers=key()).status == 201
    answer = world.bob.write("project::a", "theme", "dark", headers=key())
    assert answer.outcome == (409, "already_exists")


def test_refusals_are_not_kept(world):
    answer = world.alice.write("me", "k", 1, revision=OLD, headers=key())
    assert answer.status == 409
    assert world.alice.write("me", "k", 1, headers=key()).status == 201


@pytest.mark.parametrize("text", ["", "x" * 256, "a b", "é"])
def test_malformed_keys(world, text):
    answer = world.alice.write("me", "k", 1, headers=key(text))
    assert answer.outcome == (400, "validation_error")


def test_keys_end_after_a_day(world, frozen):
    assert world.alice.write("me", "k", 1, headers=key()).status == 201
    frozen.move(24 * 3600 - 1)
    assert world.alice.write("me", "k", 1, headers=key()).status == 201
    frozen.move(1)
    answer = world.alice.write("me", "k", 1, headers=key())
    assert answer.outcome == (409, "already_exists")


def test_a_replay_takes_nothing_from_a_record_that_has_expired(world, frozen):
    send = partial(world.alice.write, "me", "k", 2, query={"mode": "upsert"}, headers=key())
    world.alice.write("me", "k", 1, tags=["t"], metadata={"m": 1}, ttl_seconds=60)
    first = send().json
    assert (first["tags"], first["metadata"]) == (["t"], {"m": 1})
    assert send().json == first
    frozen.move(60)
    again = send()
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json == {**first, "tags": [], "metadata": {}}


def test_gate_runs_before_the_replay(world):
    world.alice.give("me", "support")
    assert world.alice.write("me", "tone", 1, headers=key()).status == 201
    world.alice.withdraw("me", "support")
    answer = world.alice.write("me", "tone", 1, headers=key())
    assert answer.outcome == (403, "consent_required")


def test_replayed_delete_and_decision(world):
    world.alice.write("me", "k", 1)
    assert world.alice.forget("me", "k", headers=key()).status == 204
    world.alice.write("me", "k", 2)
    again = world.alice.forget("me", "k", headers=key())
    assert (again.status, again.headers["Idempotency-Replayed"]) == (204, "true")
    assert world.alice.read("me", "k").status == 200
    first = world.alice.give("me", "support", headers=key("give"))
    world.alice.withdraw("me", "support")
    again = world.alice.give("me", "support", headers=key("give"))
    assert again.json == first.json
    assert again.headers["Idempotency-Replayed"] == "true"
    assert world.alice.status_of("me", "support") == "withdrawn"


def test_concurrent_twins(world):
    send = partial(world.alice.write, "me", "k", 1, headers=key())
    answers = race([send] * 8)
    assert {answer.status for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    replayed = [answer.headers.get("Idempotency-Replayed") for answer in answers]
    assert replayed.count(None) == 1


def test_replayed_batch(world):
    operations = (put("me", "a", 1), put("me", "b", 1, revision=OLD), put("me", "tone"),
                  put("me", "theme", 5), delete("me", "none"))  # fmt: skip
    first = world.alice.batch(*operations, atomic=False, headers=key())
    assert statuses(first) == [201, 409, 403, 400, 404]
    again = world.alice.batch(*operations, atomic=False, headers=key())
    assert again.headers["Idempotency-Replayed"] == "true"
    assert statuses(again) == statuses(first)
    assert codes(again) == codes(first)
    assert again.json["results"][0] == first.json["results"][0]
    atomic = world.alice.batch(put("me", "c", 1), delete("me", "a"), headers=key("two"))
    assert statuses(atomic) == [201, 204]
    again = world.alice.batch(put("me", "c", 1), delete("me", "a"), headers=key("two"))
    assert again.json == atomic.json
    answer = world.alice.batch(get("me", "c"), headers=key("three"))
    assert answer.outcome == (400, "validation_error")


def test_replayed_batch_after_withdrawal(world):
    world.alice.give("me", "support")
    operations = (put("me", "a", 1), put("me", "tone", 1))
    assert world.alice.batch(*operations, headers=key()).status == 200
    world.alice.withdraw("me", "support")
    with world.denied(1):
        answer = world.alice.batch(*operations, headers=key())
    assert answer.outcome == (403, "consent_required")
    assert statuses(answer) == [424, 403]


def test_definition_changed_in_another_process(world):
    """A compiled definition is never trusted: the write names the revision it was checked against."""
    assert world.alice.write("me", "theme", "dark").status == 201
    definitions = [
        {**one, "schema": {"enum": ["blue", "light"]}} if one["key"] == "theme" else one
        for one in CATALOG["definitions"]
    ]
    change_catalog(world.tenant, definitions=definitions)
    for send in (
        partial(world.alice.write, "me", "theme", "dark", query={"mode": "upsert"}),
        partial(world.alice.batch, put("me", "theme", "dark", mode="upsert")),
    ):
        assert send().outcome == (400, "invalid_value")
    assert world.alice.write("me", "theme", "blue", query={"mode": "upsert"}).status == 200
