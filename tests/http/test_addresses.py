"""One parser for scopes and keys, on every path."""

import pytest

from tests.http.client import address, put


@pytest.mark.parametrize(
    "key",
    [
        "python.version", "v1.json", "index.html", "list", "export", "bulk", "batch", "effective",
        "archive", "a b", "a?b", "a#b", "100%", "%2F", "a+b", "a;b", "...", "é", "😀", "me", "a:b",
        "history", "x" * 200,
    ],
)  # fmt: skip
def test_C011_words_and_dots_in_keys(world, key):
    assert world.alice.write("user::alice", key, key).status == 201
    record = world.alice.read("user::alice", key)
    assert record.status == 200
    assert record.json["value"] == record.json["key"] == key


@pytest.mark.parametrize("key", [".", "..", "%2e", "%2E%2e"])
def test_C011_dot_segments(world, key):
    encoded = key if "%" in key else key.replace(".", "%2E")
    for method in ("GET", "PUT", "DELETE"):
        answer = world.alice.request(
            method, f"preferences/user::alice/{encoded}", {"value": 1} if method == "PUT" else None
        )
        assert answer.outcome in {(400, "invalid_key"), (404, "not_found")}
    assert world.alice.batch(put("me", "."), atomic=False).json["results"][0]["status"] == 400


def test_C012_addresses_never_meet(world):
    who = world.operator
    assert who.write("user::a", "b::c", 1).status == 201
    assert who.write("user::a::b", "c", 2).outcome == (400, "invalid_scope")
    assert who.write("branch::o/r::x", "y", 3).status == 201
    assert who.write("repo::o/r", "::x::y", 4).status == 201
    assert who.read("user::a", "b::c", query={"reason": "asked"}).json["value"] == 1
    assert who.read("branch::o/r::x", "y").json["value"] == 3
    assert who.read("repo::o/r", "::x::y").json["value"] == 4
    # A branch may hold slashes: the key begins after the last one.
    assert who.write("branch::o/r::x/y", "z", 5).status == 201
    assert who.write("branch::o/r::x", "z", 6).status == 201
    assert who.read("branch::o/r::x/y", "z").json["value"] == 5
    assert who.read("branch::o/r::x", "z").json["value"] == 6


@pytest.mark.parametrize(
    "key", ["theme\n", " theme", "theme ", "\ttheme", "theme\u00a0", "the\nme"]
)
def test_C015_padding_of_keys(world, key):
    for method in ("GET", "PUT", "DELETE"):
        body = {"value": "dark"} if method == "PUT" else None
        answer = world.alice.request(method, address("me", key), body)
        assert answer.outcome == (400, "invalid_key")
    result = world.alice.batch(put("me", key), atomic=False).json["results"][0]
    assert (result["status"], result["body"]["code"]) == (400, "invalid_key")
    assert world.alice.read("me", "theme").status == 404


@pytest.mark.parametrize(
    "scope", ["user::alice\n", " user::alice", "user:: alice", "me ", "user::"]
)
def test_C015_padding_of_scopes(world, scope):
    assert world.alice.write(scope, "theme", "dark").outcome == (400, "invalid_scope")
    assert world.alice.read(scope, "theme").outcome == (400, "invalid_scope")
    assert world.alice.listing(scope=scope).outcome == (400, "invalid_scope")
    assert world.alice.get("preferences/effective", query={"scope": scope}).code == "invalid_scope"
    result = world.alice.batch(put(scope, "theme"), atomic=False).json["results"][0]
    assert (result["status"], result["body"]["code"]) == (400, "invalid_scope")
    assert world.alice.read("me", "theme").status == 404


@pytest.mark.parametrize(
    ("scope", "folded"),
    [
        ("repo::Acme/Checkout", "repo::acme/checkout"),
        ("project::Acme", "project::acme"),
        ("branch::Acme/Checkout::Main", "branch::acme/checkout::Main"),
    ],
)
def test_C017_owner_and_repository_fold(world, scope, folded):
    who = world.operator
    assert who.write(scope, "k", 1).json["scope"] == folded
    assert who.read(folded, "k").json["value"] == 1
    assert who.write(folded, "k", 2).outcome == (409, "already_exists")
    assert who.listing(scope=scope).json["results"][0]["scope"] == folded
    result = who.batch(put(scope, "k", 3), atomic=False).json["results"][0]
    assert result["body"]["code"] == "already_exists"
    found = who.get("preferences/effective", query={"scope": scope, "key": "k"}).json["results"]
    assert found[0]["scope"] == folded


