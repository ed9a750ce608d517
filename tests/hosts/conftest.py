"""The wheel, built and installed once, and a database for each foreign project."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from psycopg import sql

from tests.conftest import ROOT, connect

pytest.register_assert_rewrite("tests.hosts.projects", "tests.hosts.story")

#: Foreign code: it is run by its own projects, in processes of their own.
collect_ignore = ["plain", "mapped"]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, as a release would be built."""
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (built,) = folder.glob("consentful-*.whl")
    return built


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds what the wheel installs, and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    pip("install", "--no-deps", "--no-index", "--target", str(folder), str(wheel))
    return folder


def pip(*arguments: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


@pytest.fixture(scope="session")
def make_database(database: str) -> Iterator[Callable[[str], dict[str, str]]]:
    """Make an empty database of the owner's; return libpq's variables that lead to it."""
    made: list[str] = []

    def make(word: str) -> dict[str, str]:
        name = f"{database}_{word}"
        with connect("owner") as owner:
            owner.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            made.append(name)
            info = owner.info
            variables = {
                "PGHOST": info.host,
                "PGPORT": str(info.port),
                "PGUSER": info.user,
                "PGPASSWORD": info.password,
                "PGDATABASE": name,
            }
        return {name: value for name, value in variables.items() if value}

    yield make
    with connect("owner") as owner:
        for name in made:
            # A server of a project that failed may still hold a connection.
            owner.execute(
                sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
            )
