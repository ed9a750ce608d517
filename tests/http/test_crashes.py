"""Processes and connections that die in the middle of a request: nothing half written, all of it proved."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import httpx
import pytest
from django.db import connection

from audit.actors import SYSTEM
from tenants.units import unit_of_work
from tests.conftest import PATIENCE, connect, run_service
from tests.http.client import Answer, put
from tests.trails import prove

KEYS = [f"k{number:03}" for number in range(100)]
SERVICE = {"DJANGO_SETTINGS_MODULE": "tests.settings", "WEB_CONCURRENCY": "1"}


@pytest.fixture
def serve(database):
    """Start a service of one's own, which a test may kill."""
    return partial(run_service, "--no-housekeeping", TEST_DATABASE=database, **SERVICE)


@contextmanager
def held(world, key):
    """Hold the row of one record, so that whoever wants to change it waits."""
    with connect("runtime") as holder:
        holder.autocommit = False
        holder.execute("SELECT consentful_enter(%s, %s)", [world.tenant.pk, SYSTEM.as_context()])
        holder.execute("SET LOCAL lock_timeout = 0")
        found = holder.execute(
            "SELECT id FROM consentful_preference WHERE tenant_id = %s AND key = %s FOR UPDATE",
            [world.tenant.pk, key],
        ).fetchall()
        assert len(found) == 1
        yield
        holder.rollback()


