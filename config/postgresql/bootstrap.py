"""
The two logins and the database of the embedded server.

Here belongs what an operator does by hand on a server of their own; nothing here knows Django.
"""

from pathlib import Path

import psycopg
from psycopg import sql

from config.embedded import PORT, SUPERUSER

DATABASE = "consentful"
#: The login that serves requests. It owns nothing, so row-level security holds for it.
RUNTIME = "consentful"
#: The login that migrates. It owns the tables, and creates the databases of test runs.
OWNER = "consentful_owner"

#: Limits sit on the role: a pooler refuses startup options, and a session's leak through it.
RUNTIME_LIMITS = {
    "lock_timeout": "3s",
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": "60s",
}

#: Any number: processes that start together take turns.
_TURN = 6_120_873


def prepare_logins_and_database(socket_directory: Path) -> None:
    """Create the roles and the database where they are missing, as superuser."""
    with psycopg.connect(
        host=str(socket_directory),
        port=PORT,
        user=SUPERUSER,
        dbname="postgres",
        autocommit=True,
    ) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [_TURN])
        for role, rights in ((OWNER, "CREATEDB"), (RUNTIME, "NOCREATEDB")):
            if not _exists(connection, "SELECT FROM pg_roles WHERE rolname = %s", role):
                connection.execute(
                    sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER {}").format(
                        sql.Identifier(role), sql.SQL(rights)
                    )
                )
        for name, value in RUNTIME_LIMITS.items():
            connection.execute(
                sql.SQL("ALTER ROLE {} SET {} = {}").format(
                    sql.Identifier(RUNTIME), sql.Identifier(name), sql.Literal(value)
                )
            )
        if not _exists(connection, "SELECT FROM pg_database WHERE datname = %s", DATABASE):
            connection.execute(
                sql.SQL("CREATE DATABASE {} OWNER {}").format(
                    sql.Identifier(DATABASE), sql.Identifier(OWNER)
                )
            )


def _exists(connection: psycopg.Connection, query: sql.SQL | str, name: str) -> bool:
    return connection.execute(query, [name]).fetchone() is not None
