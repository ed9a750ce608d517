"""The whole stack without sockets: the WSGI application, called as a server calls it."""

import io
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from django.db import connections

from benchmarks.exchanges import (
    AskConstant,
    AskRead,
    AskWrite,
    Conversation,
    Guest,
    Message,
    invite,
)
from benchmarks.runs import FLOOR, Pair, Reading, Run, compare
from benchmarks.workers import Call, Candidate, Worker, working
from config.wsgi import application

GET, PUT = "get", "put"


def measure(run: Run) -> Iterator[Reading]:
    """Take every measure of this module."""
    (guest,) = invite(run.population, 1)
    connections.close_all()  # a connection must not cross a fork
    candidates = {
        FLOOR: Candidate(prepare=partial(prepare, lambda worker: AskConstant())),
        GET: Candidate(prepare=partial(prepare, partial(read_as, guest))),
        PUT: Candidate(prepare=partial(prepare, partial(write_as, guest))),
    }
    with working(run.twinned(candidates), count=1) as some:
        yield from compare(run, some, {"wsgi-get": Pair(GET, FLOOR), "wsgi-put": Pair(PUT, FLOOR)})


def read_as(guest: Guest, worker: Worker) -> AskRead:
    """Return the reads of one person."""
    return AskRead(guest, worker.random)


def write_as(guest: Guest, worker: Worker) -> AskWrite:
    """Return the writes of one person."""
    return AskWrite(guest, worker.random)


def prepare(converse: Callable[[Worker], Conversation], worker: Worker) -> Call:
    """Return one request and its answer, through everything but a socket."""
    silence()
    conversation = converse(worker)

    def call() -> object:
        status, headers, body = respond(conversation.ask())
        if not status.startswith("200"):
            raise RuntimeError(f"{status}: {body!r}")
        conversation.learn({name.lower(): one for name, one in headers})
        return body

    return call


def respond(message: Message) -> tuple[str, list[tuple[str, str]], bytes]:
    """Let the application answer a message, and return status, headers and body."""
    heads: list[tuple[str, list[tuple[str, str]]]] = []

    def start(status: str, headers: list[tuple[str, str]], failure: Any = None) -> Any:
        heads.append((status, headers))

    answer = application(environment_of(message), start)
    try:
        body = b"".join(answer)
    finally:
        # As servers do: Django ends the request here.
        answer.close()  # type: ignore[attr-defined]
    return *heads[-1], body


def environment_of(message: Message) -> dict[str, Any]:
    """Return a message as a server passes it on."""
    environment = {
        "REQUEST_METHOD": message.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": message.path,
        "QUERY_STRING": "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "8000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "localhost:8000",
        "HTTP_ACCEPT": "application/json",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(message.body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    if message.authorization:
        environment["HTTP_AUTHORIZATION"] = message.authorization
    if message.body:
        environment["CONTENT_TYPE"] = "application/json"
        environment["CONTENT_LENGTH"] = str(len(message.body))
    return environment


def silence() -> None:
    """Send this process's log nowhere; it is still written, which is part of a request."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stderr.fileno())
    os.close(nowhere)
