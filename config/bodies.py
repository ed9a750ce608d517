"""
Request bodies at the edge of the service: those without a length get one.

Here belongs what must happen before Django sees a request. What a body may hold belongs to
the views.
"""

import io
import time
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

#: The server passes the process's environment into every request, where error pages show it.
SECRETS = (
    "DATABASE_URL", "DATABASE_OWNER_URL", "METRICS_TOKEN", "SECRET_KEY", "SECRET_KEY_FALLBACKS",
    "SIGNING_KEY", "SIGNING_KEY_FALLBACKS",
)  # fmt: skip

PIECE = 64 * 1024

#: How much of a refused body is still taken in, and for how many seconds.
MOST_DISCARDED = 64 * 1024 * 1024
PATIENCE = 10.0


class MeasuredBodies:
    """
    A WSGI application around another one, which takes in every body as a whole.

    Django takes a body without `Content-Length` for an empty one. So a chunked body is read up
    to one byte over `most_bytes`, the least that tells the view that it is too large.

    What a view left unread is read and forgotten: many clients look for an answer only when
    they have sent everything, and see a broken connection where the server closes it before.
    """

    def __init__(self, application: WSGIApplication, *, most_bytes: int) -> None:
        self.application = application
        self.most_bytes = most_bytes

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        for name in SECRETS:
            environ.pop(name, None)
        # Django puts its own reading of the path in the place of this one, and says nothing of
        # bytes that it could not read.
        environ["REQUEST_URI"] = quote(environ.get("PATH_INFO", "").encode("latin-1"))
        source = environ["wsgi.input"]
        # Where both stand, the encoding wins (RFC 9112, section 6.3).
        if environ.pop("HTTP_TRANSFER_ENCODING", None):
            body = self._read(source)
            environ["CONTENT_LENGTH"] = str(len(body))
            environ["wsgi.input"] = io.BytesIO(body)
        try:
            return self.application(environ, start_response)
        finally:
            # One that asked before sending is waiting for the answer already.
            if environ.get("CONTENT_LENGTH", "0") != "0" and "HTTP_EXPECT" not in environ:
                _discard(source)

    def _read(self, source: Any) -> bytes:
        pieces = []
        missing = self.most_bytes + 1
        while missing and (piece := source.read(min(missing, PIECE))):
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)


def _discard(source: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    left = MOST_DISCARDED
    while left > 0 and time.monotonic() < deadline and (piece := source.read(PIECE)):
        left -= len(piece)
