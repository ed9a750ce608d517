"""The page of taking everything along: for a machine, and to read. Needs no consent."""

import json
from functools import cache
from tempfile import SpooledTemporaryFile
from typing import IO

from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from preferences.readings import flush_readings
from privacy.export_views import IN_MEMORY, PIECE, page_headers
from privacy.exports import SCHEMA, write_document, write_page
from privacy.page_base import Page


class ExportPage(Page):
    """What there is to take along."""

    part = "export"

    def get(self, request: HttpRequest, tenant: str) -> HttpResponse:
        return self.show(request, "export", {})


class DocumentPage(Page):
    """All of it as JSON, whole before its first byte is sent."""

    part = "export"
    shows_records = True

    def get(self, request: HttpRequest, tenant: str) -> HttpResponseBase:
        return self.send("json")

    def send(self, ending: str) -> HttpResponseBase:
        """Write the document to a file without a name, and send it from there."""
        flush_readings()
        file: IO[bytes] = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115  closed with the answer
        try:
            self.write(file)
            file.seek(0)
        except BaseException:
            file.close()
            raise
        answer = FileResponse(
            file, as_attachment=True, filename=f"personal-data-{self.caller.tenant}.{ending}"
        )
        answer.block_size = PIECE
        return answer

    def write(self, file: IO[bytes]) -> None:
        """Write all of it."""
        caller = self.caller
        write_document(
            file,
            tenant_id=caller.tenant_id,
            tenant=caller.tenant,
            subject=self.subject,
            schema=schema_name(),
        )


class ReadablePage(DocumentPage):
    """All of it as a page of HTML that loads nothing, to keep or to print."""

    def get(self, request: HttpRequest, tenant: str) -> HttpResponseBase:
        answer = self.send("html")
        for name, text in page_headers().items():
            answer[name] = text
        return answer

    def write(self, file: IO[bytes]) -> None:
        caller = self.caller
        write_page(file, tenant_id=caller.tenant_id, tenant=caller.tenant, subject=self.subject)


@cache
def schema_name() -> str:
    """Return the name of the document's schema, which holds wherever it is published."""
    return str(json.loads(SCHEMA.read_bytes())["$id"])
