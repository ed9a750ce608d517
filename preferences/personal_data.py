"""What this app holds about persons: the records in their scope."""

import json
from collections.abc import Iterator, Sequence

from preferences import erasure
from preferences.models import Preference
from preferences.selectors import personal_records
from tenants.personal import Item, Remainder, Store, Target


def describe() -> Sequence[Store]:
    """Return the stores of this app."""
    return [
        Store(
            name="preferences",
            holds="What is remembered about you: each value, what it is for and where it came from.",
            models=(Preference,),
        )
    ]


def export(*, tenant_id: int, subject: str, store: str) -> Iterator[Item]:
    """Yield what a store of this app holds about one person, oldest first."""
    if store == "preferences":
        for record in personal_records(tenant_id=tenant_id, subject=subject):
            yield json.loads(record.as_json())


def erase(*, target: Target, store: str) -> Remainder | None:
    """Delete the records of a target, but for held ones. Inside the unit of an erasure."""
    erasure.delete_records(target)
    held = erasure.held(erasure.records_about(target)).count()
    if target.is_whole:
        erasure.hide_held_records(target)
        erasure.rename_writer(target)
    return Remainder(held=held)


def count(*, target: Target, store: str) -> int:
    """Return how many records of a target there still are, held ones among them."""
    found = erasure.records_about(target).count()
    return found + erasure.records_written_by(target).count() if target.is_whole else found
