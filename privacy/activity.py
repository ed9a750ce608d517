"""Who read or changed what about a person, newest first: the trail's events and the readings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Any

from django.db.models import Model, QuerySet

from audit.models import Event
from preferences.models import Reading
from preferences.readings import readings_about
from tenants.personal import Item
from tenants.personal_data import activity_of, events_about
from tenants.times import format_time

#: The list goes on with events and readings whose ids are smaller than these two.
type Position = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Activity:
    """One thing that somebody did, and where the list goes on after it."""

    item: Item
    position: Position


def list_activity(*, tenant_id: int, subject: str, before: Any = None, most: int) -> list[Activity]:
    """
    Return up to `most` things that were done about one person. Inside a unit of work.

    Two lists run side by side, each in the order of its own ids, so that none of both is listed
    twice or left out while others are added.

    Args:
        before: the position of the last one that was listed; None for the first page.
    """
    events = _before(events_about(tenant_id=tenant_id, subject=subject), before and before[0], most)
    readings = _before(
        readings_about(tenant_id=tenant_id, subject=subject), before and before[1], most
    )
    # What is added while somebody turns the pages belongs before the first of them.
    last_event, last_reading = before or (_start(events), _start(readings))
    rows: Iterable[Event | Reading] = merge(events, readings, key=lambda row: row.at, reverse=True)
    found: list[Activity] = []
    for row in islice(rows, most):
        if isinstance(row, Reading):
            last_reading, item = row.pk, _item_of(row)
        else:
            last_event, item = row.pk, activity_of(row, subject)
        found.append(Activity(item, (last_event, last_reading)))
    return found


def _before[M: Model](rows: QuerySet[M], last: int | None, most: int) -> list[M]:
    older = rows if last is None else rows.filter(pk__lt=last)
    return list(older.order_by("-pk")[:most])


def _start(rows: Sequence[Model]) -> int:
    return int(rows[0].pk) + 1 if rows else 0


def _item_of(reading: Reading) -> Item:
    """Return a reading in the form of an event; it has no more to tell than the day."""
    record = reading.preference
    return {
        "at": format_time(reading.at),
        "action": "preference.read",
        "actor": reading.reader,
        "on_behalf_of": None,
        "target": {"scope": record.scope, "key": record.key},
        "purpose": record.purpose.slug if record.purpose else None,
        "changed": [],
        "reason": None,
    }
