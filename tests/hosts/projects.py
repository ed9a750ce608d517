"""
Foreign projects that embed the apps, run as a stranger would run them.

Each is a copy outside the repository; all it sees of Consentful is what the wheel installed.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.conftest import find_free_port

HERE = Path(__file__).resolve().parent

#: Seconds that a command or the start of a server may take; a machine may be very busy.
PATIENCE = 240.0

#: Plugins of this environment that a stranger's has not, each slow to import.
PYTEST_OPTIONS = "-p no:schemathesis -p no:hypothesispytest -p no:anyio -p no:randomly"

#: What a stranger's shell has; everything else of this one could lead back to the repository.
KEPT = ("HOME", "LANG", "LC_ALL", "PATH", "SYSTEMROOT", "TMPDIR")


@dataclass
class Host:
    """One foreign project: its folder, what it can import, and where its database is."""

    folder: Path
    installed: Path
    settings: str
    database: Mapping[str, str]
    environment: dict[str, str] = field(default_factory=dict)

    @classmethod
    def copy(cls, name: str, to: Path, **more: object) -> "Host":
        """Return a project of `tests/hosts/`, copied so that nothing beside it can be imported."""
        folder = to / name
        shutil.copytree(HERE / name, folder, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(HERE / "catalog.json", folder)
        return cls(folder=folder, **more)  # type: ignore[arg-type]

    @property
    def variables(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return {
            **kept,
            "PYTHONPATH": str(self.installed),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_ADDOPTS": PYTEST_OPTIONS,
            "DJANGO_SETTINGS_MODULE": self.settings,
            **self.database,
            **self.environment,
        }

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run Python in the project's folder, whatever the exit code will be."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=self.variables | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def manage(self, *arguments: str, **variables: str) -> str:
        """Run a command that must succeed; return what it printed as its result."""
        ran = self.run("manage.py", *arguments, **variables)
        assert ran.returncode == 0, f"{arguments}: {ran.stdout}{ran.stderr}"
        return ran.stdout.strip()

    def python(self, program: str) -> str:
        """Run a few lines inside the project; return what they print."""
        return self.manage("shell", "--verbosity=0", "--command", program)

    def test(self, **variables: str) -> str:
        """Run the project's own tests; return the last line."""
        ran = self.run("-m", "pytest", "suite", "-q", "-p", "no:cacheprovider", **variables)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout.strip().splitlines()[-1]

    @contextlib.contextmanager
    def serve(self, **variables: str) -> Iterator[str]:
        """Yield the base URL of the project's own server, which ends with the block."""
        url = f"http://127.0.0.1:{(port := find_free_port())}"
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                [sys.executable, "manage.py", "runserver", "--noreload", f"127.0.0.1:{port}"],
                cwd=self.folder,
                env=self.variables | variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                deadline = time.monotonic() + PATIENCE
                while not listens(url):
                    if process.poll() is not None or time.monotonic() > deadline:
                        output.seek(0)
                        pytest.fail(f"The project does not serve:\n{output.read()}")
                    time.sleep(0.05)
                yield url
            finally:
                process.terminate()
                process.wait(PATIENCE)


def listens(url: str) -> bool:
    try:
        httpx.get(url, timeout=PATIENCE)
    except httpx.ConnectError:
        return False
    return True
