"""Create, replace, upsert, delete: which revision is asked for, and what answers a conflict."""

import re
from functools import partial

import pytest

from preferences import views
from tests.http.client import put, race

OLD = "0" * 32


def test_create_replace_delete(world):
    who = world.alice
    created = who.write("me", "k", 1, tags=["a"], metadata={"m": 1})
    assert created.status == 201
    assert re.fullmatch("[0-9a-f]{32}", created.revision)
    body = created.json
    assert set(body) == {
        "scope", "key", "value", "type", "revision", "purpose", "provenance", "tags", "metadata",
        "seen_count", "created_at", "updated_at", "expires_at",
    }  # fmt: skip
    assert body["scope"] == "user::alice"
    assert body["purpose"] == "service"
    assert body["seen_count"] == 1
    assert body["created_at"] == body["updated_at"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", body["created_at"])
    assert body["provenance"] == {
        "source": "user_confirmed", "actor": "alice", "detail": None, "origin": {},
        "confidence": None,
    }  # fmt: skip
    replaced = who.write("me", "k", 2, revision=created.revision)
    assert replaced.status == 200
    assert replaced.revision != created.revision
    assert replaced.json["created_at"] == body["created_at"]
    assert replaced.json["updated_at"] > body["updated_at"]
    assert replaced.json["seen_count"] == 2
    assert replaced.json["tags"] == ["a"]
    assert replaced.json["metadata"] == {"m": 1}
    assert who.read("me", "k").content == replaced.content
    gone = who.forget("me", "k")
    assert gone.status == 204
    assert gone.content == b""
    assert who.forget("me", "k").outcome == (404, "not_found")


def test_conflicts_tell_what_stands(world):
    created = world.alice.write("me", "k", "canary")
    current = {name: created.json[name] for name in ("revision", "updated_at", "expires_at")}
    for answer in (
        world.alice.write("me", "k", 2),
        world.alice.write("me", "k", 2, revision=OLD),
        world.alice.write("me", "k", 2, headers={"If-None-Match": "*"}),
        world.alice.forget("me", "k", query={"revision": OLD}),
    ):
        assert answer.json["current"] == current
        assert b"canary" not in answer.content
    missing = world.alice.write("me", "missing", 2, revision=OLD)
    assert missing.outcome == (409, "stale_revision")
    assert missing.json["current"] is None
    assert world.alice.read("me", "missing").status == 404


def test_C018_one_of_twenty_writers_wins(world):
    first = world.alice.write("me", "k", 0).revision
    jobs = [partial(world.alice.write, "me", "k", n, revision=first) for n in range(20)]
    answers = race(jobs)
    winners = [answer for answer in answers if answer.status == 200]
    assert len(winners) == 1
    losers = [answer for answer in answers if answer.status != 200]
    assert {answer.outcome for answer in losers} == {(409, "stale_revision")}
    assert {answer.json["current"]["revision"] for answer in losers} == {winners[0].revision}
    assert world.alice.read("me", "k").json == winners[0].json
    (event,) = world.events("preference.replaced")
    assert (event.revision_before, event.revision_after) == (first, winners[0].revision)


def test_C022_one_of_twenty_creators_wins(world):
    answers = race(partial(world.alice.write, "me", "k", n) for n in range(20))
    assert sorted({answer.outcome for answer in answers}) == [
        (201, None), (409, "already_exists"),
    ]  # fmt: skip
    (winner,) = [answer for answer in answers if answer.status == 201]
    assert world.alice.read("me", "k").json == winner.json
    assert world.alice.listing(scope="me").keys == ["k"]
    assert len(world.events("preference.created")) == 1


def test_C022_creators_under_atomic_requests(world, monkeypatch):
    from django.db import connections

    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)
    answers = race(partial(world.alice.write, "me", "k", n) for n in range(20))
    assert [answer.status for answer in answers].count(201) == 1
    assert {answer.status for answer in answers} == {201, 409}


def test_C020_an_old_revision_never_works_again(world):
    who = world.alice
    first = who.write("me", "k", 1).revision
    assert who.forget("me", "k", query={"revision": first}).status == 204
    assert who.write("me", "k", 2, revision=first).outcome == (409, "stale_revision")
    assert who.read("me", "k").status == 404
    again = who.write("me", "k", 3)
    assert again.status == 201
    assert again.revision != first
    assert who.write("me", "k", 4, revision=first).outcome == (409, "stale_revision")
    assert who.read("me", "k").json["value"] == 3
    assert who.write("me", "never", 1, revision=first).outcome == (409, "stale_revision")