def find_waiting():
    """The one database process that waits for a row: the request is in the middle."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        waiting = watch(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND wait_event_type = 'Lock'"
        )
        if waiting:
            ((pid,),) = waiting
            return pid
        time.sleep(0.005)
    pytest.fail("Nobody waits for the row.")


def watch(statement, *parameters):
    """Ask the server itself, beside the service and whatever stands between."""
    with connect("runtime") as watcher:
        return watcher.execute(statement, parameters).fetchall()


def select(statement, *parameters):
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()


def wait_until_gone(pid):
    """Until a database process that lost its client has taken back what it did."""
    deadline = time.monotonic() + PATIENCE
    while watch("SELECT FROM pg_stat_activity WHERE pid = %s", pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def send_batch(url, api, *, atomic=True):
    """Write every key over real HTTP; None where no answer came."""
    operations = [put("me", key, 1, mode="upsert") for key in KEYS]
    path = f"{api.base}/preferences/batch"
    try:
        response = httpx.post(
            url + path, json={"operations": operations, "atomic": atomic}, timeout=PATIENCE,
            headers={"Authorization": f"Bearer {api.token}"},
        )  # fmt: skip
    except httpx.TransportError:
        return None
    return Answer(response, "POST", path)


def stored(world):
    """What stands in the tenant: revision by key."""
    with unit_of_work(tenant_id=world.tenant.pk, actor=SYSTEM):
        return dict(
            select(
                "SELECT key, revision FROM consentful_preference WHERE tenant_id = %s",
                world.tenant.pk,
            )
        )


def told(world):
    """What the trail says must stand there."""
    found = {}
    for event in world.events("preference.created", "preference.replaced"):
        assert event.revision_before == found.get(event.key)
        found[event.key] = event.revision_after
    return found


def kill_service(process):
    """kill -9 of the process that serves and of its workers, at once."""
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(PATIENCE) == -signal.SIGKILL


@pytest.mark.parametrize("atomic", [True, False])
def test_killed_service_in_the_middle_of_a_batch(serve, world, atomic):
    before = {
        key: world.alice.write("me", key, 0).revision for key in (KEYS[0], KEYS[50], KEYS[99])
    }
    for key in list(before):
        with serve() as (url, process), ThreadPoolExecutor() as pool:
            with held(world, key):
                answer = pool.submit(send_batch, url, world.alice, atomic=atomic)
                pid = find_waiting()
                kill_service(process)
                assert answer.result() is None
            wait_until_gone(pid)
        now = stored(world)
        if atomic:
            assert now == before
        else:
            # Each for itself: those before the one that waited, and perhaps that one.
            done = {name for name, revision in now.items() if revision != before.get(name)}
            here = KEYS.index(key)
            assert set(KEYS[:here]) <= done <= set(KEYS[: here + 1])
            before |= now
        assert told(world) == now
        prove(world.tenant)
    with serve() as (url, _):
        answer = send_batch(url, world.alice, atomic=atomic)
        assert answer.status == 200
        assert {one["status"] for one in answer.json["results"]} <= {200, 201}
    assert set(stored(world)) == set(KEYS)
    assert told(world) == stored(world)
    prove(world.tenant)


def test_killed_service_at_any_moment(serve, world):
    """Without a row that holds the batch up: all of it is there, or nothing."""
    for delay in (0.03, 0.15):
        before = stored(world)
        with serve() as (url, process), ThreadPoolExecutor() as pool:
            answer = pool.submit(send_batch, url, world.alice)
            time.sleep(delay)
            kill_service(process)
            answered = answer.result()
        deadline = time.monotonic() + PATIENCE
        while watch(
            "SELECT FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND xact_start IS NOT NULL AND backend_type = 'client backend'"
        ):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        now = stored(world)
        changed = {key for key in KEYS if now.get(key) != before.get(key)}
        assert changed in (set(), set(KEYS))
        if answered is not None:
            assert changed == set(KEYS)
        assert told(world) == now
        prove(world.tenant)


def test_killed_worker_is_followed_by_another(serve, world):
    before = {KEYS[50]: world.alice.write("me", KEYS[50], 0).revision}
    with serve() as (url, process), ThreadPoolExecutor() as pool:
        with held(world, KEYS[50]):
            answer = pool.submit(send_batch, url, world.alice)
            pid = find_waiting()
            for worker in children_of(process.pid):
                os.kill(worker, signal.SIGKILL)
            assert answer.result() is None
        wait_until_gone(pid)
        assert stored(world) == before
        assert told(world) == before
        deadline = time.monotonic() + PATIENCE
        while (again := send_batch(url, world.alice)) is None:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert again.status == 200
    assert told(world) == stored(world)
    prove(world.tenant)


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return [int(child) for child in children.read().split()]


def end_connection_of(world, ask):
    """Ask while a row is held, and end the database connection of whoever waits for it."""
    with ThreadPoolExecutor() as pool, held(world, KEYS[50]):
        answer = pool.submit(ask)
        pid = find_waiting()
        watch("SELECT pg_terminate_backend(%s)", pid)
        return answer.result()


def test_lost_connection_in_the_middle_of_a_batch(server, world):
    before = {KEYS[50]: world.alice.write("me", KEYS[50], 0).revision}
    answer = end_connection_of(world, lambda: send_batch(server, world.alice))
    assert answer.outcome == (503, "store_unavailable")
    assert answer.headers["Retry-After"]
    assert stored(world) == before
    assert told(world) == before
    assert send_batch(server, world.alice).status == 200
    assert told(world) == stored(world)
    prove(world.tenant)


def test_lost_connection_among_operations_for_themselves(server, world):
    world.alice.write("me", KEYS[50], 0)
    answer = end_connection_of(world, lambda: send_batch(server, world.alice, atomic=False))
    assert answer.status == 200
    results = {key: one["status"] for key, one in zip(KEYS, answer.json["results"], strict=True)}
    assert results[KEYS[50]] == 503
    assert set(results.values()) <= {200, 201, 503}
    # What was answered as done stands, and nothing else.
    now = stored(world)
    for key, one in zip(KEYS, answer.json["results"], strict=True):
        if one["status"] == 201:
            assert now.pop(key) == one["body"]["revision"]
    assert set(now) == {KEYS[50]}
    assert told(world) == stored(world)
    assert send_batch(server, world.alice, atomic=False).status == 200
    prove(world.tenant)


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_lost_connection_in_a_single_request(server, world, method):
    before = {KEYS[50]: world.alice.write("me", KEYS[50], 0).revision}
    body = {"value": 1, "revision": before[KEYS[50]]} if method == "PUT" else None
    path = f"{world.alice.base}/preferences/me/{KEYS[50]}"

    def ask():
        response = httpx.request(
            method, server + path, json=body, timeout=PATIENCE,
            headers={"Authorization": f"Bearer {world.alice.token}"},
        )  # fmt: skip
        return Answer(response, method, path)

    assert end_connection_of(world, ask).outcome == (503, "store_unavailable")
    assert stored(world) == told(world) == before
    assert ask().status in (200, 204)
    prove(world.tenant)
