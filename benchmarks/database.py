"""The database of a run: made, filled, and dropped afterwards; a bare connection to it."""

import contextlib
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from django.db import connection as django_connection

from config.postgresql.base import DatabaseWrapper

FLOORS = Path(__file__).with_name("floors.sql")


def store() -> DatabaseWrapper:
    """Return Django's connection, as the backend of this service that it is."""
    wrapper = django_connection._connections["default"]  # type: ignore[attr-defined]
    if not isinstance(wrapper, DatabaseWrapper):
        raise TypeError("The benchmarks need the service's own database backend.")
    return wrapper


@contextlib.contextmanager
def fresh_database() -> Iterator[str]:
    """Yield the name of a new database with all tables, which is gone after the block."""
    own = store()
    drop_what_was_left()
    name = own.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    # For processes that this one starts.
    os.environ["BENCH_DATABASE"] = name
    try:
        yield name
    finally:
        own.close()
        own.creation.destroy_test_db(name, verbosity=0)


def drop_what_was_left() -> None:
    """Drop databases of runs that were killed: each is named after its process."""
    prefix = str(store().settings_dict["TEST"]["NAME"]).rstrip("0123456789")
    with store()._nodb_cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [prefix])
        for (name,) in cursor.fetchall():
            if not is_running(int(name.removeprefix(prefix))):
                cursor.execute(f'DROP DATABASE IF EXISTS "{name}"')


def connect(*, as_owner: bool = False, **more: Any) -> psycopg.Connection[Any]:
    """Return a bare connection to the run's database that commits by itself."""
    own = store()
    with own.as_owner("benchmarks") if as_owner else contextlib.nullcontext():
        parameters = own.get_connection_params()
    for name in ("context", "cursor_factory", "client_encoding", "prepare_threshold"):
        parameters.pop(name, None)
    return psycopg.connect(**parameters, autocommit=True, **more)


def time_waits() -> dict[str, int]:
    """Return how many microseconds an empty round trip takes, and the flush that a commit waits for."""
    with connect(prepare_threshold=0) as session:
        # Writes to the log and nothing else.
        note = "SELECT pg_logical_emit_message(true, 'benchmarks', '')"
        empty = _time(session, "SELECT 1")
        flushed = _time(session, note)
        session.execute("SET synchronous_commit = off")
        return {"round_trip_us": round(empty), "flush_us": round(flushed - _time(session, note))}


def _time(session: psycopg.Connection[Any], statement: LiteralString) -> float:
    """Return the median of a statement's microseconds."""
    times = []
    for _ in range(300):
        began = time.perf_counter()
        session.execute(statement)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e6


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
