"""The tutorial, followed word for word: every file, statement and command of the page itself."""

import doctest
import os
import shlex
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from psycopg import sql

from tests.conftest import ROOT, find_free_port, is_running
from tests.hosts.documents import Block, read_blocks
from tests.hosts.projects import KEPT, PATIENCE, PYTEST_OPTIONS, listens

PAGE = ROOT / "docs/tutorial/first-consented-preference.md"

#: Ends the name of the login and the database on a server that runs share.
SUFFIX = "_tutorial"

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

#: Runs one command in the shell that the commands before it have left behind.
SHELL = """
set -eu
if [ -e "$STATE" ]; then . "$STATE"; cd "$FOLDER"; fi
eval "$1"
FOLDER=$PWD
{ declare -p FOLDER PATH; declare -p TOKEN API DJANGO_SUPERUSER_PASSWORD 2>/dev/null || true; declare -f; } > "$STATE"
"""


class Reader:
    """Somebody who follows the page in an empty folder, with one PostgreSQL."""

    def __init__(self, folder: Path, wheel: Path, superuser: psycopg.Connection, name: str) -> None:
        self.folder = folder
        self.superuser = superuser
        self.project = folder / "shop"
        self.port = find_free_port()
        self.server: subprocess.Popen[bytes] | None = None
        #: What differs from the page: names on a shared server, and where packages come from.
        self.instead = {"bookshop": name, "127.0.0.1:8000": f"127.0.0.1:{self.port}"}
        self.installs = {
            "python3 -m venv .venv": "python3 -m venv --without-pip .venv",
            "pip install consentful": self.install_command(wheel),
            "pip install pytest pytest-django": "true",  # as all else, from this environment
        }
        self.used: set[str] = set()
        info = superuser.info
        self.environment = {
            **{word: os.environ[word] for word in KEPT if word in os.environ},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "STATE": str(folder / "state"),
            "PGHOST": info.host,
            "PGPORT": str(info.port),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_ADDOPTS": PYTEST_OPTIONS,
            "PYTHONUNBUFFERED": "1",  # what is printed comes in the order of a terminal
        }

    @staticmethod
    def install_command(wheel: Path) -> str:
        """Install the wheel; what it depends on is taken from the environment of this run."""
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        install = [
            *pip,
            "--python",
            ".venv/bin/python",
            "install",
            "--no-deps",
            "--no-index",
            str(wheel),
        ]
        packages = Path(sysconfig.get_path("purelib"))
        other = f".venv/lib/{packages.parent.name}/site-packages/of_this_run.pth"
        return f"{shlex.join(install)} && echo {shlex.quote(str(packages))} > {other}"

    def follow(self, block: Block) -> None:
        if block.language == "sql":
            for statement in self.adapt(block.text).strip().split(";\n"):
                self.superuser.execute(statement)  # type: ignore[call-overload]
        elif block.title is not None:
            Block(block.language, self.adapt(block.text), block.title, block.is_addition).write(
                self.project
            )
        else:
            assert block.language == "console", block
            for command, output in block.commands():
                self.run(command, output)

    def run(self, command: str, expected: str) -> None:
        if command == "python manage.py runserver":
            self.serve()
            return
        if command in self.installs:
            self.used.add(command)
        line = self.adapt(self.installs.get(command, command))
        ran = subprocess.run(
            ["bash", "-c", SHELL, "bash", line],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert ran.returncode == 0, f"$ {command}\n{ran.stdout}"
        if expected.strip():
            is_same = doctest.OutputChecker().check_output(expected, ran.stdout, FLAGS)
            assert is_same, f"$ {command}\n{ran.stdout}\ninstead of\n{expected}"

    def adapt(self, text: str) -> str:
        for word, other in self.instead.items():
            text = text.replace(word, other)
        return text

    def serve(self) -> None:
        """Start the server of the page, which would hold its terminal."""
        self.server = subprocess.Popen(
            [
                self.project / ".venv/bin/python",
                "manage.py",
                "runserver",
                "--noreload",
                str(self.port),
            ],
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + PATIENCE
        while not listens(f"http://127.0.0.1:{self.port}/"):
            assert self.server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def stop(self) -> None:
        if self.server is not None:
            self.server.terminate()
            self.server.wait(PATIENCE)


@pytest.fixture
def reader(
    tmp_path: Path, wheel: Path, database: str, superuser: psycopg.Connection
) -> Iterator[Reader]:
    name = f"{database}{SUFFIX}"
    for (left,) in superuser.execute(
        "SELECT rolname FROM pg_roles WHERE rolname LIKE '%%' || %s", [SUFFIX]
    ).fetchall():
        number = left.removeprefix(settings.TEST_DATABASE_PREFIX).removesuffix(SUFFIX)
        if number.isdigit() and not is_running(int(number)):
            drop_all_of(left, superuser)
    reader = Reader(tmp_path, wheel, superuser, name)
    try:
        yield reader
    finally:
        reader.stop()
        drop_all_of(name, superuser)


def drop_all_of(name: str, superuser: psycopg.Connection) -> None:
    """Drop a login of that name, its database and the one that its tests made."""
    for statement, what in (
        ("DROP DATABASE IF EXISTS {} WITH (FORCE)", f"test_{name}"),
        ("DROP DATABASE IF EXISTS {} WITH (FORCE)", name),
        ("DROP ROLE IF EXISTS {}", name),
    ):
        superuser.execute(sql.SQL(statement).format(sql.Identifier(what)))


def test_every_step_works(reader: Reader) -> None:
    blocks = read_blocks(PAGE)
    assert len(blocks) == PAGE.read_text("utf-8").count("\n```") / 2
    for block in blocks:
        reader.follow(block)
    assert reader.used == set(reader.installs)
    assert reader.server is not None
