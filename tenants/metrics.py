"""
What is counted where it happens: requests, decisions of the gate, conflicts, purged records.

No label names a person, a key, a scope or a tenant: a metric has as many series as its labels
have values, and series are read by people who may not know who is stored here. Everything is a
no-op without the extra `metrics`. What is measured by asking the database belongs in
`preferences.backlog`.
"""

import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tenants.extras import prometheus

#: Other methods are counted together: a caller chooses the word.
METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
OTHER_METHOD = "_OTHER"

#: Seconds; the hot paths take a few milliseconds, a fence is waited for up to three seconds.
BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


@dataclass(frozen=True, slots=True)
class Instruments:
    """The counters of this process, in Prometheus' default registry."""

    requests: Any
    seconds: Any
    gate: Any
    conflicts: Any
    purged: Any


_instruments: Instruments | None = None
_lock = threading.Lock()


def instruments() -> Instruments | None:
    """Return the counters, made when something is first counted; None without the extra."""
    global _instruments
    client = prometheus()
    if client is None:
        return None
    with _lock:
        if _instruments is None:
            _instruments = Instruments(
                requests=client.Counter(
                    "consentful_requests",
                    "Requests answered.",
                    ["method", "route", "status", "code"],
                ),
                seconds=client.Histogram(
                    "consentful_request_seconds",
                    "Seconds that an answer took.",
                    ["route"],
                    buckets=BUCKETS,
                ),
                gate=client.Counter(
                    "consentful_gate_decisions",
                    "Decisions whether personal data may be used.",
                    ["decision", "reason"],
                ),
                conflicts=client.Counter(
                    "consentful_conflicts",
                    "Writes refused because the record was not in the state that they assumed.",
                    ["code"],
                ),
                purged=client.Counter(
                    "consentful_purged", "Records deleted because their deadline had passed."
                ),
            )
    return _instruments


@lru_cache(maxsize=1024)
def _child(name: str, *labels: str) -> Any:
    """Return what counts under these labels: looking it up costs more than counting."""
    return getattr(_instruments, name).labels(*labels)


def method_label(method: str | None) -> str:
    """Return a request's method, or one word for all that HTTP does not know."""
    return method if method in METHODS else OTHER_METHOD


def count_request(
    *, method: str | None, route: str, status: int, code: str | None, seconds: float
) -> None:
    """Count one answer; `route` is the pattern, never the path."""
    if instruments() is not None:
        _child("requests", method_label(method), route, str(status), code or "").inc()
        _child("seconds", route).observe(seconds)


def count_gate(refusal: str | None) -> None:
    """Count one decision of the gate: the code of its refusal, or None where it let pass."""
    if instruments() is not None:
        _child("gate", "refused" if refusal else "allowed", refusal or "").inc()


def count_conflict(code: str) -> None:
    """Count one write that had not seen what stands there."""
    if (found := instruments()) is not None:
        found.conflicts.labels(code).inc()


def count_purged(count: int) -> None:
    """Count records that a purge deleted."""
    if (found := instruments()) is not None:
        found.purged.inc(count)
