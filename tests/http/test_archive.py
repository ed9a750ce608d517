"""What is archived is out of every read without being lost."""

import pytest

from tests.http.client import get, put, race
from tests.trails import prove

OLD = "0" * 32


def archive(who, scope, key, revision, **more):
    return who.post(
        "preferences/archive", {"scope": scope, "key": key, "revision": revision}, **more
    )


def restore(who, scope, key, revision, **more):
    return who.post(
        "preferences/restore", {"scope": scope, "key": key, "revision": revision}, **more
    )


@pytest.fixture
def archived(world):
    """Alice's record `k`, archived: the answer to that."""
    written = world.alice.write("me", "k", {"a": 1}, tags=["t"], metadata={"m": 1})
    answer = archive(world.alice, "me", "k", written.revision)
    assert answer.status == 200
    return answer


def test_archiving_answers_the_record_and_leaves_all_but_its_revision(world):
    written = world.alice.write("me", "k", {"a": 1}, tags=["t"], metadata={"m": 1}, ttl_seconds=900)
    answer = archive(world.alice, "me", "k", written.revision)
    assert answer.status == 200
    assert answer.revision != written.revision
    body = dict(answer.json)
    assert body.pop("archived_at") > body["updated_at"]
    assert body == {**written.json, "revision": answer.revision}

    back = restore(world.alice, "user::alice", "k", answer.revision)
    assert back.status == 200
    assert back.json == {**written.json, "revision": back.revision}
    assert len({written.revision, answer.revision, back.revision}) == 3
    assert world.alice.read("me", "k").json == back.json


def test_it_is_out_of_every_read(world, archived):
    alice = world.alice
    assert alice.read("me", "k").outcome == (404, "not_found")
    assert alice.read("me", "k", headers={"If-None-Match": "*"}).outcome == (404, "not_found")
    assert alice.request("HEAD", "preferences/me/k").status == 404
    assert alice.listing().keys == []
    assert alice.listing(scope="me", tag="t", key_prefix="k", archived="false").keys == []
    assert alice.get("preferences/effective", query={"scope": "me", "key": "k"}).keys == []
    (found,) = alice.batch(get("me", "k")).json["results"]
    assert found["status"] == 404
    # What it stood over applies again.
    theme = alice.write("me", "theme", "dark")
    archive(alice, "me", "theme", theme.revision)
    (applies,) = alice.get("preferences/effective", query={"scope": "me", "key": "theme"}).json[
        "results"
    ]
    assert (applies["origin"], applies["value"]) == ("default", "light")


def test_only_a_list_that_asks_for_it_has_it(world, archived):
    world.alice.write("me", "live")
    listed = world.alice.listing(scope="me", archived="true")
    assert listed.json["results"] == [archived.json]
    assert world.alice.listing(archived="true").keys == ["k"]
    assert world.alice.listing(scope="me").keys == ["live"]
    for text in ("", "1", "True", "yes"):
        answer = world.alice.listing(archived=text)
        assert answer.outcome == (400, "validation_error")
        assert answer.json["errors"][0]["pointer"] == "/query/archived"


def test_pages_of_what_is_archived_stay_among_it(world):
    for number in range(5):
        written = world.alice.write("me", f"k{number}")
        archive(world.alice, "me", f"k{number}", written.revision)
        world.alice.write("me", f"live{number}")
    rows = world.alice.pages(2, scope="me", archived="true")
    assert [one["key"] for one in rows] == [f"k{number}" for number in range(5)]


def test_nothing_is_written_over_it(world, archived):
    alice = world.alice
    current = {
        name: archived.json[name]
        for name in ("revision", "updated_at", "expires_at", "archived_at")
    }
    for outcome, answer in [
        ((409, "already_exists"), alice.write("me", "k", 2)),
        ((409, "already_exists"), alice.write("me", "k", 2, query={"mode": "upsert"})),
        ((412, "already_exists"), alice.write("me", "k", 2, headers={"If-None-Match": "*"})),
        ((409, "stale_revision"), alice.write("me", "k", 2, revision=archived.revision)),
        ((409, "stale_revision"), alice.write("me", "k", 2, headers={"If-Match": "*"})),
    ]:
        assert answer.outcome == outcome
        assert answer.json["current"] == current
        assert "archived" in answer.json["detail"]
    refused = alice.batch(put("me", "k", 2))
    assert refused.outcome == (409, "already_exists")
    assert alice.listing(archived="true").json["results"] == [archived.json]


def test_it_can_be_deleted(world):
    for query in ({}, {"revision": None}):
        written = world.alice.write("me", "k")
        answer = archive(world.alice, "me", "k", written.revision)
        if query:
            assert world.alice.forget("me", "k", query={"revision": OLD}).status == 409
            query = {"revision": answer.revision}
        assert world.alice.forget("me", "k", query=query).status == 204
        assert world.alice.listing(archived="true").keys == []
    assert world.alice.forget("me", "k").status == 404


@pytest.mark.parametrize("change", [archive, restore])
def test_only_the_newest_version_changes(world, change):
    assert change(world.alice, "me", "k", OLD).outcome == (409, "stale_revision")
    assert change(world.alice, "me", "k", OLD).json["current"] is None
    first = world.alice.write("me", "k", 1)
    second = world.alice.write("me", "k", 2, revision=first.revision)
    refused = change(world.alice, "me", "k", first.revision)
    assert refused.outcome == (409, "stale_revision")
    assert refused.json["current"]["revision"] == second.revision
    assert world.alice.read("me", "k").revision == second.revision


