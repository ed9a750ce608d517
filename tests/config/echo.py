"""A WSGI application that tells how it sees a request's body, behind the real server."""

import json
import os
import resource
import sys
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

from granian.constants import HTTPModes, Interfaces
from granian.log import LogLevels
from granian.server import Server

from config.bodies import MeasuredBodies

MOST_BYTES = 256 * 1024


def echo(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    length = int(environ.get("CONTENT_LENGTH") or 0)
    is_refused = length > MOST_BYTES
    body = b"" if is_refused else environ["wsgi.input"].read(length)
    answer = json.dumps(
        {
            "length": length,
            "read": len(body),
            "sum": sum(body),
            "kilobytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            "secrets": [name for name in ("SECRET_KEY", "DATABASE_URL") if name in environ],
        }
    ).encode()
    start_response(
        "413 Content Too Large" if is_refused else "200 OK",
        [("Content-Type", "application/json"), ("Content-Length", str(len(answer)))],
    )
    return [answer]


application = MeasuredBodies(echo, most_bytes=MOST_BYTES)

if __name__ == "__main__":
    os.environ["SECRET_KEY"] = os.environ["DATABASE_URL"] = "secret"
    Server(
        "tests.config.echo:application",
        port=int(sys.argv[1]),
        interface=Interfaces.WSGI,
        http=HTTPModes.http1,
        websockets=False,
        blocking_threads=4,
        log_level=LogLevels.error,
    ).serve()
