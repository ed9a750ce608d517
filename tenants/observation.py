"""
What a log line says: facts by name, from a closed list, and never a value.

Loggers are `consentful.requests`, `consentful.jobs` and `consentful.faults`. Each fact stands in
the message and, under the same name, on the record itself (`extra`), for whoever formats records.
What must never be among them: paths (they hold scopes, keys and subjects), query strings, bodies,
headers, the words of exceptions.
"""

import logging
import re
import traceback
from functools import lru_cache
from typing import Any

from django.http import HttpRequest

REQUESTS = logging.getLogger("consentful.requests")
JOBS = logging.getLogger("consentful.jobs")
FAULTS = logging.getLogger("consentful.faults")

#: Every fact that a line may hold; docs/reference/metrics.md explains each.
FACTS = (
    "event",
    "request_id",
    "method",
    "route",
    "address",
    "tenant",
    "status",
    "code",
    "duration",
    "trace_id",
    "error",
    "sqlstate",
    "frames",
    "job",
    "tenants",
    "purged",
    "sealed",
    "stuck",
    "events",
    "rows",
    "findings",
    "waiting",
    "listens",
)

#: Where nobody knows a request's route.
UNKNOWN_ROUTE = "unknown"

#: Frames of a fault that are told, the innermost ones.
MOST_FRAMES = 12


def note(logger: logging.Logger, level: int, event: str, **facts: Any) -> None:
    """Log one event with its facts; those that are None are left out."""
    if not logger.isEnabledFor(level):
        return
    told = {"event": event} | {name: one for name, one in facts.items() if one is not None}
    if unknown := told.keys() - set(FACTS):
        raise ValueError(f"No log line holds {sorted(unknown)}.")
    text = " ".join(f"{name}={one}" for name, one in told.items() if name != "event")
    logger.log(level, "%s %s", event, text, extra=told)


def note_sealed(*, sealed: int, stuck: int) -> None:
    """Log one round of sealing; one that found nothing to do is worth no line of its own."""
    level = logging.ERROR if stuck else logging.INFO if sealed else logging.DEBUG
    note(JOBS, level, "seal", sealed=sealed, stuck=stuck)


def note_purged(*, purged: int, tenants: int, duration: float) -> None:
    """Log one round of purging, as above."""
    level = logging.INFO if purged else logging.DEBUG
    note(JOBS, level, "purge", purged=purged, tenants=tenants, duration=round(duration, 6))


def note_fault(problem: BaseException, *, request_id: str | None = None) -> None:
    """
    Log where an unexpected exception came from, and nothing it says.

    Messages and local variables can hold what a person stored; frames and types cannot.
    """
    note(FAULTS, logging.ERROR, "fault", request_id=request_id, **describe(problem))


def describe(problem: BaseException) -> dict[str, str | None]:
    """Return type, SQLSTATE and frames of an exception, as facts."""
    return {
        "error": type(problem).__qualname__,
        "sqlstate": find_sqlstate(problem),
        "frames": " < ".join(frames_of(problem)[:MOST_FRAMES]) or None,
    }


def frames_of(problem: BaseException) -> list[str]:
    """Return file, line and function of each frame, the innermost one first."""
    found = [
        f"{frame.f_code.co_filename}:{line} {frame.f_code.co_name}"
        for frame, line in traceback.walk_tb(problem.__traceback__)
    ]
    return found[::-1]


def find_sqlstate(problem: BaseException) -> str | None:
    """Return the five characters by which PostgreSQL names an error, where it is one."""
    for one in (problem, problem.__cause__):
        if state := getattr(one, "sqlstate", None):
            return str(state)
    return None


def route_of(request: HttpRequest) -> str:
    """Return the pattern of a request's path: names of its parts, and nothing of the path."""
    match = request.resolver_match
    return readable_route(match.route) if match and match.route else UNKNOWN_ROUTE


@lru_cache(maxsize=512)
def readable_route(route: str) -> str:
    """Return a route, written with converters or as a regular expression, in one form."""
    named = re.sub(r"\(\?P<(\w+)>[^()]*\)", r"<\1>", route)
    named = re.sub(r"<\w+:(\w+)>", r"<\1>", named)
    return re.sub(r"\\Z|[$^]", "", named)
