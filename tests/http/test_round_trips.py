"""
How often a request goes to the database and back, counted on the wire.

A list of statements would not show what a connection asks for itself, such as whether it lives.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import connection
from psycopg.pq import Trace, version

from tests.http.client import put

pytestmark = pytest.mark.skipif(
    version() < 140000, reason="libpq writes what it sends from version 14 on"
)


class Trips(list[str]):
    """The messages with which a client asks for an answer."""


@contextmanager
def counted() -> Iterator[Trips]:
    """Follow what this thread's connection sends inside the block."""
    connection.ensure_connection()
    trips = Trips()
    with tempfile.TemporaryFile("w+") as trace:
        wire = connection.connection.pgconn
        wire.trace(trace.fileno())
        wire.set_trace_flags(Trace.SUPPRESS_TIMESTAMPS)
        try:
            yield trips
        finally:
            wire.untrace()
        trace.seek(0)
        for line in trace:
            # Who sends, how much, and what; behind them what it holds.
            sender, _, message, *_ = line.split()
            if sender == "F" and message in ("Query", "Sync"):
                trips.append(message)


@pytest.fixture
def warm(world):
    """Alice and an agent, with a record, in a process whose statements are prepared."""
    world.alice.give("me", "support")
    for caller in (world.alice, world.agent):
        for _ in range(3):
            assert caller.write("user::alice", "tone", "brief").status == 201
            assert caller.read("user::alice", "tone").status == 200
            assert caller.delete("preferences/user::alice/tone").status == 204
    world.alice.write("me", "tone", "brief")
    return world


def test_a_trip_is_counted(warm):
    with counted() as trips, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.execute("SELECT %s", [2])
    assert len(trips) == 2


@pytest.mark.parametrize("who", ["alice", "agent"])
def test_a_read_takes_one_trip_beside_the_callers(warm, who):
    api = getattr(warm, who)
    with counted() as trips:
        assert api.read("user::alice", "tone").status == 200
    assert len(trips) == 2


@pytest.mark.parametrize("who", ["alice", "agent"])
def test_a_write_takes_one_trip_beside_the_callers(warm, who):
    api = getattr(warm, who)
    with counted() as trips:
        assert api.write("user::alice", "tone", 2, query={"mode": "upsert"}).status == 200
    assert len(trips) == 2
    with counted() as trips:
        assert api.delete("preferences/user::alice/tone").status == 204
    assert len(trips) == 2


def test_a_new_record_takes_no_more(warm):
    assert warm.bob.read("me", "theme").status == 404
    with counted() as trips:
        assert warm.alice.write("me", "theme", "dark").status == 201
    # The definition of a key is read and compiled once, by the first who writes it.
    assert len(trips) <= 2 + 4
    with counted() as trips:
        assert warm.bob.write("me", "theme", "dark").status == 201
    assert len(trips) == 2


def test_a_request_through_a_persistent_connection_asks_nothing_first(warm):
    """Whether the server still listens shows on the socket."""
    connection.close_if_unusable_or_obsolete()
    connection.health_check_enabled = True
    connection.health_check_done = False
    with counted() as trips:
        assert warm.alice.read("me", "tone").status == 200
    assert len(trips) == 2


@pytest.mark.skipif(
    "TEST_DIRECT_URL" in os.environ, reason="a pooler keeps the client's connection open"
)
def test_a_connection_that_the_server_closed_is_replaced(warm):
    before = connection.connection
    with psycopg.connect(before.info.dsn) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [before.info.backend_pid])
    connection.health_check_enabled = True
    connection.health_check_done = False
    assert warm.alice.read("me", "tone").status == 200
    assert connection.connection is not before


def test_a_batch_takes_as_many_trips_as_its_transaction(warm):
    """However many operations it holds: begin, fence, all of them, commit; and the caller."""
    keys = [f"k{number:02}" for number in range(40)]
    for _ in range(3):
        answer = warm.alice.batch(*[put("me", key, 1, mode="upsert") for key in keys])
        assert answer.status == 200
    with counted() as trips:
        answer = warm.alice.batch(*[put("me", key, 2, mode="upsert") for key in keys])
        assert {one["status"] for one in answer.json["results"]} == {200}
    assert len(trips) == 5
