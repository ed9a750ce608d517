"""
What a verification finds and counts.

Sentences name things by ids alone, never by a value.
"""

from collections.abc import Callable
from dataclasses import dataclass

from audit.models import Event

#: How the action ends that repeats a live row, before what led to it is cut.
SNAPSHOT = ".snapshot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    One thing that is not as the trail says.

    Attributes:
        code: what kind of thing, for programs.
        record: noun of the record concerned, as in `Event.record`; a table for `trigger_missing`.
        sentence: names the thing by ids alone, never by a value.
    """

    code: str
    tenant_id: int
    event_id: int | None = None
    record: str | None = None
    record_id: int | None = None
    sentence: str


@dataclass(slots=True)
class Tally:
    """
    What a verification has seen so far.

    Attributes:
        waiting: events that a running transaction keeps from being sealed; no finding.
        transaction: the transaction they wait for.
        checkpoints: what was signed earlier, and compared with.
        extent: says which part of a chain an exported document holds.
        advance: called with the number of events and rows after each batch.
    """

    events: int = 0
    rows: int = 0
    waiting: int = 0
    transaction: int | None = None
    checkpoints: int = 0
    extent: str = ""
    advance: Callable[[int], None] = lambda count: None


def finding(
    code: str,
    tenant_id: int,
    sentence: str,
    *,
    event: Event | None = None,
    event_id: int | None = None,
) -> Finding:
    return Finding(
        code=code,
        tenant_id=tenant_id,
        event_id=event.pk if event else event_id,
        record=event.record if event else None,
        record_id=event.record_id if event else None,
        sentence=sentence,
    )


def replayed(
    tenant_id: int, event_id: int, record: str | None, record_id: int | None, first: int
) -> Finding:
    return Finding(
        code="event_replayed",
        tenant_id=tenant_id,
        event_id=event_id,
        record=record,
        record_id=record_id,
        sentence=f"Event {event_id} is a copy of event {first}.",
    )
