"""
The packages that are used where they are installed: the one place that imports them.

Without the extras `metrics` and `tracing` of this distribution both are absent, and nothing else
changes.
"""

import importlib
from functools import cache
from typing import Any


def _find(name: str) -> Any:
    """Return a module, or None where its package is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


@cache
def prometheus() -> Any:
    """
    Return `prometheus_client` or None.

    Imported when it is first needed, never earlier: on its import the client decides whether
    processes count together (PROMETHEUS_MULTIPROC_DIR), and a server sets that when it starts.
    """
    client = _find("prometheus_client")
    if client is not None:
        # Modules that the package itself leaves to whoever needs them.
        for name in ("core", "multiprocess", "parser"):
            _find(f"prometheus_client.{name}")
    return client


@cache
def opentelemetry() -> tuple[Any, Any]:
    """Return `opentelemetry.trace` and `opentelemetry.propagate`, or None twice."""
    return _find("opentelemetry.trace"), _find("opentelemetry.propagate")


@cache
def opentelemetry_sdk() -> tuple[Any, Any]:
    """Return `opentelemetry.sdk.trace` and its `export`, or None twice; the apps never ask."""
    return _find("opentelemetry.sdk.trace"), _find("opentelemetry.sdk.trace.export")
