"""What this app holds about persons: that and what they asked to have forgotten."""

from collections.abc import Iterator, Sequence

from privacy.models import Erasure, ErasureHolder
from tenants.personal import Item, Remainder, Store, Target, in_pieces
from tenants.pseudonyms import digests_of
from tenants.times import format_time

_PROOF = "Kept without names, to prove that it was done (GDPR articles 5(2) and 17(3)(e))."


def describe() -> Sequence[Store]:
    """Return the stores of this app."""
    return [
        Store(
            name="erasures",
            holds="What was forgotten at your request, by numbers, without what it was.",
            models=(Erasure, ErasureHolder),
        )
    ]


def export(*, tenant_id: int, subject: str, store: str) -> Iterator[Item]:
    """Yield what a store of this app holds about one person, oldest first."""
    found = Erasure.objects.filter(tenant_id=tenant_id, digest__in=digests_of(tenant_id, subject))
    for erasure in in_pieces(found):
        yield {
            "id": erasure.reference,
            "requested_at": format_time(erasure.requested_at),
            "finished_at": format_time(erasure.finished_at) if erasure.finished_at else None,
            "status": erasure.status,
        }


def erase(*, target: Target, store: str) -> Remainder | None:
    """Earlier requests hold no name once they are finished: they stay."""
    if not target.is_whole:
        return None
    kept = _earlier(target)
    return Remainder(kept=kept, ground=_PROOF if kept else None)


def count(*, target: Target, store: str) -> int:
    """Return 0: what is kept for good does not count."""
    return 0


def _earlier(target: Target) -> int:
    return Erasure.objects.filter(
        tenant_id=target.tenant_id, digest__in=digests_of(target.tenant_id, target.subject)
    ).count()