def test_C020_same_value_still_gets_a_fresh_revision(world):
    seen = [world.alice.write("me", "k", 1).revision]
    for _ in range(3):
        seen.append(world.alice.write("me", "k", 1, revision=seen[-1]).revision)
    assert len(set(seen)) == 4
    assert world.alice.read("me", "k").json["seen_count"] == 4


def test_C023_an_answer_shows_its_own_write(world):
    def write(number):
        answer = world.alice.write("me", "k", number, query={"mode": "upsert"})
        return number, answer

    revisions = {}
    for number, answer in race(partial(write, n) for n in range(12)):
        assert answer.json["value"] == number
        revisions[answer.revision] = number
    assert len(revisions) == 12
    trail = world.events("preference.created", "preference.replaced")
    assert {event.revision_after for event in trail} == set(revisions)
    assert world.alice.read("me", "k").json["value"] == revisions[trail[-1].revision_after]


@pytest.mark.parametrize("is_batch", [False, True])
def test_C023_a_competitor_between_commit_and_answer(world, monkeypatch, is_batch):
    """What was committed is answered, not what a later look would find."""
    sent = []
    name = "run_batch" if is_batch else "put_preference"
    real = getattr(views, name)

    def pause(**more):
        outcome = real(**more)
        if not sent:
            sent.append(None)
            monkeypatch.setattr(views, name, real)
            write = partial(world.operator.write, "user::alice", "k", "theirs")
            sent[0] = race([partial(write, query={"mode": "upsert"})])[0]
        return outcome

    monkeypatch.setattr(views, name, pause)
    if is_batch:
        (result,) = world.alice.batch(put("me", "k", "mine")).json["results"]
        mine = result["body"]
    else:
        answer = world.alice.write("me", "k", "mine")
        mine = answer.json
        assert answer.etag == mine["revision"]
    theirs = sent[0].json
    assert (mine["value"], theirs["value"]) == ("mine", "theirs")
    (created,) = world.events("preference.created")
    (replaced,) = world.events("preference.replaced")
    assert (created.actor, created.revision_after) == ("alice", mine["revision"])
    assert (replaced.actor, replaced.revision_after) == ("operator", theirs["revision"])
    assert replaced.revision_before == mine["revision"]
    assert world.alice.read("me", "k").json == theirs


def test_C027_tag_lists_and_stars(world):
    who = world.alice

    def fresh(key):
        old = who.write("me", key, 1).revision
        return old, who.write("me", key, 2, revision=old).revision

    r1, r2 = fresh("a")
    assert who.write("me", "a", 3, headers={"If-Match": f'"{r1}", "{r2}"'}).status == 200
    r1, r2 = fresh("b")
    # Servers join the lines of a repeated header with a comma, with or without a blank.
    assert who.write("me", "b", 3, headers={"If-Match": f'"{r1}","{r2}"'}).status == 200
    fresh("c")
    assert who.write("me", "c", 3, headers={"If-Match": "*"}).status == 200
    r1, r2 = fresh("d")
    for header in ("*", f'"{r2}"', f'W/"{r2}"', f'"{r1}", "{r2}"'):
        answer = who.write("me", "d", 3, headers={"If-None-Match": header})
        assert answer.outcome == (412, "already_exists")
    answer = who.write("me", "d", 3, headers={"If-None-Match": f'"{r1}"'})
    assert answer.outcome == (409, "already_exists")
    assert who.read("me", "d").json["value"] == 2
    answer = who.write("me", "new", 1, headers={"If-Match": "*"})
    assert answer.outcome == (409, "stale_revision")
    assert who.read("me", "new").status == 404
    assert who.write("me", "new", 1, headers={"If-None-Match": "*"}).status == 201


def test_C027_tags_that_never_match(world):
    revision = world.alice.write("me", "k", 1).revision
    for header in (f'W/"{revision}"', '"x"', '""', f'"{revision.upper()}x"', f'"{OLD}"'):
        answer = world.alice.write("me", "k", 2, headers={"If-Match": header})
        assert answer.outcome == (409, "stale_revision"), header
        answer = world.alice.forget("me", "k", headers={"If-Match": header})
        assert answer.outcome == (409, "stale_revision"), header
    assert world.alice.read("me", "k").json["value"] == 1


