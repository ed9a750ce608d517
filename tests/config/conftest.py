"""No process outlives the test that started it; and a data directory that is complete, to copy."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.config.processes import run, started


@pytest.fixture(autouse=True)
def ended_processes() -> Iterator[None]:
    yield
    while started:
        process = started.pop()
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory that `migrate` made from nothing, whose server is stopped."""
    place = tmp_path_factory.mktemp("complete") / "data"
    finished = run("manage.py", "migrate", "--verbosity", "0", DATA_DIR=str(place))
    assert finished.returncode == 0, finished.stderr
    with (place / "postgres/postgresql.conf").open("a") as more:
        more.write("fsync = off\nfull_page_writes = off\n")  # copies are thrown away
    return place


@pytest.fixture(scope="session")
def copy_complete(complete: Path) -> Callable[[Path], Path]:
    """Copy it to a folder that is not there yet: in a moment, where making one takes seconds."""

    def copy(to: Path) -> Path:
        # As root, PostgreSQL runs as another account, whose files keep their owner.
        subprocess.run(["cp", "-a", str(complete), str(to)], check=True)
        return to

    return copy
