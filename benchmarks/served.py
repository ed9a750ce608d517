"""The service as it is deployed: granian, one worker on one core, asked over eight connections."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

from benchmarks.cores import apart, bind
from benchmarks.exchanges import (
    AskConstant,
    AskPeerRead,
    AskPeerWrite,
    AskRead,
    AskWrite,
    Conversation,
    Guest,
    invite,
)
from benchmarks.harness import Sampler
from benchmarks.load import converse
from benchmarks.runs import FLOOR, Pair, Reading, Run, compare

ROOT = Path(__file__).resolve().parent.parent

GET, PUT = "get", "put"
PEER_GET, PEER_PUT = "viewset get", "viewset put"

CONNECTIONS = 8
#: Eight connections need longer slices than one, until each has its share.
LONGER = 2.5
#: Threads of the server start, and connect to the database, as they are needed.
WARMING = 1.0
#: Seconds that the service may take to start, and to end.
PATIENCE = 60.0


def measure(run: Run) -> Iterator[Reading]:
    """Take every measure of this module."""
    guests = invite(run.population, CONNECTIONS)
    with apart() as core, serving(core) as port:
        asked: dict[str, Sequence[Conversation]] = {
            FLOOR: [AskConstant() for _ in guests],
            GET: each(guests, AskRead),
            PUT: each(guests, AskWrite),
            PEER_GET: each(guests, AskPeerRead),
            PEER_PUT: each(guests, AskPeerWrite),
        }
        samplers = {name: sampler(port, those) for name, those in asked.items()}
        for sample in samplers.values():
            sample(WARMING)
        yield from compare(
            run,
            run.twinned(samplers),
            {
                "http-get": Pair(GET, FLOOR),
                "http-put": Pair(PUT, FLOOR),
                "http-get-viewset": Pair(GET, PEER_GET),
                "http-put-viewset": Pair(PUT, PEER_PUT),
            },
            longer=LONGER,
        )


def each(
    guests: Sequence[Guest], converse_as: Callable[[Guest, Random], Conversation]
) -> Sequence[Conversation]:
    """Return a conversation of each guest."""
    return [
        converse_as(guest, Random(number))  # noqa: S311  no secret
        for number, guest in enumerate(guests)
    ]


def sampler(port: int, conversations: Sequence[Conversation]) -> Sampler:
    """Return what holds these conversations for a while."""
    return lambda seconds: converse(port, conversations, seconds)


@contextlib.contextmanager
def serving(core: int | None) -> Iterator[int]:
    """Yield the port of a service over the run's database, on that core alone."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "WEB_CONCURRENCY": "1",
    }
    process = subprocess.Popen(
        [sys.executable, "manage.py", "serve", "--no-housekeeping"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if core is not None:
        # Before it has started its worker, which inherits this.
        bind([process.pid], {core})
    try:
        wait_until_answered(port, process)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)


def wait_until_answered(port: int, process: subprocess.Popen[bytes]) -> None:
    """
    Wait for the service.

    Raises:
        RuntimeError: it ended, or takes too long.
    """
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            converse(port, [AskConstant()], 0)
            return
        time.sleep(0.1)
    raise RuntimeError("The service does not start: run `manage.py serve` to see why.")
