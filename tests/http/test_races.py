"""What writers do to each other, and batches against purges, over real HTTP."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

import httpx
import psycopg
import pytest

from preferences.jobs import purge_all
from tests.conftest import PATIENCE, connect, run_service
from tests.http.client import Answer, delete, put, race
from tests.trails import prove


@pytest.fixture
def count_deadlocks(database):
    """Count the deadlocks of the run's database since the test began."""

    def read(statement, *parameters):
        with connect("runtime") as reader:
            return reader.execute(statement, parameters).fetchone()[0]

    def total():
        return read("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")

    def count():
        # A connection tells what it counted once a second at most, and for certain when it
        # ends: wait for all that were opened meanwhile. A pooler keeps its own open, and passes on
        # one that is about to end unless it saw the end.
        if "TEST_DIRECT_URL" in os.environ:
            with connect("runtime") as ender:
                ender.execute(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE"
                    " datname = current_database() AND state = 'idle' AND usename = current_user"
                )
        deadline = time.monotonic() + PATIENCE
        while read(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
            " AND backend_start > %s",
            start,
        ):
            assert time.monotonic() < deadline, "a connection stays open"
            time.sleep(0.05)
        return total() - before

    start, before = read("SELECT clock_timestamp()"), total()
    return count


def test_deadlocks_are_counted(count_deadlocks):
    """Two connections lock each other out on purpose: else a count of none would prove nothing."""

    def lock(first, second):
        with connect("runtime") as one:
            one.execute("SELECT pg_advisory_lock(%s)", [first])
            both.wait(PATIENCE)
            one.execute("SELECT pg_advisory_lock(%s)", [second])

    both = threading.Barrier(2)
    with ThreadPoolExecutor() as pool:
        jobs = [pool.submit(lock, 1, 2), pool.submit(lock, 2, 1)]
        failed = [job.exception() for job in jobs]
    assert [type(one) for one in failed if one] == [psycopg.errors.DeadlockDetected]
    assert count_deadlocks() == 1


def purge():
    """Housekeeping, as one of the racers: it answers nothing."""
    purge_all()


def send_as(url, api):
    """Requests of one caller over real HTTP, each on a connection of its own."""

    def send(method, path, body=None, **query):
        response = httpx.request(
            method, f"{url}{api.base}/{path}", json=body, params=query, timeout=PATIENCE,
            headers={"Authorization": f"Bearer {api.token}"},
        )  # fmt: skip
        return Answer(response, method, f"{api.base}/{path}")

    return send


def chain_of(world):
    """The revisions of the one record, in the order of the trail."""
    events = world.events("preference.created", "preference.replaced")
    for earlier, later in pairwise(events):
        assert later.revision_before == earlier.revision_after
    return [event.revision_after for event in events]


def test_twenty_writers_over_http(server, world):
    send = send_as(server, world.alice)
    first = send("PUT", "preferences/me/k", {"value": 0})
    answers = race(
        partial(send, "PUT", "preferences/me/k", {"value": n, "revision": first.revision})
        for n in range(20)
    )
    (winner,) = [one for one in answers if one.status == 200]
    losers = [one for one in answers if one is not winner]
    assert [one.outcome for one in losers] == [(409, "stale_revision")] * 19
    now = {name: winner.json[name] for name in ("revision", "updated_at", "expires_at")}
    assert [one.json["current"] for one in losers] == [now] * 19
    assert send("GET", "preferences/me/k").json == winner.json
    assert chain_of(world) == [first.revision, winner.revision]
    prove(world.tenant)


def test_twenty_creators_over_http(server, world):
    send = send_as(server, world.alice)
    answers = race(partial(send, "PUT", "preferences/me/k", {"value": n}) for n in range(20))
    (winner,) = [one for one in answers if one.status == 201]
    losers = [one for one in answers if one is not winner]
    assert [one.outcome for one in losers] == [(409, "already_exists")] * 19
    now = {name: winner.json[name] for name in ("revision", "updated_at", "expires_at")}
    assert [one.json["current"] for one in losers] == [now] * 19
    assert send("GET", "preferences/me/k").json == winner.json
    assert chain_of(world) == [winner.revision]
    prove(world.tenant)


def test_twenty_upserts_over_http(server, world):
    send = send_as(server, world.alice)
    answers = race(
        partial(send, "PUT", "preferences/me/k", {"value": n}, mode="upsert") for n in range(20)
    )
    assert sorted(one.status for one in answers) == [200] * 19 + [201]
    in_order = sorted(answers, key=lambda one: one.json["seen_count"])
    assert [one.json["seen_count"] for one in in_order] == list(range(1, 21))
    assert chain_of(world) == [one.revision for one in in_order]
    assert len({one.json["created_at"] for one in answers}) == 1
    assert send("GET", "preferences/me/k").json == in_order[-1].json
    prove(world.tenant)


def test_batches_purges_and_deletes_over_http(database, world, count_deadlocks):
    """In opposite orders over the same records, in two processes; then both have stopped."""
    names = [f"k{number}" for number in range(8)]
    api = world.alice

    def batch(send, order, *, atomic=True, scopes=("me",), **more):
        operations = [put(scope, name, 1, mode="upsert", **more)
                      for scope in scopes for name in order]  # fmt: skip
        return send("POST", "preferences/batch", {"operations": operations, "atomic": atomic})

    def clear(send, order, *, atomic):
        operations = [delete("me", name) for name in order]
        return send("POST", "preferences/batch", {"operations": operations, "atomic": atomic})

    def loop(step):
        outcomes = set()
        while time.monotonic() < until:
            answer = step()
            if answer is not None:
                outcomes.add(answer.status)
        return outcomes

    with run_service(
        "--no-housekeeping", DJANGO_SETTINGS_MODULE="tests.settings", TEST_DATABASE=database,
        WEB_CONCURRENCY="2",
    ) as (url, _):  # fmt: skip
        send, as_operator = send_as(url, api), send_as(url, world.operator)
        steps = [
            partial(batch, send, names),
            partial(batch, send, names[::-1], ttl_seconds=1),
            partial(batch, as_operator, names[::-1], scopes=("project::x", "user::alice")),
            partial(batch, as_operator, names, scopes=("user::alice", "project::x"), atomic=False),
            partial(clear, send, names[::-1], atomic=True),
            partial(clear, send, names, atomic=False),
            partial(send, "DELETE", "preferences/me/k3"),
            partial(
                send, "PUT", "preferences/me/k5", {"value": 2, "ttl_seconds": 1}, mode="upsert"
            ),
            purge,
        ]
        until = time.monotonic() + 6
        for outcomes in race([partial(loop, step) for step in steps]):
            assert outcomes <= {200, 201, 204, 404}
    assert count_deadlocks() == 0
    listed = {one["key"] for one in api.listing(scope="me").json["results"]}
    assert listed <= set(names)
    prove(world.tenant)
