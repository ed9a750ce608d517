"""Pages, filters, what is withheld, and what applies."""

import pytest

from tests.http.client import delete, put

WHY = {"reason": "asked"}


def test_envelope_and_limits(world):
    for number in range(3):
        world.alice.write("me", f"k{number}", number)
    answer = world.alice.listing()
    assert set(answer.json) == {"results", "next", "previous", "withheld"}
    assert answer.json["next"] is None
    assert answer.json["previous"] is None
    assert answer.keys == ["k0", "k1", "k2"]
    for limit in ("0", "-1", "201", "1000000000", "abc", "", "1.0", " 1", "\u0661"):
        assert world.alice.listing(limit=limit).outcome == (400, "validation_error")
    assert world.alice.listing(limit=200).status == 200
    full = world.alice.listing(limit=3)
    assert full.json["next"] is None


@pytest.mark.parametrize(
    "query",
    ["x=1", "Scope=me", "limit=1&limit=2", "key_prefix=a&key_prefix=b", "cursor=x", "cursor=",
     "scope=me&scope=global", "purpose=a&purpose=b", "limit"],
)  # fmt: skip
def test_refused_parameters(world, query):
    assert world.alice.get(f"preferences?{query}").outcome == (400, "validation_error")


def test_unknown_parameters_everywhere(world):
    for path in ("definitions", "purposes", "whoami", "consents/me", "subjects/me/data",
                 "consents/me/support/history", "preferences/me/k",
                 "preferences/effective?scope=me"):  # fmt: skip
        mark = "&" if "?" in path else "?"
        answer = world.alice.get(f"{path}{mark}nothing=1")
        assert answer.outcome == (400, "validation_error"), path
    assert world.alice.write("me", "k", query={"revision": "0" * 32}).code == "validation_error"
    assert world.alice.decide("me", "support", "refused", query={"x": "1"}).status == 400


def test_C118_pages_while_rows_change(world, frozen):
    who = world.alice
    total = 60
    operations = [
        {"op": "put", "scope": "me", "key": f"k{n:03}", "value": n,
         **({"ttl_seconds": 60} if n % 20 == 19 else {})}
        for n in range(total)
    ]  # fmt: skip
    assert who.batch(*operations).status == 200
    order = who.listing(limit=200).keys
    assert len(order) == total
    turn = iter(range(100))

    def between():
        turn_number = next(turn)
        who.batch(*({"op": "put", "scope": "me", "key": f"new{turn_number}-{n}", "value": 0}
                    for n in range(4)))  # fmt: skip
        if turn_number * 10 < total:
            who.batch(*(delete("me", order[turn_number * 10 + n]) for n in range(3)))
        last = order[total - 1 - turn_number % total]
        if who.read("me", last).status == 200:
            who.write("me", last, "updated", query={"mode": "upsert"})
        frozen.move(60 if turn_number == 1 else 0)

    rows = [one["key"] for one in who.pages(10, between)]
    assert len(rows) == len(set(rows))
    expired = {f"k{n:03}" for n in range(total) if n % 20 == 19}
    touched = {order[start + n] for start in range(0, total, 10) for n in range(3)}
    assert set(order) - expired - touched <= set(rows)


