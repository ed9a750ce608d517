"""Spans of requests and of units of work: their names, their parents, and nothing of a value."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from audit.actors import SYSTEM
from config.tracing import start_tracing
from preferences.readings import ATTEMPTS, flush_readings
from tenants.tracing import NO_SPAN, unit_span
from tenants.units import unit_of_work
from tests.factories import make_persona, make_tenant
from tests.http.client import API

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
MARKER = "marker-9b2"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[TracerProvider]:
    """A provider that a host has set, for this test alone."""
    provider = TracerProvider()
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", provider)
    yield provider
    provider.shutdown()


@pytest.fixture
def spans(provider: TracerProvider) -> Callable[[], list[ReadableSpan]]:
    """The spans since the last call, in the order in which they ended."""
    # What other tests noted is written by a thread, in units of its own.
    for _ in range(ATTEMPTS):
        flush_readings()
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    def take() -> list[ReadableSpan]:
        found = list(exporter.get_finished_spans())
        exporter.clear()
        return found

    return take


@pytest.fixture
def alice() -> API:
    tenant = make_tenant()
    return API(tenant.slug, make_persona(tenant, "alice").token)


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_request_and_its_units(alice: API, spans: Any) -> None:
    assert alice.give("me", "support").status == 200
    unit, request = spans()
    assert (unit.name, request.name) == ("consentful.unit_of_work", "consentful.request")
    assert request.kind is SpanKind.SERVER
    assert attributes(request) == {
        "http.request.method": "PUT",
        "http.route": "api/v1/tenants/<tenant>/consents/<subject>/<purpose>",
        "http.response.status_code": 200,
    }
    assert unit.parent.span_id == request.context.span_id
    found = attributes(unit)
    assert 0 < found.pop("consentful.waited_seconds") < 3
    assert found.keys() == {"consentful.tenant.id", "consentful.fenced"}
    assert found["consentful.fenced"] == 1


def test_the_hot_write_is_one_statement_and_one_span(alice: API, spans: Any) -> None:
    alice.put("preferences/me/theme", {"value": "dark"})
    spans()
    alice.put("preferences/me/theme", {"value": "light"})
    unit, request = spans()
    assert unit.name == "consentful.unit_of_work"
    assert "consentful.waited_seconds" not in attributes(unit)
    assert attributes(request)["consentful.code"] == "already_exists"
    assert request.status.status_code is StatusCode.UNSET, "a refusal is no error of the server"


def test_a_trace_of_the_caller_goes_on(alice: API, spans: Any, caplog: Any) -> None:
    headers = {
        "traceparent": f"00-{TRACE}-{PARENT}-01",
        "tracestate": f"{MARKER}={MARKER}",
        "baggage": f"{MARKER}={MARKER}",
    }
    with caplog.at_level("INFO", logger="consentful.requests"):
        alice.get("whoami", headers=headers)
    request = spans()[-1]
    assert f"{request.context.trace_id:032x}" == TRACE
    assert f"{request.parent.span_id:016x}" == PARENT
    assert MARKER not in request.to_json()
    assert caplog.records[-1].trace_id == TRACE


def test_a_span_of_the_host_is_the_parent(alice: API, spans: Any, provider: Any) -> None:
    with provider.get_tracer("host").start_as_current_span("host") as host:
        alice.get("whoami", headers={"traceparent": f"00-{TRACE}-{PARENT}-01"})
    request = next(one for one in spans() if one.name == "consentful.request")
    assert request.parent.span_id == host.get_span_context().span_id


def test_no_span_holds_what_was_sent_or_went_wrong(
    alice: API, spans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**more: Any) -> None:
        with unit_of_work(tenant_id=1, actor=SYSTEM):
            raise RuntimeError(MARKER)

    alice.put(f"preferences/me/{MARKER}", {"value": MARKER, "tags": [MARKER]})
    alice.get(f"preferences/me/{MARKER}?{MARKER}={MARKER}")
    alice.request(MARKER.upper(), f"preferences/me/{MARKER}")
    monkeypatch.setattr("preferences.views.put_preference", fail)
    assert alice.put(f"preferences/me/{MARKER}", {"value": MARKER}).status == 500
    found = spans()
    assert MARKER not in "".join(one.to_json() for one in found).lower()
    assert not [one for one in found if one.events]
    unit, request = found[-2:]
    assert attributes(unit)["error.type"] == "RuntimeError"
    assert attributes(request)["error.type"] == "internal_error"
    assert request.status.status_code is StatusCode.ERROR


def test_where_nobody_traces_nothing_is_made(alice: API) -> None:
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    with unit_span(tenant_id=1, fenced=0) as span:
        assert span is NO_SPAN


def test_an_exporter_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "nowhere")
    with pytest.raises(ImproperlyConfigured, match="OTEL_TRACES_EXPORTER"):
        start_tracing()
    for none in ("", "none"):
        monkeypatch.setenv("OTEL_TRACES_EXPORTER", none)
        start_tracing()
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def test_the_words_of_a_foreign_code_are_no_attribute(spans: Any) -> None:
    with pytest.raises(SystemExit), unit_span(tenant_id=1, fenced=0):
        raise SystemExit(MARKER)
    [unit] = spans()
    assert attributes(unit)["error.type"] == "SystemExit"
