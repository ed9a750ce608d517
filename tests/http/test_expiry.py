"""A record is gone at its deadline, on every path, before anybody purges."""

import contextlib
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pytest
from django.db import connection

from preferences.jobs import purge_all
from tenants.times import format_time, parse_time
from tests.http.client import delete, get, put, race


def shown(world, key="k"):
    """Return on which paths the record of `key` can be seen."""
    who = world.alice
    seen = set()
    if who.read("me", key).status == 200:
        seen.add("get")
    if who.request("HEAD", f"preferences/me/{key}").status == 200:
        seen.add("head")
    if key in who.listing().keys:
        seen.add("list")
    if key in who.listing(scope="me", key_prefix=key).keys:
        seen.add("filtered")
    if key in who.get("preferences/effective", query={"scope": "me"}).keys:
        seen.add("effective")
    if key in [one["key"] for one in who.get("subjects/me/data").json["preferences"]]:
        seen.add("data")
    if who.batch(get("me", key)).json["results"][0]["status"] == 200:
        seen.add("batch")
    return seen


EVERYWHERE = {"get", "head", "list", "filtered", "effective", "data", "batch"}


def test_C033_gone_at_the_deadline_everywhere(world, frozen):
    written = world.alice.write("me", "k", 1, ttl_seconds=60)
    assert written.status == 201
    start = frozen.now
    frozen.set(start + timedelta(seconds=59.999))
    assert shown(world) == EVERYWHERE
    for seconds in (60, 60.000001, 61):
        frozen.set(start + timedelta(seconds=seconds))
        assert shown(world) == set()
    assert world.alice.read("me", "k").json["detail"] == world.alice.read("me", "no").json["detail"]


def test_C033_writes_see_no_expired_record(world, frozen):
    revision = world.alice.write("me", "k", 1, ttl_seconds=60).revision
    frozen.move(60)
    for answer in (
        world.alice.write("me", "k", 2, revision=revision),
        world.alice.write("me", "k", 2, headers={"If-Match": "*"}),
        world.alice.forget("me", "k", query={"revision": revision}),
    ):
        assert answer.outcome == (409, "stale_revision")
        assert answer.json["current"] is None
    assert world.alice.forget("me", "k").status == 204
    assert world.alice.forget("me", "k").status == 404
    assert world.events("preference.expired")


def test_C035_an_expired_row_blocks_no_create(world, frozen):
    old = world.alice.write(
        "me", "k", 1, ttl_seconds=1, tags=["old"], metadata={"old": 1},
        provenance={"detail": "old", "origin": {"repo": "a/b"}},
    )  # fmt: skip
    frozen.move(2)
    answer = world.alice.write("me", "k", 2, revision=old.revision)
    assert answer.outcome == (409, "stale_revision")
    new = world.alice.write("me", "k", 2)
    assert new.status == 201
    assert new.revision != old.revision
    assert new.json["created_at"] > old.json["created_at"]
    assert new.json["expires_at"] is None
    assert new.json["tags"] == []
    assert new.json["metadata"] == {}
    assert new.json["seen_count"] == 1
    assert new.json["provenance"]["detail"] is None
    assert new.json["provenance"]["origin"] == {}
    trail = [event.action for event in world.events() if event.action.startswith("preference.")]
    assert trail == ["preference.created", "preference.expired", "preference.created"]


@pytest.mark.parametrize("query", [{"mode": "upsert"}, None])
def test_C035_creates_over_an_expired_row(world, frozen, query):
    world.alice.write("me", "k", 0, ttl_seconds=1)
    frozen.move(2)
    answers = race(partial(world.alice.write, "me", "k", n, query=query) for n in range(10))
    statuses = sorted(answer.status for answer in answers)
    assert statuses == ([200] * 9 + [201] if query else [201] + [409] * 9)
    assert len(world.events("preference.expired")) == 1


def test_C036_one_clock(world, frozen, monkeypatch):
    """The database's clock decides, whatever this process believes."""
    real = time.time
    for skew in (-5, 5):
        monkeypatch.setattr(time, "time", lambda skew=skew: real() + skew)
        written = world.alice.write("me", f"k{skew}", 1, ttl_seconds=2).json
        assert written["created_at"] == frozen.now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        until = frozen.now + timedelta(seconds=2)
        assert written["expires_at"] == until.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        assert world.alice.write("me", f"limited{skew}", 1).status == 201
    assert world.alice.write("me", "limited", 1, ttl_seconds=120).status == 201


def test_C036_time_zones_do_not_matter(world, frozen):
    until = frozen.now + timedelta(hours=1)
    for offset, shift in (("+05:30", 5.5), ("-03:30", -3.5), ("Z", 0)):
        text = (until + timedelta(hours=shift)).strftime("%Y-%m-%dT%H:%M:%S") + offset
        written = world.alice.write("me", f"k{shift}", 1, expires_at=text)
        assert written.json["expires_at"] == until.strftime("%Y-%m-%dT%H:%M:%S.000000Z")


