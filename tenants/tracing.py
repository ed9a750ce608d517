"""
Spans of requests and of units of work, where a host has set OpenTelemetry up.

Only the API is used: who exports what belongs to the host. Attributes hold no value, no key, no
scope and no person, and exceptions are never recorded, since their words may quote a row.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from django.http import HttpRequest

from tenants.exceptions import ServiceError
from tenants.extras import opentelemetry
from tenants.metrics import method_label

REQUEST = "consentful.request"
UNIT = "consentful.unit_of_work"


class Span(Protocol):
    """What is used of OpenTelemetry's span."""

    def set_attribute(self, key: str, value: Any) -> None:
        """Add one attribute."""


class NoSpan:
    """Stands for a span where nobody traces."""

    def set_attribute(self, key: str, value: Any) -> None:
        """Do nothing."""


NO_SPAN = NoSpan()

#: Headers that carry free text of the caller's: a trace goes on without them.
FREE_TEXT = frozenset({"HTTP_TRACESTATE", "HTTP_BAGGAGE"})

#: The last provider that was seen, and its tracer: making one costs more than a span.
_known: tuple[Any, Any] = (None, None)


def _tracer() -> Any:
    """Return the tracer of the provider that a host has set, or None."""
    global _known
    trace, _ = opentelemetry()
    if trace is None:
        return None
    provider = trace.get_tracer_provider()
    if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
        return None  # nobody has: spans would go nowhere
    if _known[0] is not provider:
        _known = (provider, provider.get_tracer("consentful"))
    return _known[1]


@contextmanager
def request_span(request: HttpRequest) -> Iterator[Span]:
    """
    Trace one request, as part of the caller's trace where the headers name one.

    A span that the host has opened around it, by an instrumentation of Django say, is its parent.
    """
    tracer = _tracer()
    if tracer is None:
        yield NO_SPAN
        return
    trace, propagate = opentelemetry()
    parent = None
    if not trace.get_current_span().get_span_context().is_valid:
        carrier = {
            name[5:].replace("_", "-").lower(): value
            for name, value in request.META.items()
            if name.startswith("HTTP_") and name not in FREE_TEXT
        }
        parent = propagate.extract(carrier)
    with tracer.start_as_current_span(
        REQUEST,
        context=parent,
        kind=trace.SpanKind.SERVER,
        attributes={"http.request.method": method_label(request.method)},
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        yield span


def describe_answer(span: Span, *, route: str, status: int, code: str | None) -> None:
    """Say on a request's span how it was answered."""
    if isinstance(span, NoSpan):
        return
    span.set_attribute("http.route", route)
    span.set_attribute("http.response.status_code", status)
    if code is not None:
        span.set_attribute("consentful.code", code)
    if status >= 500:
        trace, _ = opentelemetry()
        span.set_attribute("error.type", code or str(status))
        span.set_status(trace.StatusCode.ERROR)  # type: ignore[attr-defined]  # no NoSpan here


def trace_id_of(span: Span) -> str | None:
    """Return the trace that a span belongs to, for the log."""
    if isinstance(span, NoSpan):
        return None
    context = span.get_span_context()  # type: ignore[attr-defined]  # no NoSpan here
    return f"{context.trace_id:032x}" if context.is_valid else None


@contextmanager
def unit_span(*, tenant_id: int, fenced: int) -> Iterator[Span]:
    """Trace one transaction of one tenant, which fences so many persons."""
    tracer = _tracer()
    if tracer is None:
        yield NO_SPAN
        return
    with tracer.start_as_current_span(
        UNIT,
        attributes={"consentful.tenant.id": tenant_id, "consentful.fenced": fenced},
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield span
        except BaseException as problem:
            # Codes of our own alone: others' may be words, as those of SystemExit are.
            kind = problem.code if isinstance(problem, ServiceError) else type(problem).__qualname__
            span.set_attribute("error.type", kind)
            raise


@contextmanager
def waiting(span: Span) -> Iterator[None]:
    """Say on a unit's span how long the block took, which waits for the fences."""
    started = time.perf_counter()
    yield
    span.set_attribute("consentful.waited_seconds", time.perf_counter() - started)
