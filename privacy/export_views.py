"""A person's data as a download: made whole before the first byte leaves, then sent in pieces."""

import hashlib
import json
from base64 import b64encode
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from django.http import FileResponse, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from rest_framework.request import Request

from preferences.readings import flush_readings, note_disclosure
from privacy import openapi
from privacy.exports import SCHEMA, style, write_document, write_page
from privacy.views import PersonView
from tenants.callers import Caller
from tenants.exceptions import MethodNotAllowed, ValidationError
from tenants.middleware import request_id_of
from tenants.units import unit_of_work
from tenants.views import TenantAPIView, answer

#: Bytes that are kept in memory; what is larger goes to an unnamed file.
IN_MEMORY = 1024 * 1024
PIECE = 64 * 1024
FORMATS = ("json", "html")


class SubjectExportView(PersonView):
    """
    Everything that is held about one person, to take along.

    It is written whole to a temporary file that has no name, inside one short snapshot, and sent
    from there: a fault is an error instead of half a document, and a slow client holds no snapshot.
    """

    operations = {"GET": openapi.EXPORT}
    parameters = {"GET": {"format": False, "reason": False}}

    def check_media(self, request: Request) -> None:
        if "format" not in request.query_params and not self.is_page:
            super().check_media(request)

    @property
    def is_page(self) -> bool:
        """Whether HTML was asked for: by the parameter, else because it is preferred to JSON."""
        chosen = self.request.query_params.get("format")
        if chosen is not None:
            return bool(chosen == "html")
        accept = self.request.META.get("HTTP_ACCEPT", "*/*")
        return quality(accept, "text/html") > quality(accept, "application/json")

    def get(self, request: Request, tenant: str, subject: str) -> HttpResponseBase:
        parameters = self.read_parameters()
        if parameters.get("format", "json") not in FORMATS:
            raise ValidationError(
                f"The format is one of {' and '.join(FORMATS)}.", pointer="/query/format"
            )
        caller = self.read_reason(parameters, self.subject)
        answered: StreamingHttpResponse
        if request.method == "HEAD":
            answered = StreamingHttpResponse(())
        else:
            self.disclose(caller)
            answered = FileResponse(self.write(caller))
            answered.block_size = PIECE
        name = f"personal-data-{caller.tenant}"
        if self.is_page:
            answered["Content-Type"] = "text/html; charset=utf-8"
            answered["Content-Disposition"] = f'inline; filename="{name}.html"'
            for header, text in page_headers().items():
                answered[header] = text
        else:
            answered["Content-Type"] = "application/json"
            answered["Content-Disposition"] = f'attachment; filename="{name}.json"'
        patch_vary_headers(answered, ("Accept",))
        return answered

    def write(self, caller: Caller) -> IO[bytes]:
        """Return a file that holds all of it, at its beginning; its length tells a client the end."""
        file: IO[bytes] = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115  closed with the answer
        about: Any = {
            "tenant_id": caller.tenant_id, "tenant": caller.tenant, "subject": self.subject,
        }  # fmt: skip
        try:
            if self.is_page:
                write_page(file, **about)
            else:
                write_document(file, **about, schema=self.schema_address)
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return file

    def disclose(self, caller: Caller) -> None:
        """Leave the event of an operator's or guardian's look before there is anything to see."""
        flush_readings()
        if caller.reason is None and not caller.is_guardian:
            return
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            self.record_disclosure(caller)
            note_disclosure(caller=caller, subject=self.subject)

    @property
    def schema_address(self) -> str:
        """Where this service publishes the schema, below the same base path."""
        base = self.request.path.rpartition("/tenants/")[0]
        return str(self.request._request.build_absolute_uri(f"{base}/schemas/{SCHEMA.name}"))


class ExportSchemaView(TenantAPIView):
    """The JSON Schema of the export: public, and the same for everyone."""

    authentication_classes = []
    operations = {"GET": openapi.EXPORT_SCHEMA}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        request_id_of(request._request)
        if request.method not in ("GET", "HEAD", "OPTIONS"):
            raise MethodNotAllowed(headers={"Allow": ", ".join(self.allowed_methods)})
        self.check_media(request)

    def get(self, request: Request) -> HttpResponse:
        self.read_parameters()
        return answer(json.loads(SCHEMA.read_bytes()))


def page_headers() -> dict[str, str]:
    """Return what keeps the page from loading, sending or being shown inside anything."""
    digest = b64encode(hashlib.sha256(style().encode()).digest()).decode()
    return {
        "Content-Security-Policy": (
            f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none';"
            " form-action 'none'; frame-ancestors 'none'; sandbox"
        ),
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }


def quality(header: str, media: str) -> float:
    """Return how much an Accept header (RFC 9110, 12.5.1) wants a media type, from 0 to 1."""
    best: tuple[int, float] = (-1, 0.0)
    ranges = {"*/*": 0, f"{media.partition('/')[0]}/*": 1, media: 2}
    for part in header.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        wanted = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    wanted = float(parameter[2:])
                except ValueError:
                    wanted = 0.0
        best = max(best, (ranges.get(name, -1), wanted))
    return best[1] if best[0] >= 0 else 0.0
