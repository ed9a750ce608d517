"""One name in several places: each person of each tenant has a thing of its own by it."""

import pytest

from tests.factories import make_persona
from tests.http.client import API, delete, get, put


@pytest.fixture
def three(world, make_world):
    """alice and bob of one tenant, and the same alice in another one."""
    return {"alice": world.alice, "bob": world.bob, "elsewhere": make_world().alice}


def test_C069_the_same_key_of_three_persons(three):
    """No look-up goes by a name alone."""
    revisions = {name: who.write("me", "s1", name).revision for name, who in three.items()}
    assert len(set(revisions.values())) == 3
    for name, who in three.items():
        assert who.read("me", "s1").json["value"] == name
        assert [one["value"] for one in who.listing().json["results"]] == [name]
        held = who.get("subjects/me/data").json["preferences"]
        assert [one["value"] for one in held] == [name]
        found = who.get("preferences/effective", query={"scope": "me", "key": "s1"}).json
        assert [one["value"] for one in found["results"]] == [name]
        for other in set(three) - {name}:
            for answer in (
                who.write("me", "s1", "x", revision=revisions[other]),
                who.forget("me", "s1", query={"revision": revisions[other]}),
            ):
                assert answer.outcome == (409, "stale_revision")
                assert answer.json["current"]["revision"] == revisions[name]
            stale = who.batch(put("me", "s1", "x", revision=revisions[other]))
            assert stale.outcome == (409, "stale_revision")
            same = who.read("me", "s1", headers={"If-None-Match": f'"{revisions[other]}"'})
            assert same.status == 200
    answer = three["bob"].write("user::alice", "s1", "x", query={"mode": "upsert"})
    assert answer.outcome == (403, "permission_denied")
    assert three["alice"].batch(delete("me", "s1")).status == 200
    assert three["alice"].read("me", "s1").status == 404
    for name in ("bob", "elsewhere"):
        assert three[name].batch(get("me", "s1")).json["results"][0]["body"]["value"] == name


def test_C069_consent_of_three_persons(three):
    for who in three.values():
        assert who.give("me", "support").status == 200
    entries = {name: who.get("consents/me").json["results"][0]["entry"]
               for name, who in three.items()}  # fmt: skip
    assert len(set(entries.values())) == 3
    stale = three["bob"].withdraw("me", "support", entry=entries["alice"])
    assert stale.outcome == (409, "stale_revision")
    assert three["alice"].withdraw("me", "support").status == 200
    assert [who.status_of("me", "support") for who in three.values()] == [
        "withdrawn", "given", "given",
    ]  # fmt: skip
    assert three["alice"].write("me", "tone", 1).outcome == (403, "consent_required")
    assert three["bob"].write("me", "tone", 1).status == 201
    assert three["elsewhere"].write("me", "tone", 1).status == 201


def test_C069_idempotency_keys_of_three_persons(three):
    once = {"Idempotency-Key": "s1"}
    first = {name: who.write("me", "k", 1, headers=once) for name, who in three.items()}
    assert {answer.status for answer in first.values()} == {201}
    for name, who in three.items():
        again = who.write("me", "k", 1, headers=once)
        assert again.headers["Idempotency-Replayed"] == "true"
        assert again.json == first[name].json


def test_C069_cursors_of_two_tenants(world, make_world):
    """A cursor is worth nothing where its path does not lead, whatever credential it comes with."""
    other = make_world()
    tokens = []
    for each in (world, other):
        for number in range(3):
            assert each.alice.write("me", f"k{number}", number).status == 201
        tokens.append(make_persona(each.tenant, "alice").token)
    following = world.alice.listing(limit=1).json["next"].partition("testserver")[2]
    assert API(world.tenant.slug, tokens[1]).get(following).outcome == (404, "not_found")
    moved = following.replace(world.tenant.slug, other.tenant.slug)
    assert other.alice.get(moved).outcome == (400, "validation_error")
    assert world.alice.get(following).keys == ["k1"]