@pytest.mark.parametrize("header", ["{}", "{} , x", '"{}" "x"', "", '"{}', "*, *", '*, "{}"'])
def test_malformed_preconditions(world, header):
    header = header.format(world.alice.write("me", "k", 1).revision)
    for name in ("If-Match", "If-None-Match"):
        answer = world.alice.write("me", "k", 2, headers={name: header})
        assert answer.outcome == (400, "invalid_revision")
    assert world.alice.forget("me", "k", headers={"If-Match": header}).code == "invalid_revision"
    assert world.alice.read("me", "k").json["value"] == 1


def test_body_and_header_must_agree(world):
    revision = world.alice.write("me", "k", 1).revision
    both = world.alice.write("me", "k", 2, revision=revision, headers={"If-Match": f'"{revision}"'})
    assert both.status == 200
    revision = both.revision
    for header in (f'"{OLD}"', "*", f'"{revision}", "{OLD}"', f'W/"{revision}"'):
        answer = world.alice.write("me", "k", 3, revision=revision, headers={"If-Match": header})
        assert answer.outcome == (400, "invalid_revision")
        query = {"revision": revision}
        answer = world.alice.forget("me", "k", query=query, headers={"If-Match": header})
        assert answer.outcome == (400, "invalid_revision")
    answer = world.alice.write("me", "k", 3, revision=revision, headers={"If-None-Match": "*"})
    assert answer.status == 400
    assert world.alice.read("me", "k").json["value"] == 2


@pytest.mark.parametrize(
    "revision", ["", 1, True, [], "x", "A" * 32, "0" * 31, "0" * 33, OLD + "\n"]
)
def test_malformed_revisions(world, revision):
    world.alice.write("me", "k", 1)
    answer = world.alice.write("me", "k", 2, revision=revision)
    assert answer.outcome == (400, "invalid_revision")
    if isinstance(revision, str):
        answer = world.alice.forget("me", "k", query={"revision": revision})
        assert answer.outcome == (400, "invalid_revision")
    assert world.alice.read("me", "k").json["value"] == 1


def test_null_revision_is_none(world):
    assert world.alice.write("me", "k", 1, revision=None).status == 201
    assert world.alice.write("me", "k", 1, revision=None).outcome == (409, "already_exists")


def test_upsert(world):
    who, query = world.alice, {"mode": "upsert"}
    created = who.write("me", "k", 1, query=query, tags=["a"], metadata={"m": 1}, ttl_seconds=60)
    assert created.status == 201
    again = who.write("me", "k", 2, query=query)
    assert again.status == 200
    for name in ("created_at", "tags", "metadata", "expires_at"):
        assert again.json[name] == created.json[name]
    assert again.json["seen_count"] == 2
    for members, headers in (
        ({"revision": again.revision}, {}),
        ({}, {"If-Match": "*"}),
        ({}, {"If-None-Match": "*"}),
    ):
        answer = who.write("me", "k", 3, query=query, headers=headers, **members)
        assert answer.status == 400
    for mode in ("create", "", "UPSERT"):
        answer = who.write("me", "k", 3, query={"mode": mode})
        assert answer.outcome == (400, "validation_error")
    assert who.read("me", "k").json["value"] == 2


def test_conditional_get(world):
    revision = world.alice.write("me", "k", 1).revision
    for header in (f'"{revision}"', f'W/"{revision}"', "*", f'"{OLD}", "{revision}"'):
        answer = world.alice.read("me", "k", headers={"If-None-Match": header})
        assert (answer.status, answer.content, answer.etag) == (304, b"", revision)
    for header in (f'"{OLD}"', '"x"'):
        assert world.alice.read("me", "k", headers={"If-None-Match": header}).status == 200
    assert world.alice.read("me", "k", headers={"If-None-Match": revision}).status == 400
    assert world.alice.read("me", "none", headers={"If-None-Match": "*"}).status == 404


