"""What this app holds about persons: the records in their scope."""

import json
from collections.abc import Iterator, Sequence

from preferences.models import Preference
from preferences.selectors import personal_records
from tenants.personal import Item, Store


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
