"""Which core does what while a server is measured: one serves, another asks and stores."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.database import store


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
