"""
Candidates in processes of their own: one per connection, started once, told when to work.

Processes, not threads: two threads of one interpreter would wait for each other, not for the
database.
"""

import contextlib
import multiprocessing
import random
import time
import traceback
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.harness import Sampler, Slice

#: Seconds before every slice that are not counted: caches and prepared statements come back.
WARMING = 0.05
#: Calls before the first one: a driver prepares a statement once it has come a few times.
FIRST_CALLS = 8

#: Does one thing once. What it returns is thrown away.
type Call = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Worker:
    """Which of how many processes this is; `random` draws the same in every run."""

    number: int
    count: int
    random: random.Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """
    Something to be timed.

    Attributes:
        prepare: called once in each worker, connects, and returns what is timed.
        records: how many records one call stands for.
    """

    prepare: Callable[[Worker], Call]
    records: int = 1


class WorkerFailed(Exception):
    """A candidate raised in a worker; the message is the traceback there."""


@contextlib.contextmanager
def working(candidates: Mapping[str, Candidate], *, count: int) -> Iterator[dict[str, Sampler]]:
    """Yield a sampler for each candidate, which lets `count` processes do it side by side."""
    fork = multiprocessing.get_context("fork")
    processes, lines = [], []
    for number in range(count):
        ours, theirs = fork.Pipe()
        worker = Worker(number, count, random.Random(number))  # noqa: S311  no secret
        process = fork.Process(target=_serve, args=(theirs, worker, candidates), daemon=True)
        process.start()
        theirs.close()
        processes.append(process)
        lines.append(ours)
    try:
        yield {
            name: _sampler(name, candidate.records, lines) for name, candidate in candidates.items()
        }
    finally:
        for line in lines:
            with contextlib.suppress(OSError):
                line.send(None)
        for process in processes:
            process.join(10)


def _sampler(name: str, records: int, lines: list[Connection]) -> Sampler:
    def sample(seconds: float) -> Slice:
        _tell(lines, name, None)
        # All are warm by now, and begin together.
        told = _tell(lines, name, (time.monotonic() + 0.01, seconds))
        latencies = array("d")
        per_second = 0.0
        for timed, elapsed in told:
            latencies.frombytes(timed)
            per_second += len(timed) // latencies.itemsize * records / elapsed
        return Slice(latencies=latencies, per_second=per_second, records=records)

    return sample


def _tell(lines: list[Connection], name: str, slot: tuple[float, float] | None) -> list[Any]:
    for line in lines:
        line.send((name, slot))
    answers = [line.recv() for line in lines]
    for answer in answers:
        if isinstance(answer, str):
            raise WorkerFailed(f"{name} failed:\n{answer}")
    return answers


def _serve(line: Connection, worker: Worker, candidates: Mapping[str, Candidate]) -> None:
    """Do what is asked for until the other end is closed."""
    calls: dict[str, Call] = {}
    while (asked := line.recv()) is not None:
        name, slot = asked
        try:
            if name not in calls:
                calls[name] = candidates[name].prepare(worker)
                for _ in range(FIRST_CALLS):
                    calls[name]()
            line.send(_warm(calls[name]) if slot is None else _time(calls[name], *slot))
        except Exception:  # noqa: BLE001  told to the process that asked, which raises
            line.send(traceback.format_exc())


def _warm(call: Call) -> bool:
    until = time.perf_counter() + WARMING
    while time.perf_counter() < until:
        call()
    return True


def _time(call: Call, start: float, seconds: float) -> tuple[bytes, float]:
    """Return the latencies of the calls that began within `seconds`, and how long they took."""
    latencies = array("d")
    keep = latencies.append
    clock = time.perf_counter
    time.sleep(max(0.0, start - time.monotonic()))
    began = before = clock()
    until = began + seconds
    while before < until:
        call()
        now = clock()
        keep(now - before)
        before = now
    return latencies.tobytes(), before - began
