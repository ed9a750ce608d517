"""What this app holds about persons: the records in their scope, and who else read them."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import batched

from django.db.models import Count, Max

from audit.models import Event
from consent.selectors import list_states
from preferences import erasure
from preferences.models import Preference, Reading, RecordWords
from preferences.readings import readings_about
from preferences.selectors import personal_records
from tenants.documents import JSONValue
from tenants.personal import NOTHING_LEFT, PIECE, Item, Remainder, Store, Target, in_pieces
from tenants.times import format_time


def describe() -> Sequence[Store]:
    """Return the stores of this app."""
    return [
        Store(
            name="preferences",
            holds="What is remembered about you: each value, what it is for, where it came from, how"
            " long it stays, and who wrote and read it lately.",
            models=(Preference, RecordWords),
        ),
        Store(
            name="readings",
            holds="Who else read what is remembered about you: one line per record, reader and day.",
            models=(Reading,),
        ),
    ]


def export(*, tenant_id: int, subject: str, store: str) -> Iterator[Item]:
    """Yield what a store of this app holds about one person, oldest first."""
    match store:
        case "preferences":
            yield from _records(tenant_id, subject)
        case "readings":
            for reading in in_pieces(readings_about(tenant_id=tenant_id, subject=subject)):
                yield {
                    "key": reading.preference.key,
                    "reader": reading.reader,
                    "day": reading.day.isoformat(),
                }


def _records(tenant_id: int, subject: str) -> Iterator[Item]:
    states = list_states(tenant_id=tenant_id, subject=subject)
    versions = {state.purpose: state.version for state in states}
    for piece in batched(personal_records(tenant_id=tenant_id, subject=subject), PIECE):
        written = _writers(tenant_id, [record.id for record in piece])
        read = _readers(tenant_id, [record.id for record in piece])
        for record in piece:
            until = record.current["expires_at"]
            yield {
                **json.loads(record.as_json()),
                "notice_version": versions.get(record.purpose or ""),
                # Without a deadline it stays until somebody deletes it.
                "retention": {"until": until, "rule": "deadline" if until else "until_deleted"},
                "written_by": written.get(record.id, []),
                "read_by": read.get(record.id, []),
            }


def _writers(tenant_id: int, ids: Sequence[int]) -> dict[int, list[JSONValue]]:
    """Return by record who wrote it, the last one first, as far as the trail reaches back."""
    found: dict[int, list[JSONValue]] = defaultdict(list)
    writers = (
        Event.objects.filter(
            tenant_id=tenant_id, record=Preference.noun, record_id__in=ids, actor__isnull=False,
            action__in=("preference.created", "preference.replaced"),
        )
        .values_list("record_id", "actor")
        .annotate(last_at=Max("at"), times=Count("pk"))
        .order_by("-last_at")
    )  # fmt: skip
    for record_id, actor, last_at, times in writers:
        found[record_id].append({"actor": actor, "last_at": format_time(last_at), "times": times})
    return found


def _readers(tenant_id: int, ids: Sequence[int]) -> dict[int, list[JSONValue]]:
    """Return by record who else read it, the last one first, and on how many days."""
    found: dict[int, list[JSONValue]] = defaultdict(list)
    readers = (
        Reading.objects.filter(tenant_id=tenant_id, preference_id__in=ids)
        .values_list("preference_id", "reader")
        .annotate(last_day=Max("day"), days=Count("pk"))
        .order_by("-last_day", "reader")
    )
    for record_id, reader, last_day, days in readers:
        found[record_id].append({"actor": reader, "last_day": last_day.isoformat(), "days": days})
    return found


# Erasure -------------------------------------------------------------------------------------


def erase(*, target: Target, store: str) -> Remainder | None:
    """Erase what a store of this app holds of a target. Inside the unit of an erasure."""
    if store == "readings":
        erasure.delete_readings(target)
        return NOTHING_LEFT
    erasure.delete_records(target)
    held = erasure.held(erasure.records_about(target)).count()
    if target.is_whole:
        erasure.hide_held_records(target)
        erasure.rename_writer(target)
    return Remainder(held=held)


def count(*, target: Target, store: str) -> int:
    """Return how much of a target there still is, held records among it."""
    if store == "readings":
        return erasure.readings_of(target).count()
    found = erasure.records_about(target).count()
    return found + erasure.records_written_by(target).count() if target.is_whole else found
