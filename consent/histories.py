"""How long each decision stood, and what ended it: also where nobody decided anything."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Min

from consent.models import ConsentEntry, Decision, Purpose
from tenants.units import now


def ends_of(
    purpose: Purpose, entries: Sequence[ConsentEntry]
) -> list[tuple[datetime | None, str | None]]:
    """
    Return when each of a person's decisions ended and by what; None twice for what stands. Inside a unit.

    A consent ends by the next decision, by its own deadline (``expired``) or by a material notice
    (``outdated``), whichever was first. The two latter leave no entry: they take effect by themselves,
    and nobody decided.
    """
    raised_at = purpose.notices.filter(version=purpose.required_version).aggregate(
        at=Min("created_at")
    )["at"]
    moment = now()
    found: list[tuple[datetime | None, str | None]] = []
    for entry, following in zip(entries, [*entries, None][1:], strict=True):
        ends = [(following.at, following.decision)] if following else []
        if entry.decision == Decision.GIVEN:
            if entry.expires_at is not None and entry.expires_at <= moment:
                ends.append((entry.expires_at, "expired"))
            if (entry.version or 0) < purpose.required_version and raised_at is not None:
                ends.append((max(raised_at, entry.at), "outdated"))
        found.append(min(ends, key=lambda end: end[0]) if ends else (None, None))
    return found