def test_the_refusal_says_what_would_help(world, archived):
    older = restore(world.alice, "me", "k", OLD)
    assert older.outcome == (409, "stale_revision")
    assert older.json["current"]["revision"] == archived.revision
    assert "restore it first" not in older.json["detail"]
    replaced = world.alice.write("me", "k", 2, revision=archived.revision)
    assert "restore it first" in replaced.json["detail"]


def test_neither_is_done_twice(world, archived):
    again = archive(world.alice, "me", "k", archived.revision)
    assert again.outcome == (409, "stale_revision")
    assert again.json["current"]["revision"] == archived.revision
    back = restore(world.alice, "me", "k", archived.revision)
    again = restore(world.alice, "me", "k", back.revision)
    assert again.outcome == (409, "already_exists")
    assert again.json["current"]["revision"] == back.revision


@pytest.mark.parametrize("path", ["preferences/archive", "preferences/restore"])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"key": "k", "revision": OLD}, "invalid_scope"),
        ({"scope": "user::", "key": "k", "revision": OLD}, "invalid_scope"),
        ({"scope": "me", "revision": OLD}, "invalid_key"),
        ({"scope": "me", "key": "a/b", "revision": OLD}, "invalid_key"),
        ({"scope": "me", "key": "k"}, "invalid_revision"),
        ({"scope": "me", "key": "k", "revision": None}, "invalid_revision"),
        ({"scope": "me", "key": "k", "revision": "*"}, "invalid_revision"),
        ({"scope": "me", "key": "k", "revision": OLD, "value": 1}, "validation_error"),
        ([], "validation_error"),
    ],
)
def test_what_is_malformed(world, path, body, code):
    assert world.alice.post(path, body).outcome == (400, code)
    assert world.alice.get(path).status == 405


def test_an_expired_one_is_gone_like_any_other(world, frozen):
    written = world.alice.write("me", "k", 1, ttl_seconds=60)
    answer = archive(world.alice, "me", "k", written.revision)
    frozen.move(60)
    assert restore(world.alice, "me", "k", answer.revision).outcome == (409, "stale_revision")
    assert world.alice.listing(archived="true").keys == []
    anew = world.alice.write("me", "k", 2)
    assert anew.status == 201
    assert "archived_at" not in anew.json


def test_the_gate_is_that_of_a_write(world):
    world.alice.give("me", "support")
    written = world.alice.write("me", "tone", "brief")
    world.alice.withdraw("me", "support")
    with world.denied(1):
        refused = archive(world.alice, "me", "tone", written.revision)
    assert refused.outcome == (403, "consent_required")
    world.alice.give("me", "support")
    answer = archive(world.alice, "me", "tone", written.revision)
    world.alice.withdraw("me", "support")
    assert restore(world.alice, "me", "tone", answer.revision).outcome == (403, "consent_required")
    # A list of what is archived withholds as any list does.
    listed = world.alice.listing(scope="me", archived="true").json
    assert listed["results"] == []
    assert listed["withheld"] == [{"purpose": "support", "reason": "consent_required"}]
    assert world.alice.listing(scope="me").json["withheld"] == []


def test_whoever_may_not_write_may_not_archive(world):
    policy = world.operator.write("project::x", "policy", 1)
    note = world.operator.write("user::alice", "staff_note", 1)
    theme = world.alice.write("me", "theme", "dark")
    with world.denied(3):
        for who, scope, key, revision in [
            (world.alice, "project::x", "policy", policy.revision),
            (world.alice, "me", "staff_note", note.revision),
            (world.bob, "user::alice", "theme", theme.revision),
        ]:
            assert archive(who, scope, key, revision).outcome == (403, "permission_denied")
    assert archive(world.operator, "project::x", "policy", policy.revision).status == 200


def test_a_repeated_request_is_answered_again(world):
    written = world.alice.write("me", "k", "v")
    once = {"headers": {"Idempotency-Key": "x"}}
    first = archive(world.alice, "me", "k", written.revision, **once)
    again = archive(world.alice, "me", "k", written.revision, **once)
    assert again.json == first.json
    assert again.headers["Idempotency-Replayed"] == "true"
    # What is kept holds no value: once the record has changed, none is told.
    restore(world.alice, "me", "k", first.revision)
    last = archive(world.alice, "me", "k", written.revision, **once)
    assert last.json == {**first.json, "value": None, "type": "null", "tags": [], "metadata": {}}


def test_the_person_is_told_of_it_and_the_trail_too(world, archived):
    data = world.alice.get("subjects/me/data").json
    (held,) = data["preferences"]
    assert {**held, **archived.json} == held
    export = world.alice.get("subjects/me/export")
    assert export.status == 200
    assert archived.json["archived_at"].encode() in export.content
    restore(world.alice, "me", "k", archived.revision)
    (event,) = world.events("preference.archived")
    assert event.changed == ["archived_at"]
    assert event.revision_after == archived.revision
    prove(world.tenant)


def test_of_ten_who_archive_at_once_one_does(world):
    written = world.alice.write("me", "k")
    who = [lambda: archive(world.alice, "me", "k", written.revision).outcome] * 10
    assert sorted(race(who)) == [(200, None)] + [(409, "stale_revision")] * 9
    assert len(world.events("preference.archived")) == 1
