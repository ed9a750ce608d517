"""
Where the standalone service sends its spans: chosen by OpenTelemetry's own variables.

Here belongs setting the SDK up. What a span says belongs in `tenants.tracing`.
"""

import os
from importlib.metadata import EntryPoint, entry_points

from django.core.exceptions import ImproperlyConfigured

from config.environment import read_text
from tenants.extras import opentelemetry, opentelemetry_sdk

#: The standard variable; `otlp`, say, where its package is installed.
VARIABLE = "OTEL_TRACES_EXPORTER"
EXPORTERS = "opentelemetry_traces_exporter"


def start_tracing() -> None:
    """Send spans where `OTEL_TRACES_EXPORTER` says; nowhere where it says nothing or `none`."""
    exporter = find_exporter()
    if exporter is None:
        return
    sdk, export = opentelemetry_sdk()
    os.environ.setdefault("OTEL_SERVICE_NAME", "consentful")
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.BatchSpanProcessor(exporter.load()()))
    trace, _ = opentelemetry()
    trace.set_tracer_provider(provider)


def find_exporter() -> EntryPoint | None:
    """
    Return what `OTEL_TRACES_EXPORTER` names, or None where nothing shall be sent.

    Raises:
        ImproperlyConfigured: it names what is not installed.
    """
    name = read_text(VARIABLE, "none")
    if name == "none":
        return None
    sdk, _ = opentelemetry_sdk()
    found = list(entry_points(group=EXPORTERS, name=name))
    if sdk is None or not found:
        raise ImproperlyConfigured(
            f"{VARIABLE} names an exporter that is not installed: install its package, such as"
            " opentelemetry-exporter-otlp, or unset it."
        )
    return found[0]
