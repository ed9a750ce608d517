"""The machine's cores: whether they are free, and which does what while a server is measured."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.database import store


def find_busy_share(seconds: float = 1.0) -> float:
    """Return which share of all cores is in use while this process waits."""
    if sys.platform != "linux":
        return min(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    before = _read_ticks()
    time.sleep(seconds)
    idle, total = (after - then for after, then in zip(_read_ticks(), before, strict=True))
    return 1 - idle / total


def _read_ticks() -> tuple[int, int]:
    """Return the ticks that all cores have spent idle, and all their ticks (see proc(5))."""
    ticks = [int(one) for one in Path("/proc/stat").read_text("ascii").split("\n")[0].split()[1:9]]
    # Waiting for a disk is idle, too.
    return ticks[3] + ticks[4], sum(ticks)


@contextlib.contextmanager
def apart() -> Iterator[int | None]:
    """
    Yield the core that the server may have; client and database have the rest meanwhile.

    None where nothing can be kept apart: a single core, or a system that knows no affinity.
    """
    if sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2:
        yield None
        return
    all_cores = os.sched_getaffinity(0)
    server, *rest = sorted(all_cores)
    bind([os.getpid(), *database_processes()], set(rest))
    try:
        yield server
    finally:
        bind([os.getpid(), *database_processes()], all_cores)


def bind(processes: list[int], cores: set[int]) -> None:
    """Let these processes run on these cores alone, and what they start from now on."""
    if sys.platform == "linux":
        for process in processes:
            # It may have ended meanwhile.
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(process, cores)


def database_processes() -> list[int]:
    """Return the processes of the embedded server; none where a server of one's own is used."""
    directory = store().settings_dict["OPTIONS"].get("embedded")
    if directory is None:
        return []
    first = (Path(directory) / "postgres" / "postmaster.pid").read_text("utf-8").split()[0]
    children = Path(f"/proc/{first}/task/{first}/children").read_text("utf-8").split()
    return [int(one) for one in (first, *children)]
