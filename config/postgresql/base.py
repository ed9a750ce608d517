"""
The database backend: two logins, and the embedded server started at the first connection.

A login, never SET ROLE: that would leak through a pooler and could be undone. Nothing is started
before a connection is asked for, so commands that need no database start none.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg
from django.core.exceptions import ImproperlyConfigured
from django.db import NO_DB_ALIAS
from django.db.backends.postgresql import base
from psycopg import sql

from config.embedded import PORT, EmbeddedServer, EmbeddedServerError

#: The roles and the database of the embedded server; in OPTIONS of a foreign one they are free.
RUNTIME: Final = "consentful"
OWNER: Final = "consentful_owner"
DATABASE: Final = "consentful"

#: They sit on the role, where they hold behind a pooler too.
RUNTIME_LIMITS: Final[Mapping[str, str]] = {
    "lock_timeout": "3s",
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": "60s",
}

MINIMUM_VERSION: Final = 15
_BOOTSTRAP_LOCK: Final = 0x636F6E73656E74


class DatabaseUnreachable(psycopg.OperationalError):
    """The database cannot be used; the message says why and what to do."""


class DatabaseWrapper(base.DatabaseWrapper):
    """
    Connects as the runtime login, or as the owner while there is a reason to.

    OPTIONS may hold `owner`, the connection parameters that differ for the owner, and `embedded`,
    the data directory of the embedded server.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # A set: `flush` sends post_migrate without pre_migrate, which must not end another reason.
        self._reasons: set[str] = set()

    @property
    def is_owner(self) -> bool:
        """Whether the next statement runs as the owner of the tables, where that is another."""
        return self._has_owner and (bool(self._reasons) or self.alias == NO_DB_ALIAS)

    @property
    def _has_owner(self) -> bool:
        return bool(self.settings_dict["OPTIONS"].get("owner"))

    @property
    def _data_dir(self) -> Path | None:
        return self.settings_dict["OPTIONS"].get("embedded")

    def be_owner(self, reason: str, is_wanted: bool) -> None:
        """
        Note or drop one reason to be the owner; reconnects when the login changes.

        Raises:
            RuntimeError: a transaction is open, which a change of login would lose.
        """
        reasons = self._reasons | {reason} if is_wanted else self._reasons - {reason}
        if self._has_owner and bool(reasons) != bool(self._reasons):
            if self.in_atomic_block:
                raise RuntimeError("The login cannot change inside a transaction.")
            self.close()
        self._reasons = reasons

    @contextmanager
    def owner(self) -> Iterator[None]:
        """Run the block as the owner, e.g. to look behind row-level security in a test."""
        reason = f"owner() {object()!r}"
        self.be_owner(reason, True)
        try:
            yield
        finally:
            self.be_owner(reason, False)

    def get_connection_params(self) -> dict[str, Any]:
        params = super().get_connection_params()
        owner = params.pop("owner", None)
        params.pop("embedded", None)
        params.setdefault("connect_timeout", 5)
        if owner and self.is_owner:
            params |= owner
        if self._data_dir is not None:
            params["host"] = str(acquire_embedded(self._data_dir))
            params["port"] = PORT
        return params

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        try:
            connection = super().get_new_connection(conn_params)
        except psycopg.OperationalError as error:
            connection = self._connect_again(conn_params, error)
        try:
            self._check_server(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect_again(self, conn_params: dict[str, Any], error: psycopg.OperationalError) -> Any:
        """Revive an embedded server that died under us; say what to do about another one."""
        if self._data_dir is None:
            name = "DATABASE_OWNER_URL" if self.is_owner else "DATABASE_URL"
            reason = str(error).strip().splitlines()[0]
            raise DatabaseUnreachable(
                f"The database cannot be reached: {reason}. Check {name} and that the server runs,"
                " or unset both addresses to use the embedded PostgreSQL."
            ) from error
        try:
            server_of(self._data_dir).revive()
        except EmbeddedServerError as failure:
            raise DatabaseUnreachable(str(failure)) from failure
        return super().get_new_connection(conn_params)

    def _check_server(self, connection: psycopg.Connection[Any]) -> None:
        if self.alias == NO_DB_ALIAS:
            return  # the maintenance database, where nothing of ours is kept
        encoding = connection.info.parameter_status("server_encoding")
        if encoding not in ("UTF8", None):
            raise DatabaseUnreachable(
                f"The database {connection.info.dbname} is encoded in {encoding}. Create one with"
                " ENCODING 'UTF8' and set DATABASE_URL to it."
            )
        version = connection.info.server_version // 10000
        if version < MINIMUM_VERSION:
            raise DatabaseUnreachable(
                f"The database server is PostgreSQL {version}; version {MINIMUM_VERSION} or later is"
                " needed. Set DATABASE_URL to such a server."
            )


_servers: dict[Path, EmbeddedServer] = {}
_ready: set[Path] = set()
_lock = threading.Lock()


def server_of(data_dir: Path) -> EmbeddedServer:
    """Return this process's one handle on the embedded server of a data directory."""
    return _servers.setdefault(data_dir, EmbeddedServer(data_dir))


def acquire_embedded(data_dir: Path) -> Path:
    """
    Hold the embedded server with its roles and database; return the directory of its socket.

    Raises:
        DatabaseUnreachable: it cannot be started.
    """
    try:
        directory = server_of(data_dir).acquire()
    except EmbeddedServerError as error:
        raise DatabaseUnreachable(str(error)) from error
    with _lock:
        if data_dir not in _ready:
            _create_roles_and_database(directory)
            _ready.add(data_dir)
    return directory


def connect_as_superuser(data_dir: Path, database: str) -> psycopg.Connection[Any]:
    """Open a connection in autocommit mode as the embedded server's superuser."""
    directory = server_of(data_dir).acquire()
    return psycopg.connect(
        host=str(directory), port=PORT, user="postgres", dbname=database, autocommit=True
    )


def _create_roles_and_database(directory: Path) -> None:
    with psycopg.connect(
        host=str(directory), port=PORT, user="postgres", dbname="postgres", autocommit=True
    ) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [_BOOTSTRAP_LOCK])
        roles = {name for (name,) in connection.execute("SELECT rolname FROM pg_roles")}
        if OWNER not in roles:
            # CREATEDB is for the test database.
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN CREATEDB").format(sql.Identifier(OWNER)))
        if RUNTIME not in roles:
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(RUNTIME)))
        for name, value in RUNTIME_LIMITS.items():
            connection.execute(
                sql.SQL("ALTER ROLE {} SET {} = {}").format(
                    sql.Identifier(RUNTIME), sql.Identifier(name), sql.Literal(value)
                )
            )
        databases = {name for (name,) in connection.execute("SELECT datname FROM pg_database")}
        if DATABASE not in databases:
            connection.execute(
                sql.SQL("CREATE DATABASE {} OWNER {} ENCODING 'UTF8'").format(
                    sql.Identifier(DATABASE), sql.Identifier(OWNER)
                )
            )


