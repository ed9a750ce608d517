"""
The database backend of the standalone service: Django's for PostgreSQL, with two logins.

Here belongs which server and which login a connection uses. The server's life cycle belongs in
`config.embedded`, what the logins are in `config.postgresql.bootstrap`.

A connection uses the runtime login, which owns nothing; `as_owner` changes that for schema
work. The embedded server is started by the first connection, so that commands that need no
database start nothing.
"""

import contextlib
import select
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base
from django.db.transaction import TransactionManagementError
from psycopg import Connection, OperationalError

from config.embedded import PORT, EmbeddedServerError, get_embedded_server
from config.postgresql.bootstrap import prepare_logins_and_database

#: What Django itself gives to a connection; the rest of the parameters says where it leads.
DJANGO_PARAMETERS = frozenset(
    {"dbname", "client_encoding", "cursor_factory", "context", "prepare_threshold"}
)


class DatabaseUnavailable(OperationalError):
    """The database cannot be reached; the message says what to do about it."""


class DatabaseWrapper(base.DatabaseWrapper):
    """
    A connection with two logins, to the embedded server where `OPTIONS` ask for it.

    Read from `OPTIONS`, beside everything that libpq knows:
        owner: the parameters of the owner's connection, complete but for the database's name.
        embedded: the data directory of the embedded server.
    """

    def __init__(self, settings_dict: dict[str, Any], alias: str = "default") -> None:
        super().__init__(settings_dict, alias)
        self._reasons: set[str] = set()

    @property
    def is_owner(self) -> bool:
        """Whether this connection uses the owner's login just now, where there is one."""
        return bool(self.settings_dict["OPTIONS"].get("owner")) and (
            bool(self._reasons) or self.alias == NO_DB_ALIAS
        )

    def become_owner(self, reason: str) -> None:
        """Use the owner's login until every reason for it has been taken back."""
        self._change_reasons(self._reasons | {reason})

    def resign_as_owner(self, reason: str) -> None:
        """Take a reason back; the runtime login returns with the last one."""
        self._change_reasons(self._reasons - {reason})

    @contextlib.contextmanager
    def as_owner(self, reason: str = "as_owner") -> Iterator[None]:
        """Use the owner's login inside this block. Blocks within it change nothing."""
        if reason in self._reasons:
            yield
            return
        self.become_owner(reason)
        try:
            yield
        finally:
            self.resign_as_owner(reason)

    def _change_reasons(self, reasons: set[str]) -> None:
        # A set, not a flag: `flush` inside a block ends with the signal that ends migrations.
        if bool(reasons) != bool(self._reasons) and self.settings_dict["OPTIONS"].get("owner"):
            if self.in_atomic_block:
                raise TransactionManagementError(
                    "The database login cannot be changed inside a transaction."
                )
            self.close()
        self._reasons = reasons

    def is_usable(self) -> bool:
        """
        Whether the server still listens, asked before each request where it may have gone.

        One that closed the connection has left that on the socket, as last words or as its end.
        Only where something lies there is the server asked: each request saves a round trip.
        """
        if self.connection is None or self.connection.closed:
            return False
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLIN)
        return not poll.poll(0) or bool(super().is_usable())

    def get_connection_params(self) -> dict[str, Any]:
        parameters: dict[str, Any] = super().get_connection_params()
        owner = parameters.pop("owner", None)
        directory = parameters.pop("embedded", None)
        if self.is_owner:
            # Nothing of the runtime's login may show through, least of all its password.
            parameters = {
                name: value for name, value in parameters.items() if name in DJANGO_PARAMETERS
            } | owner
        if directory is not None:
            parameters |= {"host": str(_start_embedded(directory)), "port": PORT}
        return parameters

    def get_new_connection(self, conn_params: dict[str, Any]) -> Connection[Any]:
        try:
            connection = self._connect(conn_params)
        except OperationalError as error:
            raise DatabaseUnavailable(_describe(error, self._cure)) from error
        # Reported by the server on connecting, a pooler included: no query of its own.
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            connection.close()
            raise ImproperlyConfigured(
                f"The database is encoded in {encoding}, but values are Unicode."
                " Create it with ENCODING 'UTF8' TEMPLATE template0."
            )
        return connection

    def _connect(self, parameters: dict[str, Any]) -> Connection[Any]:
        try:
            return super().get_new_connection(parameters)  # type: ignore[no-any-return]
        except OperationalError:
            directory = self.settings_dict["OPTIONS"].get("embedded")
            if directory is None:
                raise
            # The embedded server may have been killed: nobody else starts it again.
            host = _start_embedded(directory, again=True)
            return super().get_new_connection(  # type: ignore[no-any-return]
                parameters | {"host": str(host)}
            )

    @property
    def _cure(self) -> str:
        if "embedded" in self.settings_dict["OPTIONS"]:
            return "Look into postgres.log in DATA_DIR, or set DATABASE_URL to use another server."
        name = "DATABASE_OWNER_URL" if self.is_owner else "DATABASE_URL"
        return f"Check that the server runs and that {name} names it."


_prepared: set[Path] = set()
_preparing = threading.Lock()


def _start_embedded(directory: Path, *, again: bool = False) -> Path:
    """Return the folder of the embedded server's socket, with logins and database in place."""
    server = get_embedded_server(directory)
    try:
        host = server.revive() if again else server.acquire()
        with _preparing:
            if server.directory not in _prepared:
                prepare_logins_and_database(host)
                _prepared.add(server.directory)
    except EmbeddedServerError as error:
        raise DatabaseUnavailable(str(error)) from error
    return host


def _describe(error: OperationalError, cure: str) -> str:
    if isinstance(error, DatabaseUnavailable):
        return str(error)
    return f"The database cannot be reached: {str(error).strip()}\n{cure}"