def test_C118_two_hundred_rows_of_one_moment(world, frozen):
    """Between pages, rows come in before the cursor, go behind it, change ahead of it, and expire."""
    who = world.alice
    dying = {n for n in range(200) if n % 20 in (5, 6, 7)}
    for start in (0, 100):
        assert who.batch(*(
            put("me", f"k{n:03}", n, **({"ttl_seconds": 60 + n // 20} if n in dying else {}))
            for n in range(start, start + 100)
        )).status == 200  # fmt: skip
    listed = who.listing(limit=200).json["results"]
    assert len({one["updated_at"] for one in listed}) == 1
    order = [one["key"] for one in listed]
    assert len(order) == 200
    pages, changed, removed = [], set(), set()
    answer = who.listing(limit=20)
    while True:
        pages.append(answer.keys)
        if answer.json["next"] is None:
            break
        number = len(pages)
        assert who.batch(*(put("me", f"a{number}-{n}", 0) for n in range(10))).status == 200
        seen = [key for key in pages[-1] if key.startswith("k")]
        for key in seen[:5]:
            assert who.forget("me", key).status == 204
        removed |= set(seen[:5])
        last = seen[-1] if seen else order[-1]
        ahead = [key for key in order if key > last and int(key[1:]) not in dying][:5]
        for key in ahead:
            assert who.write("me", key, "new", query={"mode": "upsert"}).status == 200
        changed |= set(ahead)
        frozen.move(60 if number == 1 else 1)
        answer = who.get(answer.json["next"].partition("testserver")[2])
        assert answer.status == 200
    rows = [key for page in pages for key in page]
    assert len(rows) == len(set(rows))
    untouched = {key for key in order if int(key[1:]) not in dying}
    assert untouched <= set(rows)
    assert changed <= set(rows)
    assert removed
    # Rows that came in stand at the end of the order, never before what was seen.
    assert [key for key in rows if key.startswith("k")] == sorted(
        key for key in rows if key.startswith("k")
    )


def test_C118_cursors_are_bound(world, make_world):
    for number in range(4):
        world.alice.write("me", f"k{number}", number, tags=["t"])
    path = world.alice.listing(limit=2).json["next"].partition("testserver")[2]
    cursor = path.partition("cursor=")[2].partition("&")[0]
    assert world.alice.get(path).status == 200
    assert world.alice.get(f"preferences?cursor={cursor}").status == 200
    for wrong in (
        cursor[:-1] + ("A" if cursor[-1] != "A" else "B"),
        cursor + "x",
        "x" + cursor,
        "1",
    ):
        answer = world.alice.get(f"preferences?cursor={wrong}")
        assert answer.outcome == (400, "validation_error")
    for filters in ("scope=me", "tag=t", "key_prefix=k", "purpose=service"):
        answer = world.alice.get(f"preferences?{filters}&cursor={cursor}")
        assert answer.outcome == (400, "validation_error")
    other = make_world()
    answer = other.alice.get(f"preferences?cursor={cursor}")
    assert answer.outcome == (400, "validation_error")


def test_filters(world):
    world.alice.give("me", "support")
    world.alice.write("me", "tone", 1, tags=["a", "b"])
    world.alice.write("me", "k1", 1, tags=["a"])
    world.operator.write("project::x", "k2", 1, tags=["b"])
    assert world.alice.listing(tag="a").keys == ["tone", "k1"]
    assert world.alice.listing(tag=["a", "b"]).keys == ["tone"]
    assert world.alice.listing(purpose="support").keys == ["tone"]
    assert world.alice.listing(purpose="nothing").keys == []
    assert world.alice.listing(scope="project::x").keys == ["k2"]
    assert world.alice.listing(scope="me", key_prefix="k").keys == ["k1"]
    assert world.alice.listing().keys == ["tone", "k1", "k2"]


def test_whose_records_a_list_shows(world):
    world.alice.write("me", "k", 1)
    world.bob.write("me", "k", 2)
    world.operator.write("global", "g", 3)
    assert world.alice.listing().keys == world.bound.listing().keys == ["k", "g"]
    assert world.bob.listing().json["results"][0]["value"] == 2
    assert world.operator.listing().keys == world.owner.listing().keys == ["g"]
    assert world.agent.listing().outcome == (400, "invalid_scope")
    assert world.agent.listing(scope="user::bob").json["results"][0]["value"] == 2
    assert world.operator.listing(scope="user::bob", **WHY).keys == ["k"]
    for who in (world.alice, world.bound):
        with world.denied(1):
            assert who.listing(scope="user::bob").outcome == (403, "permission_denied")
    for who in (world.agent, world.operator):
        with world.denied(1):
            assert who.listing(scope="me").outcome == (403, "permission_denied")


def test_role_comes_before_parameters(world):
    for query in ("scope=nonsense", "limit=0", "x=1"):
        answer = world.auditor.get(f"preferences?{query}")
        assert answer.outcome == (403, "permission_denied"), query


def test_withheld(world):
    for purpose in ("support", "ads"):
        world.alice.give("me", purpose)
    world.alice.write("me", "tone", "canary", tags=["t"])
    world.alice.write("me", "banner", 1)
    world.alice.write("me", "k", 1)
    world.alice.withdraw("me", "support")
    with world.denied(0):
        answer = world.alice.listing()
    assert answer.keys == ["banner", "k"]
    named = [{"purpose": "support", "reason": "consent_required"}]
    assert answer.json["withheld"] == named
    assert b"canary" not in answer.content
    assert world.alice.listing(tag="t").json["withheld"] == named
    for query in ({"purpose": "ads"}, {"key_prefix": "b"}, {"scope": "global"}, {"tag": "no"}):
        assert world.alice.listing(**query).json["withheld"] == []
    assert world.bob.listing().json["withheld"] == []
    world.alice.forget("me", "tone")
    assert world.alice.listing().json["withheld"] == []


def effective(who, *scopes, **query):
    answer = who.get("preferences/effective", query={"scope": scopes, **query})
    assert answer.status == 200, answer
    return {one["key"]: one for one in answer.json["results"]}, answer.json["withheld"]


def test_effective_order_and_shadows(world):
    who, branch, project = world.alice, "branch::acme/checkout::main", "project::acme"
    for scope, value in ((branch, "dark"), (project, "light"), ("me", None)):
        who.write(scope, "theme", value)
    found, _ = effective(who, branch, "me", project)
    theme = found["theme"]
    assert set(theme) == {"key", "value", "scope", "revision", "origin", "shadows"}
    assert (theme["value"], theme["scope"], theme["origin"]) == ("dark", branch, "stored")
    assert theme["shadows"] == ["user::alice", project]
    assert theme["revision"] == who.read(branch, "theme").etag
    # A stored null shadows.
    theme = effective(who, "me", project)[0]["theme"]
    assert (theme["value"], theme["scope"], theme["shadows"]) == (None, "user::alice", [project])


def test_effective_defaults(world):
    found, withheld = effective(world.alice, "project::acme")
    assert found == {
        "theme": {"key": "theme", "value": "light", "scope": None, "revision": None,
                  "origin": "default", "shadows": []},
    }  # fmt: skip
    assert withheld == []
    assert effective(world.alice, "me", key=["tone", "theme"])[0].keys() == {"theme"}
    assert effective(world.alice, "me", key="tone")[0] == {}


def test_effective_leaves_out_what_may_not_be_read(world):
    world.alice.give("me", "support")
    world.alice.write("me", "tone", 1)
    world.bob.write("me", "theme", "dark")
    found, withheld = effective(world.alice, "user::bob", "me")
    assert found["theme"]["origin"] == "default"
    assert found["tone"]["value"] == 1
    world.alice.withdraw("me", "support")
    with world.denied(0):
        found, withheld = effective(world.alice, "user::bob", "me")
    assert "tone" not in found
    assert withheld == [{"purpose": "support", "reason": "consent_required"}]
    answer = world.alice.get("preferences/effective")
    assert answer.status == 400
    for key in ("a%0A", ".", ""):
        answer = world.alice.get(f"preferences/effective?scope=me&key={key}")
        assert answer.outcome == (400, "invalid_key")


def test_me_that_stands_for_nobody_comes_before_parameters(world):
    for who in (world.operator, world.agent):
        for query in ("scope=me&x=1", "scope=global&scope=me&key=.", "scope=x&scope=me"):
            with world.denied(1):
                answer = who.get(f"preferences/effective?{query}")
                assert answer.outcome == (403, "permission_denied"), query


def test_a_reason_is_no_filter(world):
    for number in range(3):
        world.alice.write("me", f"k{number}", number)
    page = world.operator.listing(scope="user::alice", limit=2, reason="asked by phone").json
    path = page["next"].partition("testserver")[2]
    assert world.operator.get(path.replace("phone", "letter")).keys == ["k2"]
    (_, event) = world.events("data.disclosed")
    assert event.reason == "asked by letter"
    assert world.operator.get(path.partition("reason")[0]).outcome == (400, "validation_error")
