"""
The few statements that every request runs, by psycopg itself.

Everything else goes through Django's cursors and its ORM. These cost more than such a statement
itself: they quote the parameters into the text, which the server then has to plan as a new one.
"""

from collections.abc import Sequence
from typing import Any

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.types.datetime import TimestamptzLoader

from tenants.units import store


def fetch_row(statement: str, parameters: Sequence[Any]) -> tuple[Any, ...] | None:
    """Return the first row of a statement, or None where there is none; see `fetch_rows`."""
    rows = fetch_rows(statement, parameters)
    return rows[0] if rows else None


def fetch_rows(statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """
    Run a statement on this thread's connection, in its transaction if one is open.

    It is prepared where the connection's `prepare_threshold` says so. Whoever listens to Django's
    statements (a log, a debug toolbar, `execute_wrapper`) gets this one too.

    Args:
        statement: constant text with ``%s`` for each parameter.

    Raises:
        django.db.Error: what Django's cursor would raise.
    """
    connection = store()
    if connection.execute_wrappers or connection.queries_logged:
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            return list(cursor.fetchall())
    # What Django's cursor sees to.
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    connection.validate_thread_sharing()
    connection.validate_no_broken_transaction()
    with connection.wrap_database_errors:
        return _cursor(connection).execute(statement, parameters).fetchall()


def _cursor(connection: BaseDatabaseWrapper) -> psycopg.Cursor[tuple[Any, ...]]:
    """Return the one cursor of a connection: making one costs a quarter of a statement."""
    known: psycopg.Cursor[Any] | None = getattr(connection, "consentful_cursor", None)
    if known is None or known.connection is not connection.connection:
        known = psycopg.Cursor(connection.connection)
        # Django's own makes every moment twice.
        known.adapters.register_loader("timestamptz", TimestamptzLoader)
        connection.consentful_cursor = known  # type: ignore[attr-defined]
    return known
