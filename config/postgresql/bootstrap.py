"""
The two logins and the database of the embedded server.

Here belongs what an operator does by hand on a server of their own; nothing here knows Django.
"""

from pathlib import Path

import psycopg

from config.embedded import PORT, SUPERUSER

#: Names that `logins.sql` uses too.
DATABASE = "consentful"
RUNTIME = "consentful"
OWNER = "consentful_owner"

LOGINS = Path(__file__).with_name("logins.sql")

#: Any number: processes that start together take turns.
TURN = 6_120_873


def prepare_logins_and_database(socket_directory: Path) -> None:
    """Create the logins and the database where they are missing, as superuser."""
    with psycopg.connect(
        host=str(socket_directory),
        port=PORT,
        user=SUPERUSER,
        dbname="postgres",
        autocommit=True,
    ) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [TURN])
        connection.execute(LOGINS.read_bytes())
        # Test runs make databases of their own.
        connection.execute("ALTER ROLE consentful_owner CREATEDB")
        found = connection.execute("SELECT FROM pg_database WHERE datname = 'consentful'")
        if found.fetchone() is None:
            connection.execute("CREATE DATABASE consentful OWNER consentful_owner")
