"""The `serve` command as an operator runs it: what it refuses, what it starts, how it ends."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.config.processes import PATIENCE, find_processes, run, wait_until
from tests.conftest import find_free_port, run_service


@pytest.fixture(scope="module")
def directory(
    copy_complete: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A data directory with a database that is complete."""
    return copy_complete(tmp_path_factory.mktemp("serve") / "data")


@pytest.fixture(autouse=True)
def quiet_environment(monkeypatch: pytest.MonkeyPatch, directory: Path) -> Iterator[None]:
    """Services of this module use the settings of operators, and leave no process behind."""
    for name in ("DATABASE_URL", "DATABASE_OWNER_URL", "DJANGO_SETTINGS_MODULE", "TEST_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    yield
    wait_until(lambda: not find_processes(directory))


def find_children(pid: int, words: str) -> list[int]:
    """Return the processes of one parent whose command line holds these words."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            status = (process / "stat").read_text().rpartition(")")[2].split()
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # it ended meanwhile
        if int(status[1]) == pid and words in command:
            found.append(int(process.name))
    return sorted(found)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_everything(directory: Path, number: int) -> None:
    with run_service(DATA_DIR=str(directory)) as (url, process):
        assert httpx.get(f"{url}/readyz").status_code == 200
        wait_until(lambda: find_children(process.pid, "lifeline"))
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0
    assert find_processes(directory) == []


def test_the_terminals_interrupt_reaches_all_and_ends_them_at_once(directory: Path) -> None:
    with run_service(DATA_DIR=str(directory)) as (url, process):
        assert httpx.get(f"{url}/readyz").status_code == 200
        wait_until(lambda: find_children(process.pid, "lifeline"))
        started = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    # Less than the time after which a process that hangs is killed.
    assert time.monotonic() - started < 8
    assert find_processes(directory) == []


def test_a_killed_worker_and_a_killed_housekeeper_come_back(directory: Path) -> None:
    with run_service(DATA_DIR=str(directory)) as (url, process):
        wait_until(lambda: find_children(process.pid, "lifeline"))
        [housekeeper] = find_children(process.pid, "lifeline")
        [worker] = find_children(process.pid, "serve")
        os.kill(worker, signal.SIGKILL)
        os.kill(housekeeper, signal.SIGKILL)
        wait_until(lambda: set(find_children(process.pid, "serve")) - {worker})
        wait_until(lambda: set(find_children(process.pid, "lifeline")) - {housekeeper})
        assert httpx.get(f"{url}/readyz").status_code == 200


def test_a_killed_database_comes_back_by_itself(directory: Path) -> None:
    with run_service(DATA_DIR=str(directory)) as (url, _):
        assert httpx.get(f"{url}/readyz").status_code == 200
        pid = int((directory / "postgres/postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: httpx.get(f"{url}/readyz", timeout=PATIENCE).status_code == 200)


def test_a_killed_service_takes_its_processes_along(directory: Path) -> None:
    with run_service(DATA_DIR=str(directory)) as (url, process):
        httpx.get(f"{url}/readyz")
        wait_until(lambda: find_children(process.pid, "lifeline"))
        process.kill()
        process.wait()
        wait_until(
            lambda: (
                {"postgres"}
                >= {
                    Path(line.split()[0]).name
                    for line in find_processes(directory)
                    if "postgres:" not in line
                }
            )
        )
    # The database is left to the next command, which takes it over and stops it.
    finished = run("manage.py", "showmigrations", DATA_DIR=str(directory))
    assert finished.returncode == 0, finished.stderr
    assert find_processes(directory) == []


def test_commands_work_beside_a_service(directory: Path) -> None:
    with run_service("--no-housekeeping", DATA_DIR=str(directory)) as (url, process):
        assert find_children(process.pid, "lifeline") == []
        finished = run("manage.py", "check", "--database", "default", DATA_DIR=str(directory))
        assert finished.returncode == 0, finished.stderr
        assert httpx.get(f"{url}/readyz").status_code == 200


def test_an_incomplete_database_is_refused(tmp_path: Path) -> None:
    finished = run(
        "manage.py", "serve", DATA_DIR=str(tmp_path / "data"), PORT=str(find_free_port())
    )
    assert finished.returncode == 1
    assert "run `manage.py migrate`" in finished.stderr
    assert finished.stderr.count("\n") == 1
    assert find_processes(tmp_path) == []


def test_a_taken_port_is_refused(directory: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        finished = run(
            "manage.py", "serve", DATA_DIR=str(directory), PORT=str(taken.getsockname()[1])
        )
    assert finished.returncode == 1
    assert "Cannot listen" in finished.stderr
    assert finished.stderr.count("\n") == 1


def test_an_exporter_of_spans_that_is_missing_is_refused(directory: Path) -> None:
    finished = run(
        "manage.py", "serve",
        DATA_DIR=str(directory), PORT=str(find_free_port()), OTEL_TRACES_EXPORTER="nowhere",
    )  # fmt: skip
    assert finished.returncode == 1
    assert "OTEL_TRACES_EXPORTER names an exporter that is not installed" in finished.stderr
    assert finished.stderr.count("\n") == 1


def test_a_small_admin_page_has_its_style(directory: Path) -> None:
    with run_service("--no-housekeeping", DATA_DIR=str(directory)) as (url, _):
        assert httpx.get(f"{url}/admin/login/").status_code == 200
        assert httpx.get(f"{url}/static/admin/css/base.css").status_code == 200
        assert httpx.get(f"{url}/api/v1/docs/").status_code == 200
