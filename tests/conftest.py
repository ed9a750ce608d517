"""
One database for the whole run, and the real server on it.

Tests commit, each in a tenant of its own: the trail refuses TRUNCATE, and what matters here
(locks, commits, row-level security) does not show inside a transaction that is rolled back.
"""

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import setup_databases, teardown_databases


@pytest.fixture(scope="session", autouse=True)
def database(django_test_environment: None, django_db_blocker: Any) -> Iterator[None]:
    """Create the database once, migrated as its owner, and leave it open to every test."""
    with django_db_blocker.unblock():
        created = setup_databases(verbosity=0, interactive=False, serialized_aliases=())
        yield
        teardown_databases(created, verbosity=0)


@pytest.fixture
def as_owner() -> Callable[[str], None]:
    """Execute a statement as the owner of the tables."""

    def execute(statement: str) -> None:
        with connection.as_owner(), connection.cursor() as cursor:
            cursor.execute(statement)

    return execute


@pytest.fixture
def superuser() -> Iterator[psycopg.Connection[Any]]:
    """A connection above all rules, as an attacker of the database would have it."""
    name = connection.settings_dict["NAME"]
    url = os.environ.get("TEST_SUPERUSER_URL")
    if url:
        opened = psycopg.connect(url, dbname=name, autocommit=True)
    else:
        connection.ensure_connection()
        opened = psycopg.connect(
            host=connection.connection.info.host, user="postgres", dbname=name, autocommit=True
        )
    with opened:
        yield opened


@pytest.fixture
def clock(superuser: psycopg.Connection[Any]) -> Iterator[Callable[[str], None]]:
    """Freeze the service's clock at an SQL expression; it runs again after the test."""
    original = superuser.execute(
        "SELECT pg_get_functiondef('consentful_now()'::regprocedure)"
    ).fetchone()
    assert original is not None

    def freeze(expression: str) -> None:
        superuser.execute(
            "CREATE OR REPLACE FUNCTION consentful_now() RETURNS timestamptz"
            f" LANGUAGE sql VOLATILE AS $$ SELECT ({expression})::timestamptz $$"
        )

    yield freeze
    superuser.execute(original[0])


@pytest.fixture(scope="session")
def server(database: None) -> Iterator[str]:
    """The standalone service, as `manage.py serve` runs it, on the database of the tests."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "manage.py", "serve"],
        cwd=settings.BASE_DIR,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "TEST_DATABASE": connection.settings_dict["NAME"],
            "PORT": str(port),
        },
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 30
        while True:
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise RuntimeError(f"The server did not start: {process.communicate()[1]}")
            with suppress(OSError):
                probe_connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                probe_connection.request("GET", "/readyz")
                if probe_connection.getresponse().status == 200:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=30)
