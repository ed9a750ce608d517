"""The second corner of what is supported: Django's LTS on the oldest PostgreSQL."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nox

POSTGRESQL_15 = Path("/usr/lib/postgresql/15/bin")


@contextmanager
def throw_away_cluster() -> Iterator[str]:
    """Run PostgreSQL 15 in a folder of its own, with the two logins; never as root."""
    folder = Path(tempfile.mkdtemp(prefix="consentful-lts-"))
    prefix: list[str] = []
    if os.getuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
        prefix = ["runuser", "-u", "postgres", "--"]

    def run(*command: str) -> None:
        subprocess.run([*prefix, *command], check=True, cwd=folder, stdout=subprocess.DEVNULL)

    data, log = folder / "data", folder / "log"
    run(
        f"{POSTGRESQL_15}/initdb",
        "-D",
        f"{data}",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C.UTF-8",
        "-U",
        "postgres",
    )
    try:
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        run(
            f"{POSTGRESQL_15}/pg_ctl", "-D", f"{data}", "-l", f"{log}", "-o", options, "-w", "start"
        )
        for statement in (
            "CREATE ROLE consentful_owner LOGIN CREATEDB",
            "CREATE ROLE consentful LOGIN",
            "CREATE DATABASE consentful OWNER consentful_owner",
        ):
            run(f"{POSTGRESQL_15}/psql", "-q", "-h", f"{folder}", "-U", "postgres", "-c", statement)
        yield str(folder)
    finally:
        run(f"{POSTGRESQL_15}/pg_ctl", "-D", f"{data}", "-m", "fast", "-w", "stop")
        shutil.rmtree(folder, ignore_errors=True)


@nox.session(python="3.12")
def lts(session: nox.Session) -> None:
    """Run the suite with Django 5.2 LTS on PostgreSQL 15."""
    session.install("--quiet", "--require-hashes", "-r", "requirements/dev.txt")
    session.install("--quiet", "django>=5.2,<5.3")
    with throw_away_cluster() as host:
        session.run(
            "python", "-m", "pytest", "--ignore", "tests/config", *session.posargs,
            env={
                "DATABASE_URL": f"postgresql:///consentful?host={host}&user=consentful",
                "DATABASE_OWNER_URL": f"postgresql:///consentful?host={host}&user=consentful_owner",
                "TEST_SUPERUSER_URL": f"postgresql:///consentful?host={host}&user=postgres",
            },
        )  # fmt: skip
