"""
The database of a test run, and the service over it.

Tests commit: what the trail holds cannot be taken back, and guarantees show only between real
transactions. So the database is made once, is open to every test, and is never emptied; each
test works in a tenant of its own.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import setup_databases, teardown_databases
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import InsufficientPrivilege

from config.embedded import SUPERUSER

# Before anything imports it: what it asserts explains itself like a test's own lines.
pytest.register_assert_rewrite("tests.trails")

ROOT = Path(__file__).resolve().parent.parent

#: Seconds that a service may take to start; a machine may be busy.
PATIENCE = 60.0


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment: None, django_db_blocker: Any) -> Iterator[None]:
    """
    Make the database whichever tests were selected, migrated as its owner.

    Not read into memory for a later reset: rows cannot be read without a tenant, nor taken back.
    """
    with django_db_blocker.unblock():
        made = setup_databases(verbosity=0, interactive=False, serialized_aliases=())
        yield
        teardown_databases(made, verbosity=0)


@pytest.fixture(scope="session", autouse=True)
def database(
    django_db_setup: None, django_db_blocker: Any, request: pytest.FixtureRequest
) -> Iterator[str]:
    """The name of the run's database: made once, open to every test, dropped at the end."""
    name = settings.DATABASES["default"]["NAME"]
    with django_db_blocker.unblock():
        drop_databases_of_dead_runs()
        with connect("owner") as owner:
            # Commits are real, but need not survive the machine.
            owner.execute(
                sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(
                    sql.Identifier(name)
                )
            )
        connection.close()
        with connect("runtime", "postgres") as ender:
            # A pooler keeps its connections, and a template must have none.
            ender.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = %s AND usename = current_user",
                [name],
            )
        copy_database(name, f"{name}_empty")
        yield name
        connection.close()
        drop_database(f"{name}_empty")
        with contextlib.suppress(LookupError), connect("superuser") as superuser:
            # Threads of tests may have left connections, which would keep it from being dropped.
            superuser.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = %s AND pid <> pg_backend_pid()",
                [name],
            )


@pytest.fixture
def alone(database: str) -> Iterator[None]:
    """
    A database of this test's own, for what looks at every tenant: those of other tests take long.

    Named by `usefixtures`, so that it is there before anything is written.
    """
    name = f"{database}_alone"
    copy_database(f"{database}_empty", name)
    connection.close()
    connection.settings_dict["NAME"] = name
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = database
        drop_database(name)


def copy_database(template: str, name: str) -> None:
    """Copy a database to which nobody is connected: a moment, where migrating takes seconds."""
    with connect("owner", "postgres") as owner:
        owner.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )


def drop_database(name: str) -> None:
    drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
    with connect("owner", "postgres") as owner:
        for _ in range(60):
            try:
                owner.execute(drop)
                return
            except InsufficientPrivilege:
                time.sleep(0.5)  # the server's own vacuum is in there, and not ours to end
        owner.execute(drop)


@pytest.fixture
def owner_connection(database: str) -> Iterator[psycopg.Connection]:
    """A connection of the login that owns the tables, beside Django's; commits by itself."""
    with connect("owner") as owner:
        yield owner


@pytest.fixture
def as_owner() -> Callable[[str], None]:
    """Execute a statement as the owner of the tables."""

    def execute(statement: str) -> None:
        with connection.as_owner(), connection.cursor() as cursor:
            cursor.execute(statement)

    return execute


@pytest.fixture
def superuser(database: str) -> Iterator[psycopg.Connection]:
    """A connection that may do anything, beside Django's; commits by itself."""
    try:
        connected = connect("superuser")
    except LookupError as missing:
        pytest.skip(str(missing))
    with connected:
        yield connected


def connect(login: str, database: str | None = None) -> psycopg.Connection:
    """
    Return a connection as "runtime", "owner" or "superuser", to the run's database by default.

    It leads past a pooler that the run is behind.

    Raises:
        LookupError: nothing names a superuser.
    """
    with connection.as_owner("tests") if login == "owner" else contextlib.nullcontext():
        parameters = connection.get_connection_params()
    for name in ("context", "cursor_factory", "client_encoding", "prepare_threshold"):
        parameters.pop(name)
    if login == "superuser":
        if "embedded" in connection.settings_dict["OPTIONS"]:
            parameters["user"] = SUPERUSER
        elif os.environ.get("TEST_SUPERUSER_URL"):
            url = conninfo_to_dict(os.environ["TEST_SUPERUSER_URL"])
            parameters = url | {"dbname": parameters["dbname"]}
        else:
            raise LookupError("TEST_SUPERUSER_URL names no superuser.")
    elif login == "runtime" and os.environ.get("TEST_DIRECT_URL"):
        url = conninfo_to_dict(os.environ["TEST_DIRECT_URL"])
        parameters = url | {"dbname": parameters["dbname"]}
    if database is not None:
        parameters["dbname"] = database
    return psycopg.connect(**parameters, autocommit=True)


def drop_databases_of_dead_runs() -> None:
    """Drop what runs left behind that were killed."""
    prefix = settings.TEST_DATABASE_PREFIX
    with connection._nodb_cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [prefix])
        for (name,) in cursor.fetchall():
            # Some runs have more than one: a word follows the number.
            number = name.removeprefix(prefix).partition("_")[0]
            if number.isdigit() and not is_running(int(number)):
                # Another run may be doing the same.
                with contextlib.suppress(Exception):
                    cursor.execute(f'DROP DATABASE IF EXISTS "{name}"')


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def run_service(
    *arguments: str, output: Path | None = None, **environment: str
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """
    Yield the base URL and the process of a service that runs until the block ends.

    Args:
        output: a file for what the service prints, for whoever wants to read it.
    """
    port = find_free_port()
    with output.open("wb+") if output else tempfile.TemporaryFile() as written:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "serve", *arguments],
            cwd=ROOT,
            env=os.environ | {"HOST": "127.0.0.1", "PORT": str(port)} | environment,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
        url = f"http://127.0.0.1:{port}"
        try:
            deadline = time.monotonic() + PATIENCE
            while not answers(f"{url}/healthz"):
                if process.poll() is not None or time.monotonic() > deadline:
                    written.seek(0)
                    pytest.fail(f"The service does not start:\n{written.read().decode()}")
                time.sleep(0.05)
            yield url, process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(scope="session")
def server(database: str) -> Iterator[str]:
    """The base URL of the real service over the run's database, without housekeeping."""
    with run_service(
        "--no-housekeeping",
        DJANGO_SETTINGS_MODULE="tests.settings",
        TEST_DATABASE=database,
        WEB_CONCURRENCY="1",
    ) as (url, _):
        yield url
