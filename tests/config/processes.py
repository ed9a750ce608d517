"""Processes that tests start, and what is left of them."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from django.conf import settings

#: Variables that would lead a process elsewhere than the test says.
PLACES = (
    "ALLOWED_HOSTS",
    "DATABASE_OWNER_URL",
    "DATABASE_URL",
    "DATA_DIR",
    "DEBUG",
    "DJANGO_SETTINGS_MODULE",
    "HOST",
    "LOG_FORMAT",
    "METRICS_TOKEN",
    "OTEL_TRACES_EXPORTER",
    "PORT",
    "PROMETHEUS_MULTIPROC_DIR",
    "SECRET_KEY",
    "SECRET_KEY_FALLBACKS",
    "TEST_DATABASE",
    "WEB_CONCURRENCY",
)

#: What `start` has started and a test may have left.
started: list[subprocess.Popen[str]] = []

#: Seconds that anything here may take; a machine may be busy.
PATIENCE = 60.0


def make_environment(**environment: str) -> dict[str, str]:
    """Return this process's environment without what would configure the service."""
    kept = {name: value for name, value in os.environ.items() if name not in PLACES}
    return kept | {"PYTHONPATH": str(settings.BASE_DIR)} | environment


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command of Python to its end."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=settings.BASE_DIR,
        env=make_environment(**environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def start(
    *command: str, prefix: Sequence[str] = (), is_kept: bool = False, **environment: str
) -> subprocess.Popen[str]:
    """
    Start a command of Python that talks through its standard input and output.

    It ends with the test at the latest, unless it is kept.
    """
    process = subprocess.Popen(
        [*prefix, sys.executable, *command],
        cwd=settings.BASE_DIR,
        env=make_environment(**environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if not is_kept:
        started.append(process)
    return process


def finish(process: subprocess.Popen[str]) -> None:
    """End a process that waits for the end of its input, in the usual way."""
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors


def find_processes(directory: Path) -> list[str]:
    """Return the command lines of the processes that work on a data directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue  # it ended meanwhile
        if os.fsencode(directory) in environment + command:
            found.append(command.replace(b"\0", b" ").decode("utf-8", "replace"))
    return found


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)