@pytest.mark.parametrize("ttl", [True, False, 1.0, 1.5, "60", 0, -1, [], {}, 10**30])
def test_malformed_ttl(world, ttl):
    assert world.alice.write("me", "k", 1, ttl_seconds=ttl).outcome == (400, "invalid_ttl")
    assert world.alice.read("me", "k").status == 404


@pytest.mark.parametrize(
    "moment",
    [
        "2020-01-01T00:00:00Z", "2999-01-01T00:00:00", "2999-01-01", "soon", 1, True, "",
        "9999-12-31T23:59:59Z", "infinity", "2999-02-30T00:00:00Z", "0000-01-01T00:00:00Z",
    ],
)  # fmt: skip
def test_malformed_or_past_deadlines(world, moment):
    assert world.alice.write("me", "k", 1, expires_at=moment).outcome == (400, "invalid_ttl")


def test_both_deadlines(world):
    for ttl, moment in ((1, "2999-01-01T00:00:00Z"), (None, None), (1, None)):
        answer = world.alice.write("me", "k", 1, ttl_seconds=ttl, expires_at=moment)
        assert answer.outcome == (400, "invalid_ttl")


def test_deadline_at_this_very_moment(world, frozen):
    moment = frozen.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert world.alice.write("me", "k", 1, expires_at=moment).outcome == (400, "invalid_ttl")


def test_far_deadlines(world):
    assert world.alice.write("me", "k", 1, ttl_seconds=10**9).status == 201
    assert world.alice.write("me", "l", 1, ttl_seconds=10**12).outcome == (400, "invalid_ttl")


