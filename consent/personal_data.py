"""What this app holds about persons: what they decided, and which purposes their login serves."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from django.db.models import QuerySet

from consent import erasure
from consent.histories import ends_of
from consent.models import (
    Confirmation,
    ConsentEntry,
    ConsentState,
    Notice,
    Purpose,
    PurposeUserPermission,
    Restriction,
    Withdrawal,
)
from consent.restrictions import list_restrictions, restriction_as_json
from consent.selectors import State, list_states
from tenants.models import Subject
from tenants.personal import NOTHING_LEFT, Item, Remainder, Store, Target, in_pieces
from tenants.times import format_time


def describe() -> Sequence[Store]:
    """Return the stores of this app."""
    return [
        Store(
            name="consents",
            holds="What you agreed to, refused and withdrew, with the text that you were shown.",
            models=(ConsentEntry, ConsentState, Withdrawal),
        ),
        Store(
            name="confirmations",
            holds="Consent that waits for you to confirm it.",
            models=(Confirmation,),
        ),
        Store(
            name="restrictions",
            holds="What you asked to be kept and not used, and who lifted that and why.",
            models=(Restriction,),
        ),
        Store(
            name="serving",
            holds="The purposes that your login serves, where it is an agent's.",
            models=(PurposeUserPermission,),
        ),
    ]


def export(*, tenant_id: int, subject: str, store: str) -> Iterator[Item]:
    """Yield what a store of this app holds about one person, oldest first."""
    match store:
        case "consents":
            states = {one.purpose: one for one in list_states(tenant_id=tenant_id, subject=subject)}
            for purpose, entries in histories(tenant_id=tenant_id, subject=subject).items():
                # A purpose may rest on another ground by now; what was decided stays.
                state = states.get(purpose) or State(purpose=purpose, status="none")
                yield {**state.as_json(), "history": [*entries]}
        case "confirmations":
            pending = Confirmation.objects.filter(
                tenant_id=tenant_id, subject__tenant_id=tenant_id, subject__external_id=subject
            )
            for one in in_pieces(pending.select_related("purpose")):
                yield {
                    "purpose": one.purpose.slug,
                    "version": one.version,
                    "locale": one.locale,
                    "actor": one.actor,
                    "method": one.method,
                    "evidence": one.evidence,
                    "at": format_time(one.at),
                    "expires_at": format_time(one.expires_at),
                }
        case "restrictions":
            for row in list_restrictions(tenant_id=tenant_id, subject=subject):
                yield {**restriction_as_json(row), "evidence": row.evidence}
        case "serving":
            user = Subject.objects.filter(tenant_id=tenant_id, external_id=subject).values("user")
            grants = PurposeUserPermission.objects.filter(tenant_id=tenant_id, user__in=user)
            for grant in in_pieces(grants.select_related("content_object")):
                yield {"purpose": grant.content_object.slug}


def histories(*, tenant_id: int, subject: str) -> dict[str, list[Item]]:
    """
    Return every decision of one person by purpose, oldest first, with the text that was shown.

    Inside a unit of work or a snapshot.
    """
    entries = list(
        in_pieces(
            ConsentEntry.objects.filter(
                tenant_id=tenant_id, subject__tenant_id=tenant_id, subject__external_id=subject
            ).select_related("purpose")
        )
    )
    purposes = {entry.purpose_id for entry in entries}
    shown = {
        (notice.purpose_id, notice.version, notice.locale): notice.text
        for notice in Notice.objects.filter(tenant_id=tenant_id, purpose_id__in=purposes)
    }
    by_purpose: dict[Purpose, list[ConsentEntry]] = defaultdict(list)
    for entry in entries:
        by_purpose[entry.purpose].append(entry)
    found: dict[str, list[Item]] = {}
    for purpose, theirs in by_purpose.items():
        found[purpose.slug] = [
            {
                "entry": entry.entry,
                "decision": entry.decision,
                "version": entry.version,
                "locale": entry.locale,
                "notice_digest": entry.notice_digest,
                "notice": shown.get((purpose.pk, entry.version or 0, entry.locale or "")),
                "actor": entry.actor,
                "method": entry.method,
                "evidence": entry.evidence,
                "at": format_time(entry.at),
                "expires_at": format_time(entry.expires_at) if entry.expires_at else None,
                "ended_at": format_time(ended_at) if ended_at else None,
                "ended_by": ended_by,
            }
            for entry, (ended_at, ended_by) in zip(theirs, ends_of(purpose, theirs), strict=True)
        ]
    return found


# Erasure -------------------------------------------------------------------------------------

_PROOF = (
    "Decisions and times, without names: they prove that consent was there (GDPR articles 7(1) and"
    " 17(3)(e))."
)


def erase(*, target: Target, store: str) -> Remainder | None:
    """Erase what a store of this app holds of a target. Inside the unit of an erasure."""
    if not target.is_whole:
        return None
    match store:
        case "serving":
            grants = serving(target).count()
            return Remainder(kept=grants, ground="It belongs to the login." if grants else None)
        case "confirmations" | "restrictions":
            erasure.drop_rights(target)
            return NOTHING_LEFT
    erasure.blank_ledger(target)
    erasure.close_withdrawals(target)
    kept = erasure.kept_entries(target).count()
    return Remainder(kept=kept, ground=_PROOF if kept else None)


def count(*, target: Target, store: str) -> int:
    """Return how much of a target a store of this app still holds. Inside a unit of work."""
    match store:
        case "consents":
            return erasure.naming_entries(target).count()
        case "confirmations":
            return erasure.naming_confirmations(target).count()
        case "restrictions":
            return erasure.naming_restrictions(target).count()
    return 0


def serving(target: Target) -> QuerySet[PurposeUserPermission]:
    """Return the purposes that the person's logins serve."""
    return PurposeUserPermission.objects.filter(
        tenant_id=target.tenant_id, user__in=list(target.logins)
    )
