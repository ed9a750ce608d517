"""
What leaves the process about a fault of anybody's code: where it happened, and nothing it says.

For `LOGGING` and `DEFAULT_EXCEPTION_REPORTER` of a project. Django's own lines name paths, its own
reports show local variables, headers, forms and the words of exceptions, and PostgreSQL's words
quote rows. Here belongs the taking away; what our own lines hold belongs in `tenants.observation`.
"""

import logging
from collections.abc import Iterator
from copy import copy
from typing import Any

from django.conf import settings
from django.utils.html import format_html
from django.utils.log import AdminEmailHandler
from django.utils.safestring import SafeString
from django.views.debug import ExceptionReporter

from tenants.observation import describe, frames_of, route_of

OURS = "consentful"


def strip(record: logging.LogRecord) -> logging.LogRecord:
    """
    Return our own record as it is, and a copy of any other without what may hold a value.

    Of those the place of the call stays, and the types and frames of an exception: even a
    constant message may have been put together from values before.
    """
    if record.name.split(".")[0] == OURS:
        return record
    facts: dict[str, str | None] = {}
    if record.exc_info and record.exc_info[1] is not None:
        facts = describe(record.exc_info[1])
    told = " ".join(f"{name}={one}" for name, one in facts.items() if one is not None)
    bare = copy(record)  # other handlers may show all of it
    bare.msg = "%s:%d%s"
    bare.args = (record.pathname, record.lineno, f" {told}" if told else "")
    bare.exc_info = bare.exc_text = bare.stack_info = None
    bare.__dict__.pop("request", None)
    return bare


class WithoutValues(logging.Filter):
    """For a handler that writes lines: lets every record pass, stripped."""

    def filter(self, record: logging.LogRecord) -> bool | logging.LogRecord:
        """Return what the handler may write."""
        return strip(record)


class ExceptionReporterWithoutValues(ExceptionReporter):
    """
    A report of a fault that can be mailed: types, frames, route and request id.

    In debug mode Django's own report is shown, which is why debug mode is for development alone.
    """

    def get_traceback_text(self) -> SafeString:
        """Return the report as plain text."""
        if settings.DEBUG:
            return super().get_traceback_text()
        return SafeString("\n".join(self._lines()))

    def get_traceback_html(self) -> SafeString:
        """Return the report as HTML."""
        if settings.DEBUG:
            return super().get_traceback_html()
        return format_html("<pre>{}</pre>", "\n".join(self._lines()))

    def _lines(self) -> Iterator[str]:
        if self.request is not None:
            yield f"request {getattr(self.request, 'consentful_request_id', '-')}"
            yield f"route {route_of(self.request)}"
        seen: set[int] = set()
        problem: BaseException | None = self.exc_value
        while isinstance(problem, BaseException) and id(problem) not in seen:
            seen.add(id(problem))
            facts = describe(problem)
            state = facts["sqlstate"]
            yield f"{facts['error']}{f' (SQLSTATE {state})' if state else ''}"
            yield from (f"  {frame}" for frame in frames_of(problem))
            problem = problem.__cause__ or problem.__context__


class AdminEmailHandlerWithoutValues(AdminEmailHandler):
    """Django's mail to admins, with that report; its subject names no path."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.reporter_class = ExceptionReporterWithoutValues

    def emit(self, record: logging.LogRecord) -> None:
        """Mail the record, stripped of all but what the report asks for."""
        bare = strip(record)
        if bare is not record:
            bare.exc_info = record.exc_info
            bare.__dict__.update({"request": getattr(record, "request", None)})
        super().emit(bare)