def test_conditional_delete(world):
    revision = world.alice.write("me", "k", 1).revision
    assert world.alice.forget("me", "k", query={"revision": OLD}).outcome == (409, "stale_revision")
    answer = world.alice.forget("me", "k", headers={"If-Match": f'"{revision}"'})
    assert answer.status == 204
    for more in ({"query": {"revision": revision}}, {"headers": {"If-Match": "*"}}):
        answer = world.alice.forget("me", "k", **more)
        assert answer.outcome == (409, "stale_revision")
        assert answer.json["current"] is None


def test_a_delete_takes_no_if_none_match(world):
    revision = world.alice.write("me", "k", 1).revision
    for header in ("*", f'"{revision}"', f'"{OLD}"'):
        answer = world.alice.forget("me", "k", headers={"If-None-Match": header})
        assert answer.outcome == (400, "validation_error")
    assert world.alice.read("me", "k").status == 200


def test_a_misspelt_revision_deletes_nothing(world):
    world.alice.write("me", "k", 1)
    for query in ({"revison": OLD}, {"revision": [OLD, OLD]}, {"REVISION": OLD}):
        answer = world.alice.forget("me", "k", query=query)
        assert answer.outcome == (400, "validation_error")
    assert world.alice.read("me", "k").status == 200


def test_provenance_is_the_servers_word(world):
    given = {
        "detail": "said so", "confidence": 0.5,
        "origin": {"agent": "helper", "trigger": "chat", "repo": "a/b", "branch": "main", "pr": 7},
    }  # fmt: skip
    first = world.alice.write("me", "k", 1, provenance=given)
    assert first.json["provenance"] == {**given, "source": "user_confirmed", "actor": "alice"}
    operator = world.operator.write("user::alice", "k", 2, revision=first.revision)
    assert operator.json["provenance"]["source"] == "operator"
    assert operator.json["provenance"]["detail"] is None
    assert operator.json["provenance"]["confidence"] is None
    agent = world.bound.write("me", "k", 3, revision=operator.revision)
    assert agent.json["provenance"]["source"] == "agent"
    assert agent.json["provenance"]["actor"] == "bound"
    assert world.operator.write("global", "k", 1).json["provenance"]["source"] == "operator"


def test_c084_an_update_keeps_what_is_known_of_the_origin(world):
    given = {"detail": "said so", "origin": {"repo": "a/b", "pr": 7}, "confidence": 1.0}
    first = world.alice.write("me", "k", 1, provenance=given, tags=["a"]).json
    assert {name: first["provenance"][name] for name in given} == given
    origin, moments = given["origin"], [first["updated_at"]]
    for sent in ({}, {"provenance": {"origin": {"branch": "main", "pr": 8}}}, {"provenance": None}):
        answer = world.operator.write("user::alice", "k", 2, query={"mode": "upsert"}, **sent).json
        origin = {**origin, **((sent.get("provenance") or {}).get("origin") or {})}
        assert answer["provenance"] == {
            "source": "operator", "actor": "operator", "detail": None, "confidence": None,
            "origin": origin,
        }  # fmt: skip
        assert (answer["tags"], answer["created_at"]) == (["a"], first["created_at"])
        moments.append(answer["updated_at"])
        assert world.alice.read("me", "k").json == answer
        (listed,) = world.alice.listing(scope="me").json["results"]
        assert listed == answer
    assert moments == sorted(set(moments))


def test_a_delete_overlooks_no_revision_in_its_body(world):
    revision = world.alice.write("me", "k", 1).revision
    for sent in (OLD, revision):
        answer = world.alice.request("DELETE", "preferences/me/k", {"revision": sent})
        assert answer.outcome == (400, "validation_error")
    answer = world.alice.request("DELETE", "preferences/me/k", raw=b"revision")
    assert answer.outcome == (400, "invalid_json")
    assert world.alice.read("me", "k").status == 200
    # Clients that always send an object say nothing with an empty one.
    assert world.alice.request("DELETE", "preferences/me/k", {}).status == 204


@pytest.mark.parametrize("header", ["If-Match", "If-None-Match"])
def test_malformed_tags_name_their_header(world, header):
    answers = [world.alice.write("me", "k", 1, headers={header: "unquoted"})]
    if header == "If-None-Match":
        answers.append(world.alice.read("me", "k", headers={header: "unquoted"}))
    for answer in answers:
        assert answer.outcome == (400, "invalid_revision")
        assert [one["pointer"] for one in answer.json["errors"]] == [f"/headers/{header}"]
