"""
Request bodies at the edge of the service: those without a length get one.

Here belongs what must happen before Django sees a request. What a body may hold belongs to
the views.
"""

import io
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

#: The server passes the process's environment into every request, where error pages show it.
SECRETS = ("DATABASE_URL", "DATABASE_OWNER_URL", "SECRET_KEY", "SIGNING_KEY")

PIECE = 64 * 1024


class MeasuredBodies:
    """
    A WSGI application around another one, which reads chunked bodies.

    Django takes a body without `Content-Length` for an empty one. So a chunked body is read up
    to one byte over `most_bytes`, the least that tells the view that it is too large.
    """

    def __init__(self, application: WSGIApplication, *, most_bytes: int) -> None:
        self.application = application
        self.most_bytes = most_bytes

    def __call__(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        for name in SECRETS:
            environ.pop(name, None)
        if environ.get("HTTP_TRANSFER_ENCODING"):
            # Where both stand, the encoding wins (RFC 9112, section 6.3).
            body = self._read(environ["wsgi.input"])
            environ["CONTENT_LENGTH"] = str(len(body))
            environ["wsgi.input"] = io.BytesIO(body)
            del environ["HTTP_TRANSFER_ENCODING"]
        return self.application(environ, start_response)

    def _read(self, source: Any) -> bytes:
        pieces = []
        missing = self.most_bytes + 1
        while missing and (piece := source.read(min(missing, PIECE))):
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)
