"""
What the environment says, parsed and checked: the only way the service is configured.

Here belongs the reading of one variable each; what Django makes of them belongs in
`config.settings`. Every refusal is one line that names the variable, and never its value: a
URL holds a password.
"""

import ipaddress
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from config.postgresql.bootstrap import DATABASE, OWNER, RUNTIME

#: Seconds until a database that does not answer counts as unreachable.
CONNECT_SECONDS = 5

#: Seconds that an idle connection is kept; it is tested before each use.
IDLE_SECONDS = 600

#: Characters; what `openssl rand -hex 16` prints has twice as many.
SHORTEST_SECRET = 16


def read_text(name: str, default: str = "") -> str:
    """Return the variable without surrounding blanks; an empty one counts as unset."""
    return os.environ.get(name, "").strip() or default


def read_flag(name: str) -> bool:
    text = read_text(name, "0").lower()
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off"):
        return False
    raise ImproperlyConfigured(f"{name} must be 1 or 0.")


def read_number(name: str, default: int, *, least: int, most: int) -> int:
    text = read_text(name, str(default))
    if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
        raise ImproperlyConfigured(f"{name} must be a number from {least} to {most}.")
    return int(text)


def read_list(name: str) -> list[str]:
    return [part.strip() for part in read_text(name).split(",") if part.strip()]


def read_command(name: str) -> list[str]:
    """Return a command with its arguments, quoted as for a shell; empty where none is named."""
    try:
        return shlex.split(read_text(name))
    except ValueError as fault:
        raise ImproperlyConfigured(f"{name} is no command line: {fault}.") from fault


def read_choice(name: str, choices: Sequence[str]) -> str:
    """Return one of the words; the first one where the variable is unset."""
    text = read_text(name, choices[0])
    if text not in choices:
        raise ImproperlyConfigured(f"{name} must be {' or '.join(choices)}.")
    return text


def read_secret(name: str) -> str | None:
    """Return a bearer token that strangers cannot guess, or None where the variable is unset."""
    text = read_text(name)
    if text and (len(text) < SHORTEST_SECRET or not all("!" <= one <= "~" for one in text)):
        raise ImproperlyConfigured(
            f"{name} must have at least {SHORTEST_SECRET} visible ASCII characters."
        )
    return text or None


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read_database(data_directory: Path) -> dict[str, Any]:
    """
    Return Django's settings of the one database.

    `DATABASE_URL` names the server and the login that serves, in any form that libpq knows;
    without it, the embedded server is used. `DATABASE_OWNER_URL` names the login that migrates;
    without it, one login does both. `PREPARED_STATEMENTS` says that no pooler stands between, or one
    that knows prepared statements.
    """
    shared = {
        "ENGINE": "config.postgresql",
        "CONN_MAX_AGE": IDLE_SECONDS,
        # A connection that the server closed is replaced, so that recovery needs no restart.
        "CONN_HEALTH_CHECKS": True,
        # Behind a pooler in transaction mode the next statement may reach another session.
        "DISABLE_SERVER_SIDE_CURSORS": True,
    }
    if not read_text("DATABASE_URL"):
        if read_text("DATABASE_OWNER_URL"):
            raise ImproperlyConfigured("DATABASE_OWNER_URL needs DATABASE_URL beside it.")
        return shared | {
            "NAME": DATABASE,
            "USER": RUNTIME,
            # No pooler stands between, which might hand a prepared statement to somebody else.
            "OPTIONS": {
                "embedded": data_directory,
                "owner": {"user": OWNER},
                "prepare_threshold": 1,
            },
        }
    login = _read_connection("DATABASE_URL")
    name = login.pop("dbname")
    options: dict[str, Any] = {"connect_timeout": CONNECT_SECONDS}
    if read_text("DATABASE_OWNER_URL"):
        owner = _read_connection("DATABASE_OWNER_URL")
        if owner.pop("dbname") != name:
            raise ImproperlyConfigured(
                "DATABASE_OWNER_URL and DATABASE_URL must name the same database."
            )
        options["owner"] = options | owner
    if read_flag("PREPARED_STATEMENTS"):
        options["prepare_threshold"] = 1
    return shared | {
        "NAME": name,
        "USER": login.pop("user", ""),
        "PASSWORD": login.pop("password", ""),
        "HOST": login.pop("host", ""),
        "PORT": login.pop("port", ""),
        "OPTIONS": options | login,
    }


def find_runtime_role(database: Mapping[str, Any]) -> str | None:
    """Return the login that serves, where another one migrates and grants it its rights."""
    return database.get("USER") if database["OPTIONS"].get("owner") else None


def _read_connection(name: str) -> dict[str, Any]:
    try:
        parameters = dict(conninfo_to_dict(read_text(name)))
    except ProgrammingError:
        parameters = {}  # libpq's words quote the URL
    if not parameters.get("dbname") or not parameters.get("user"):
        raise ImproperlyConfigured(
            f"{name} must name a login and a database: postgresql://login:password@host/database."
        )
    return parameters
