"""Which login a connection uses, and how it comes back after a failure."""

import os
from pathlib import Path

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection, transaction
from django.db.transaction import TransactionManagementError

from config.postgresql.base import DatabaseWrapper
from tests.config.processes import find_processes, run

pytestmark = pytest.mark.skipif(
    not connection.settings_dict["OPTIONS"].get("owner"), reason="one login does everything"
)

QUERY = """
import os, signal, sys
from pathlib import Path
import django
django.setup()
from django.conf import settings
from django.db import connection

def ask(query):
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone()[0]

print(ask("SELECT session_user"))
file = settings.DATA_DIR / "postgres/postmaster.pid"
os.kill(int(file.read_text().splitlines()[0]), signal.SIGKILL)
connection.close()
print(ask("SELECT session_user"))
"""


def ask(query: str) -> object:
    with connection.cursor() as cursor:
        cursor.execute(query)
        row = cursor.fetchone()
    assert row is not None
    return row[0]


def test_requests_use_the_login_that_owns_nothing() -> None:
    assert ask("SELECT session_user") == connection.settings_dict["USER"]
    assert not connection.is_owner
    with pytest.raises(DatabaseError, match="permission denied"):
        ask("CREATE TABLE mine (id int)")
    owned = ask("SELECT count(*) FROM pg_class WHERE relowner = session_user::regrole")
    assert owned == 0


def test_the_owner_is_there_inside_the_block_alone() -> None:
    runtime = ask("SELECT session_user")
    with connection.as_owner():
        assert connection.is_owner
        owner = ask("SELECT session_user")
        with connection.as_owner("another reason"):
            assert ask("SELECT session_user") == owner
        assert ask("SELECT session_user") == owner
    assert ask("SELECT session_user") == runtime != owner


def test_migrations_leave_the_runtime_login() -> None:
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    assert not connection.is_owner


def test_the_login_does_not_change_inside_a_transaction() -> None:
    with transaction.atomic(), pytest.raises(TransactionManagementError), connection.as_owner():
        pass
    assert ask("SELECT session_user") == connection.settings_dict["USER"]


def test_nothing_of_one_login_shows_in_the_other() -> None:
    settings = connection.settings_dict | {
        "HOST": "runtime.example",
        "PASSWORD": "runtime",
        "OPTIONS": {"sslcert": "runtime.crt", "owner": {"user": "boss", "host": "owner.example"}},
    }
    wrapper = DatabaseWrapper(settings)
    assert wrapper.get_connection_params()["password"] == "runtime"
    with wrapper.as_owner():
        parameters = wrapper.get_connection_params()
    assert parameters["user"] == "boss"
    assert parameters["host"] == "owner.example"
    assert not {"password", "sslcert"} & set(parameters)


def test_limits_hold_for_the_runtime_login() -> None:
    assert ask("SHOW lock_timeout") == "3s"
    assert ask("SHOW statement_timeout") == "30s"
    assert ask("SHOW idle_in_transaction_session_timeout") == "1min"


def test_another_encoding_is_refused(superuser: psycopg.Connection) -> None:
    name = f"latin_{os.getpid()}"
    superuser.execute(
        f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' LOCALE_PROVIDER libc"
        " TEMPLATE template0"
    )
    wrapper = DatabaseWrapper(connection.settings_dict | {"NAME": name})
    try:
        with pytest.raises(ImproperlyConfigured, match="encoded in LATIN1"):
            wrapper.ensure_connection()
    finally:
        wrapper.close()
        superuser.execute(f"DROP DATABASE {name}")


def test_a_lost_connection_is_replaced(superuser: psycopg.Connection) -> None:
    pid = ask("SELECT pg_backend_pid()")
    superuser.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
    connection.close_if_unusable_or_obsolete()  # as at the end of a request
    connection.health_check_done = False  # as at the begin of one
    assert ask("SELECT pg_backend_pid()") != pid


def test_a_killed_embedded_server_is_started_again(tmp_path: Path) -> None:
    finished = run(
        "-c", QUERY, DJANGO_SETTINGS_MODULE="config.settings", DATA_DIR=str(tmp_path / "data")
    )
    assert finished.stdout == "consentful\nconsentful\n", finished.stderr
    assert find_processes(tmp_path) == []
