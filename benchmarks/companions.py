"""
What goes on beside a measured operation: processes that do something over and over while told to.

`benchmarks.workers` times what it runs; here nothing is timed, only counted.
"""

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from typing import Any

#: Called once in its process, connects, and returns what is done over and over.
type Prepare = Callable[[], Callable[[], int]]

#: Seconds until every process must have begun, or have come to rest.
PATIENCE = 60.0


class CompanionFailed(Exception):
    """A process beside the measured one died; what it raised stands on standard error."""


@dataclass(frozen=True, slots=True)
class Company:
    """Processes that rest until they are let to work."""

    processes: Sequence[Any]
    going: Event
    busy: Any
    counts: Any

    @property
    def count(self) -> int:
        """What all of them have done so far, as their calls counted it."""
        return sum(self.counts)

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Let all of them work inside this block; each has begun, and has ended afterwards."""
        self.going.set()
        self._wait_until(all)
        try:
            yield
        finally:
            self.going.clear()
            self._wait_until(lambda busy: not any(busy))

    def _wait_until(self, is_so: Callable[[Any], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not is_so(self.busy):
            if time.monotonic() > deadline or not all(one.is_alive() for one in self.processes):
                raise CompanionFailed
            time.sleep(0.001)


@contextlib.contextmanager
def beside(prepares: Sequence[Prepare]) -> Iterator[Company]:
    """Yield a process for each, at rest. Close this process's connections before."""
    fork = multiprocessing.get_context("fork")
    going = fork.Event()
    busy = fork.RawArray("b", len(prepares))
    counts = fork.RawArray("q", len(prepares))

    def serve(number: int) -> None:
        do = prepares[number]()
        while True:
            going.wait()
            busy[number] = 1
            while going.is_set():
                counts[number] += do()
            busy[number] = 0

    processes = [
        fork.Process(target=serve, args=(number,), daemon=True) for number in range(len(prepares))
    ]
    for process in processes:
        process.start()
    try:
        yield Company(processes, going, busy, counts)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(10)