def test_definition_bounds(world, frozen):
    who, start = world.alice, frozen.now

    def until(seconds):
        return (start + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.000000Z")

    created = who.write("me", "limited", 1)
    assert created.json["expires_at"] == until(60)
    replaced = who.write("me", "limited", 1, revision=created.revision, ttl_seconds=120)
    assert replaced.json["expires_at"] == until(120)
    kept = who.write("me", "limited", 1, revision=replaced.revision)
    assert kept.json["expires_at"] == until(120)
    for members in ({"ttl_seconds": 121}, {"ttl_seconds": None}, {"expires_at": None}):
        answer = who.write("me", "limited", 1, revision=kept.revision, **members)
        assert answer.outcome == (400, "invalid_ttl")
    world.alice.give("me", "support")
    assert who.write("me", "reply_style", "brief").json["expires_at"] == until(31536000)


def test_explicit_null_takes_the_deadline_away(world):
    created = world.alice.write("me", "k", 1, ttl_seconds=60)
    assert created.json["expires_at"] is not None
    kept = world.alice.write("me", "k", 1, revision=created.revision)
    assert kept.json["expires_at"] == created.json["expires_at"]
    for_ever = world.alice.write("me", "k", 1, revision=kept.revision, ttl_seconds=None)
    assert for_ever.json["expires_at"] is None


def test_reads_extend_nothing(world, frozen):
    written = world.alice.write("me", "k", 1, ttl_seconds=60).json
    for _ in range(3):
        frozen.move(10)
        assert world.alice.read("me", "k").json == written


def test_purge_takes_what_has_expired_alone(world, frozen):
    revision = world.alice.write("me", "k", 1, ttl_seconds=60).revision
    world.alice.write("me", "l", 1, ttl_seconds=61)
    frozen.move(60)
    purge_all()
    (event,) = world.events("preference.expired")
    assert (event.key, event.actor, event.revision_before) == ("k", "system", revision)
    assert world.alice.listing(scope="me").keys == ["l"]
    assert world.alice.forget("me", "k").status == 404
    again = world.alice.write("me", "k", 2)
    assert again.status == 201
    assert again.revision != revision


def test_expiry_in_a_batch(world, frozen):
    world.alice.write("me", "k", 1, ttl_seconds=1)
    world.alice.write("me", "l", 1, ttl_seconds=1)
    frozen.move(1)
    answer = world.alice.batch(put("me", "k", 2), delete("me", "l"), get("me", "m"))
    assert [one["status"] for one in answer.json["results"]] == [201, 204, 404]


ZONES = ["America/St_Johns", "Pacific/Kiritimati", "Africa/Casablanca"]
#: Hours before clocks go forward and back in the first of them.
CHANGES = ["2030-03-09T22:30:00Z", "2030-11-02T22:30:00Z"]


@pytest.fixture
def in_zone(superuser, database, monkeypatch):
    """Move the process, the session, the login or the database to a time zone for a block."""
    login = connection.settings_dict["USER"]
    places = {"login": f"ROLE {login} IN DATABASE {database}", "database": f"DATABASE {database}"}

    def reconnect():
        connection.close()
        for name in ("timezone", "timezone_name"):
            connection.__dict__.pop(name, None)

    @contextlib.contextmanager
    def move(what, zone):
        with monkeypatch.context() as patch:
            if what == "process":
                patch.setenv("TZ", zone)
            elif what == "session":
                patch.setitem(connection.settings_dict, "TIME_ZONE", zone)
            else:
                superuser.execute(f"ALTER {places[what]} SET timezone = '{zone}'")
            time.tzset()
            reconnect()
            try:
                yield
            finally:
                if what in places:
                    superuser.execute(f"ALTER {places[what]} RESET timezone")
        time.tzset()
        reconnect()

    return move


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("what", ["process", "session", "login", "database"])
def test_C036_no_time_zone_moves_a_deadline(world, frozen, in_zone, what, change):
    """Neither for a stored record nor for a consent, also where a day has 23 or 25 hours."""

    def text(seconds):
        return format_time(start + timedelta(seconds=seconds))

    start, days = parse_time(change), 86_400
    for number, zone in enumerate(ZONES):
        frozen.set(start)
        with in_zone(what, zone):
            who = world.alice
            written = who.write("me", f"k{number}", 1, ttl_seconds=2 * days).json
            assert (written["created_at"], written["expires_at"]) == (text(0), text(2 * days))
            # Half-hourly, through the hour that is left out or comes twice.
            for half in range(8, 18):
                moment = start + timedelta(minutes=30 * half + 30)
                sent = moment.astimezone(ZoneInfo(zone)).isoformat()
                limited = who.write("me", "l", 1, expires_at=sent, query={"mode": "upsert"})
                assert limited.json["expires_at"] == format_time(moment), sent
            given = who.give("me", "support", expires_at=text(days)).json
            assert given["expires_at"] == text(days)
            assert who.write("me", "tone", 1, query={"mode": "upsert"}).status in (200, 201)
            frozen.set(start + timedelta(seconds=days))
            assert who.read("me", "tone").outcome == (403, "consent_required")
            frozen.set(start + timedelta(seconds=2 * days, microseconds=-1))
            assert who.read("me", f"k{number}").json == written
            assert f"k{number}" in who.listing().keys
            frozen.set(start + timedelta(seconds=2 * days))
            assert who.read("me", f"k{number}").status == 404
            assert f"k{number}" not in who.listing().keys


def test_C036_the_longest_deadlines_with_any_clock(world, frozen, monkeypatch):
    """Neither a check of the database nor a far year answers with 500."""
    real = time.time
    for skew in (-5, 5):
        monkeypatch.setattr(time, "time", lambda skew=skew: real() + skew)
        assert world.alice.write("me", f"limited{skew}", 1).outcome == (201, None)
        who = {"query": {"mode": "upsert"}}
        assert world.alice.write("me", "limited", 1, ttl_seconds=120, **who).status in (200, 201)
        assert world.alice.write("me", "limited", 1, ttl_seconds=121, **who).code == "invalid_ttl"
    end = datetime(9999, 12, 31, tzinfo=UTC)
    most = int((end - frozen.now).total_seconds())
    for seconds, status in ((most - 1, 201), (most, 400), (most + 1, 400), (10**12, 400)):
        answer = world.alice.write("me", f"far{seconds}", 1, ttl_seconds=seconds)
        assert answer.status == status, seconds
    assert len(world.alice.listing(key_prefix="far").keys) == 1


def test_C033_what_has_expired_is_not_named_either(world, frozen):
    """Neither as withheld, nor in a later page, nor as what a value shadows."""
    who = world.alice
    who.give("me", "support")
    who.write("me", "tone", 1, ttl_seconds=60)
    for number in range(3):
        who.write("me", f"k{number}", 1, ttl_seconds=60 if number == 2 else None)
    who.write("project::x", "theme", "dark")
    who.write("me", "theme", "light", ttl_seconds=60)
    page = who.listing(scope="me", limit=2).json
    effective = {"scope": ["project::x", "me"], "key": "theme"}
    (theme,) = who.get("preferences/effective", query=effective).json["results"]
    assert theme["shadows"] == ["user::alice"]
    who.withdraw("me", "support")
    assert who.listing().json["withheld"] == [{"purpose": "support", "reason": "consent_required"}]
    frozen.move(60)
    assert who.listing().json["withheld"] == []
    assert who.get("preferences/effective", query={"scope": "me"}).json["withheld"] == []
    (theme,) = who.get("preferences/effective", query=effective).json["results"]
    assert theme["shadows"] == []
    assert who.get(page["next"].partition("testserver")[2]).keys == ["k1"]
    # Without consent, an expired record answers like a live one and like none.
    answers = [who.read("me", key) for key in ("tone", "reply_style")]
    assert {answer.outcome for answer in answers} == {(403, "consent_required")}


def test_C048_the_purge_asks_nobody(world, frozen):
    world.alice.give("me", "support")
    world.alice.write("me", "tone", 1, ttl_seconds=60)
    world.alice.write("me", "reply_style", "brief")
    world.alice.withdraw("me", "support")
    frozen.move(60)
    purge_all()
    assert [event.key for event in world.events("preference.expired")] == ["tone"]
    held = world.alice.get("subjects/me/data").json["preferences"]
    assert [one["key"] for one in held] == ["reply_style"]
    assert world.alice.forget("me", "tone").outcome == (404, "not_found")