def test_C017_branches_subjects_and_keys_do_not_fold(world):
    who = world.operator
    assert who.write("branch::Acme/Checkout::Feat/X", "k", 1).status == 201
    assert who.write("branch::acme/checkout::feat/x", "k", 2).status == 201
    assert who.write("user::Carol", "k", 3).status == 201
    assert who.write("user::carol", "k", 4).status == 201
    assert who.write("user::carol", "K", 5).status == 201


def test_keys_are_nfc(world):
    assert world.alice.write("me", "caf\u0065\u0301", 1).json["key"] == "caf\u00e9"
    assert world.alice.read("me", "caf\u00e9").status == 200
    assert world.alice.write("me", "caf\u00e9", 2).outcome == (409, "already_exists")


@pytest.mark.parametrize(
    "key", ["a\u200bb", "a\u202eb", "a\u00adb", "a\u0000b", "a\u0007b", "x" * 201, "a\u2028b"]
)
def test_refused_keys(world, key):
    assert world.alice.write("me", key).outcome == (400, "invalid_key")


def test_unassigned_characters_are_refused_on_creation_alone(world):
    assert world.alice.write("me", "a\u0378").outcome == (400, "invalid_key")
    assert world.alice.read("me", "a\u0378").outcome == (404, "not_found")
    assert world.alice.forget("me", "a\u0378").outcome == (404, "not_found")


@pytest.mark.parametrize(
    "scope",
    [
        "global::x", "team::x", "repo::acme", "repo::a/b/c", "branch::a/b", "project::a*",
        "project::a/b", "user::a/b", "branch::a/b::", "branch::a/b::x//y", "repo::../x", "x",
        "project::" + "x" * 201, "USER::alice", "Me",
    ],
)  # fmt: skip
def test_refused_scopes(world, scope):
    assert world.operator.write(scope, "k").outcome == (400, "invalid_scope")


def test_path_that_is_no_utf8(world):
    answer = world.alice.get("preferences/me/%FF")
    assert answer.status == 400


def test_key_is_missing(world):
    assert world.alice.get("preferences/me/").outcome == (400, "invalid_key")
    assert world.alice.get("preferences/me").status == 400


def test_C067_exact_scopes_and_literal_prefixes(world, make_world):
    who, why = world.operator, {"reason": "asked"}
    scopes = ["user::a", "user::ab", "user::a_b", "user::axb", "user::100%"]
    scopes += ["project::acme", "project::acme-corp"]
    for scope in scopes:
        for key in ("look", "the_me", "theXme"):
            assert who.write(scope, key, scope).status == 201
    for scope in scopes:
        rows = who.listing(scope=scope, **why).json["results"]
        assert [one["value"] for one in rows] == [scope] * 3
        rows = who.listing(scope=scope, key_prefix="the_", **why).json["results"]
        assert [one["key"] for one in rows] == ["the_me"]
    for prefix in ("100%", "the\\_", "\\", "%", "_", "THE"):
        assert who.listing(scope="project::acme", key_prefix=prefix).keys == []
    assert len(who.listing(scope="project::acme", key_prefix="").keys) == 3
    assert len(who.listing(key_prefix="").keys) == 6
    assert make_world().operator.listing().keys == []


def test_C067_prefixes_of_keys_that_hold_wildcards(world):
    who = world.alice
    for key in ("100%", "100%x", "100x", "a\\b", "a\\_b", "ab", "_", "__", "caf\u00e9", "cafe"):
        assert who.write("me", key, 1).status == 201
    for prefix, keys in {
        "100%": ["100%", "100%x"], "a\\": ["a\\b", "a\\_b"], "a\\_": ["a\\_b"], "_": ["_", "__"],
        "__": ["__"], "\\": [], "%": [],
        # Keys are in NFC, and so is what they begin with.
        "cafe\u0301": ["caf\u00e9"], "caf\u00e9": ["caf\u00e9"], "caf": ["caf\u00e9", "cafe"],
    }.items():  # fmt: skip
        assert who.listing(scope="me", key_prefix=prefix).keys == keys, prefix


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("preferences", {}),
        ("preferences/effective", {}),
        ("preferences/ranked", {}),
        ("preferences/search", {"q": "tea"}),
        ("audit", {}),
    ],
)
def test_a_malformed_scope_in_a_query_is_pointed_at_there(world, path, more):
    who = world.auditor if path == "audit" else world.alice
    answer = who.get(path, query={"scope": "nowhere", **more})
    assert answer.outcome == (400, "invalid_scope")
    assert answer.json["errors"][0]["pointer"] == "/query/scope"
