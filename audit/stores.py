"""
Where lines are kept outside the database: a folder, or a command of the host's.

A store only keeps lines. What those of checkpoints prove belongs in `audit.checkpoints`; other apps keep
lists of their own in the same way.
"""

import base64
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from audit.conf import checkpoints
from audit.exceptions import ProofError, ProofRefused

#: Seconds that a command may take.
PATIENCE = 60

#: What is kept, where nothing else is said.
CHECKPOINTS = "checkpoints"

_FILE = re.compile(r"tenant-(\d+)\.jws")


class Store(Protocol):
    """Keeps one log of signed lines for each tenant; a line can be added, never changed."""

    def read(self, tenant_id: int) -> list[str]:
        """
        Return the lines of one log, oldest first.

        Raises:
            StoreFailed: the store cannot be read.
        """

    def list_logs(self) -> list[int]:
        """
        Return the tenants that have a log: one whose rows are all gone is known here alone.

        Raises:
            StoreFailed: the store cannot be read.
        """

    def append(self, tenant_id: int, line: str) -> None:
        """
        Add a line to a log, durably.

        Raises:
            StoreFailed: the line was not stored.
        """


class StoreFailed(ProofError):
    """The place where lines are kept does not answer; the text says whose lines, and what it said."""


@dataclass(frozen=True, slots=True)
class FolderStore:
    """One file per tenant, ``tenant-17.jws``, to which lines are added. Put it on another machine."""

    folder: Path
    #: What the lines are, for whoever reads that they cannot be had.
    what: str = CHECKPOINTS

    def read(self, tenant_id: int) -> list[str]:
        try:
            text = self._file(tenant_id).read_text("ascii")
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as fault:
            raise StoreFailed(f"The {self.what} cannot be read: {fault}") from fault
        # What follows the last line end is a line whose writing was cut short.
        return text[: text.rfind("\n") + 1].splitlines()

    def list_logs(self) -> list[int]:
        found = (_FILE.fullmatch(path.name) for path in self.folder.glob("tenant-*.jws"))
        return sorted(int(match[1]) for match in found if match)

    def append(self, tenant_id: int, line: str) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._file(tenant_id).open("a+b") as log:
                log.seek(0)
                log.truncate(log.read().rfind(b"\n") + 1)
                log.write(f"{line}\n".encode("ascii"))
                log.flush()
                os.fsync(log.fileno())
        except OSError as fault:
            raise StoreFailed(f"The {self.what} cannot be added to: {fault}") from fault

    def _file(self, tenant_id: int) -> Path:
        return self.folder / f"tenant-{tenant_id}.jws"


@dataclass(frozen=True, slots=True)
class CommandStore:
    """
    A command of the host's, called as ``COMMAND… read TENANT``, ``COMMAND… append TENANT`` and
    ``COMMAND… list``.

    `read` prints the log; `append` takes the new line on standard input and ends with 0 once it is
    kept; `list` prints the tenants that have a log. TENANT is a number; 0 is the installation.
    """

    command: Sequence[str]
    what: str = CHECKPOINTS

    def read(self, tenant_id: int) -> list[str]:
        return self._run("", "read", str(tenant_id)).splitlines()

    def list_logs(self) -> list[int]:
        printed = self._run("", "list").split()
        if not all(text.isascii() and text.isdigit() for text in printed):
            raise StoreFailed(f"The command for the {self.what} did not print a list of numbers.")
        return [int(text) for text in printed]

    def append(self, tenant_id: int, line: str) -> None:
        self._run(f"{line}\n", "append", str(tenant_id))

    def _run(self, text: str, *arguments: str) -> str:
        command = [*self.command, *arguments]
        try:
            ran = subprocess.run(  # noqa: S603  the operator's own command, without a shell
                command, input=text, capture_output=True, text=True, timeout=PATIENCE, check=True
            )
        except (OSError, ValueError, subprocess.SubprocessError) as fault:
            said = getattr(fault, "stderr", None) or fault
            raise StoreFailed(f"The command for the {self.what} failed: {said}") from fault
        return ran.stdout


@dataclass(frozen=True, slots=True)
class LineStore:
    """Lines that somebody else keeps: earlier ones are given, new ones are handed to `write`."""

    lines: Sequence[str]
    write: Callable[[str], object]

    def read(self, tenant_id: int) -> list[str]:
        return lines_about(tenant_id, self.lines)

    def list_logs(self) -> list[int]:
        return sorted({_tenant_of(line) for line in self.lines})

    def append(self, tenant_id: int, line: str) -> None:
        self.write(line)


def lines_about(tenant_id: int, lines: Iterable[str]) -> list[str]:
    """
    Return the lines that claim to be about a tenant, in their order.

    Raises:
        ProofRefused: a line claims nothing: passed over, it could have been the one that tells.
    """
    return [line for line in lines if _tenant_of(line) == tenant_id]


def _tenant_of(line: str) -> int:
    """Return the tenant that a signed line claims to be about; its signature is not checked."""
    try:
        payload = line.split(".")[1]
        claimed = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return int(claimed["tenant_id"])
    except (ValueError, LookupError, TypeError) as fault:
        raise ProofRefused("A line among the checkpoints is none.") from fault


def configured_store() -> Store | None:
    """Return the store of checkpoints that the settings name, if they name one."""
    return store_at(checkpoints())


def store_at(place: Path | Sequence[str] | None, *, what: str = CHECKPOINTS) -> Store | None:
    """
    Return the store at a folder, or behind a command with its arguments, if one is named.

    Args:
        what: the lines are, in the words of a message.
    """
    if place is None:
        return None
    return FolderStore(place, what) if isinstance(place, Path) else CommandStore(place, what)
