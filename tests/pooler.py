"""
A PgBouncer of the distribution, in transaction mode, in front of a server of the tests.

As a program, runs pytest behind it: ``python -m tests.pooler [ARGUMENT …]``. The server is that of
DATABASE_URL, with DATABASE_OWNER_URL leading past the pooler, or else the embedded one.
TEST_DIRECT_URL leads past it as well, for what the tests themselves hold or watch: with so few
connections they would wait behind the service that they watch.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict

from config.embedded import PORT, SUPERUSER, _has_capability, get_embedded_server
from config.postgresql.bootstrap import DATABASE, OWNER, RUNTIME, prepare_logins_and_database
from tests.cluster import DIRECTORY

ROOT = Path(__file__).resolve().parent.parent

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")

#: Connections to the server, for all clients together.
SERVER_CONNECTIONS = 2

POOLER_PORT = 6432
ADMINISTRATOR = "pooler"

#: Seconds that it may take to start.
PATIENCE = 20.0

#: As docs/how-to/run-behind-a-pooler.md shows it, but for where it listens and who may log in.
CONFIGURATION = """\
[databases]
* = host='{host}' port={port}

[pgbouncer]
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 200
query_wait_timeout = 30

listen_port = {listen_port}
unix_socket_dir = {place}
auth_type = trust
auth_file = {place}/users.txt
admin_users = {administrator}
logfile = {place}/pgbouncer.log
"""


@dataclass(frozen=True, slots=True)
class Pooler:
    """A pooler that runs."""

    directory: Path

    def url(self, login: str, database: str) -> str:
        """Return the URL by which a login reaches a database through it."""
        return as_url(
            {"user": login, "dbname": database, "host": self.directory, "port": POOLER_PORT}
        )

    def show(self, what: str) -> list[dict[str, object]]:
        """Return what its console shows: SERVERS, CLIENTS, POOLS, CONFIG."""
        # The console knows the simple protocol alone, which this cursor speaks.
        with psycopg.connect(
            self.url(ADMINISTRATOR, "pgbouncer"),
            autocommit=True,
            cursor_factory=psycopg.ClientCursor,
        ) as console:
            cursor = console.execute(f"SHOW {what}")
            names = [one.name for one in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def as_url(parameters: Mapping[str, object]) -> str:
    """Return libpq's parameters as a URL."""
    rest = {name: str(one) for name, one in parameters.items() if name not in ("user", "dbname")}
    return (
        f"postgresql://{quote(str(parameters['user']))}@/{quote(str(parameters['dbname']))}"
        f"?{urlencode(rest)}"
    )


@contextlib.contextmanager
def run_pooler(login: Mapping[str, object]) -> Iterator[Pooler]:
    """
    Yield a pooler in front of a server, which is gone afterwards.

    Args:
        login: libpq's parameters of the login that serves.
    """
    assert PGBOUNCER is not None, "install pgbouncer"
    place = Path(tempfile.mkdtemp(prefix="consentful-pooler-"))
    try:
        host, port = str(login["host"]), str(login.get("port") or PORT)
        users = {str(login["user"]): str(login.get("password") or ""), ADMINISTRATOR: ""}
        lines = "".join(f'"{name}" "{password}"\n' for name, password in users.items())
        (place / "users.txt").write_text(lines)
        configuration = place / "pgbouncer.ini"
        configuration.write_text(
            CONFIGURATION.format(
                host=host.replace("'", "''"), port=port, size=SERVER_CONNECTIONS, listen_port=POOLER_PORT,
                place=place, administrator=ADMINISTRATOR,
            )
        )  # fmt: skip
        with (place / "output").open("wb") as output:
            process = subprocess.Popen(
                [*as_account_of(host, place), str(PGBOUNCER), str(configuration)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd="/",
            )  # fmt: skip
        try:
            deadline = time.monotonic() + PATIENCE
            while not (place / f".s.PGSQL.{POOLER_PORT}").exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((place / "output").read_text())
                time.sleep(0.02)
            yield Pooler(place)
        finally:
            process.terminate()
            process.wait()
    finally:
        shutil.rmtree(place)


def as_account_of(host: str, place: Path) -> Sequence[str]:
    """Return how to run a program as the account of the server's socket: not as root, at least."""
    if os.geteuid() != 0:
        return ()
    owner = Path(host).stat() if host.startswith("/") else None
    uid, gid = (owner.st_uid, owner.st_gid) if owner and owner.st_uid else (65534, 65534)
    for path in (place, *place.iterdir()):
        os.chown(path, uid, gid)
    # The socket may lie in a folder that only root enters.
    capability = "dac_read_search" if _has_capability("dac_read_search") else None
    return (
        "setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups",
        *((f"--inh-caps=+{capability}", f"--ambient-caps=+{capability}") if capability else ()),
    )  # fmt: skip


def find_server() -> dict[str, dict[str, object]]:
    """Return libpq's parameters of the three logins, those of the embedded server by default."""
    if os.environ.get("DATABASE_URL"):
        names = {
            "runtime": "DATABASE_URL", "owner": "DATABASE_OWNER_URL",
            "superuser": "TEST_SUPERUSER_URL",
        }  # fmt: skip
        return {
            login: dict(conninfo_to_dict(os.environ[name]))
            for login, name in names.items()
            if os.environ.get(name)
        }
    host = get_embedded_server(DIRECTORY).acquire()
    prepare_logins_and_database(host)
    shared: dict[str, object] = {"host": host, "port": PORT, "dbname": DATABASE}
    logins = {"runtime": RUNTIME, "owner": OWNER, "superuser": SUPERUSER}
    return {login: shared | {"user": user} for login, user in logins.items()}


def main() -> int:
    """Run pytest with the serving login behind a pooler, and the others past it."""
    server = find_server()
    runtime = server["runtime"]
    with run_pooler(runtime) as pooler:
        environment = os.environ | {
            "DATABASE_URL": pooler.url(str(runtime["user"]), str(runtime["dbname"])),
            "DATABASE_OWNER_URL": as_url(server["owner"]),
            "TEST_DIRECT_URL": as_url(runtime),
        }
        if "superuser" in server:
            environment["TEST_SUPERUSER_URL"] = as_url(server["superuser"])
        status = subprocess.call(
            [sys.executable, "-m", "pytest", *sys.argv[1:]], cwd=ROOT, env=environment
        )
        served = sum(int(str(one["total_xact_count"])) for one in pooler.show("STATS"))
        print(f"PgBouncer: {served} transactions, {SERVER_CONNECTIONS} server connections.")  # noqa: T201  a program of its own
        return status if served else 1


if __name__ == "__main__":
    sys.exit(main())