def runtime_settings(url: str | None, owner_url: str | None, data_dir: Path) -> dict[str, Any]:
    """
    Return Django's description of the database for these addresses.

    Raises:
        ImproperlyConfigured: an address cannot be read. The message does not repeat it: it may
            hold a password.
    """
    described: dict[str, Any] = {
        "ENGINE": "config.postgresql",
        # A broken connection is noticed and replaced at the next request.
        "CONN_MAX_AGE": 600,
        "CONN_HEALTH_CHECKS": True,
        # A pooler may give each statement another server process.
        "DISABLE_SERVER_SIDE_CURSORS": True,
    }
    if url is None:
        if owner_url is not None:
            raise ImproperlyConfigured("DATABASE_OWNER_URL needs DATABASE_URL beside it.")
        options: dict[str, Any] = {"embedded": data_dir, "owner": {"user": OWNER}}
        return described | {"NAME": DATABASE, "USER": RUNTIME, "OPTIONS": options}
    params = _read_url("DATABASE_URL", url)
    if not params.get("dbname"):
        raise ImproperlyConfigured("DATABASE_URL names no database.")
    for key in ("dbname", "user", "password", "host", "port"):
        described[{"dbname": "NAME"}.get(key, key.upper())] = params.pop(key, "")
    options = params
    if owner_url is not None:
        owner = _read_url("DATABASE_OWNER_URL", owner_url)
        # Test databases are created and migrated under their own name.
        owner.pop("dbname", None)
        options["owner"] = owner
    return described | {"OPTIONS": options}


def _read_url(name: str, url: str) -> dict[str, Any]:
    try:
        return dict(psycopg.conninfo.conninfo_to_dict(url))
    except psycopg.ProgrammingError:
        raise ImproperlyConfigured(
            f"{name} is no address of a PostgreSQL database, such as"
            " postgresql://consentful@db.example/consentful."
        ) from None


def runtime_role(described: Mapping[str, Any]) -> str | None:
    """Return the login that serves requests, where migrations use another one."""
    owner = described["OPTIONS"].get("owner")
    user: str = described["USER"]
    return user if owner and owner.get("user", user) != user else None
