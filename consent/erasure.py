"""
What an erasure does to the ledger: every consent is withdrawn, names and evidence go.

Decisions and times stay, under the pseudonym: they prove that what was done before was lawful. Runs
inside the unit of work of an erasure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet
from django.db.models.expressions import RawSQL

from consent.models import (
    Confirmation,
    ConsentEntry,
    ConsentState,
    Decision,
    Restriction,
    Withdrawal,
)
from tenants.personal import Target
from tenants.units import store


def withdraw_all(target: Target, *, actor: str, method: str) -> int:
    """
    Withdraw every consent that was given, expired and outdated ones too; return how many.

    Before anything is deleted: what is in flight then finds the gate shut.
    """
    with store().cursor() as cursor:
        cursor.execute(
            "INSERT INTO consentful_consent_entry"
            " (tenant_id, subject_id, purpose_id, decision, actor, method)"
            " SELECT tenant_id, subject_id, purpose_id, %s, %s, %s FROM consentful_consent_state"
            " WHERE tenant_id = %s AND subject_id = %s AND decision = %s ORDER BY purpose_id",
            [
                Decision.WITHDRAWN, actor, method,
                target.tenant_id, target.subject_id, Decision.GIVEN,
            ],
        )  # fmt: skip
        return int(cursor.rowcount)


def open_consents(target: Target) -> QuerySet[ConsentState]:
    """Return what the person's consents still allow."""
    return ConsentState.objects.filter(
        tenant_id=target.tenant_id, subject_id=target.subject_id or 0, decision=Decision.GIVEN
    )


def naming_entries(target: Target) -> QuerySet[ConsentEntry]:
    """Return the entries that name the person as who decided, or hold evidence about it."""
    return ConsentEntry.objects.filter(tenant_id=target.tenant_id).filter(
        Q(actor__in=list(target.names))
        | Q(subject_id=target.subject_id, subject_id__isnull=False, evidence__isnull=False)
    )


def kept_entries(target: Target) -> QuerySet[ConsentEntry]:
    """Return the decisions that stay under the pseudonym."""
    return ConsentEntry.objects.filter(
        tenant_id=target.tenant_id, subject_id=target.subject_id or 0
    )


def blank_ledger(target: Target) -> None:
    """Blank names and evidence. The ledger lets through no other change."""
    with store().cursor() as cursor:
        cursor.execute(
            "SELECT consentful_blank_ledger(%s, %s, %s::text[], %s)",
            [
                target.tenant_id,
                target.subject_id or 0,
                list(target.names),
                target.pseudonym,
            ],
        )


def close_withdrawals(target: Target) -> None:
    """Ask for nothing more to be purged: everything about the person goes with this erasure."""
    Withdrawal.objects.filter(
        tenant_id=target.tenant_id, subject_id=target.subject_id or 0, purged_at=None
    ).update(purged_at=RawSQL("consentful_now()", []))


def naming_confirmations(target: Target) -> QuerySet[Confirmation]:
    """Return what waits for the person to confirm, or was asked for in their name."""
    return Confirmation.objects.filter(tenant_id=target.tenant_id).filter(
        Q(subject_id=target.subject_id or 0) | Q(actor__in=list(target.names))
    )


def naming_restrictions(target: Target) -> QuerySet[Restriction]:
    """Return the person's restrictions, and those of others that the person made or lifted."""
    return Restriction.objects.filter(tenant_id=target.tenant_id).filter(
        Q(subject_id=target.subject_id or 0)
        | Q(actor__in=list(target.names))
        | Q(lifted_by__in=list(target.names))
    )


def drop_rights(target: Target) -> None:
    """Delete what the person asked for; where they acted for others, their name goes."""
    own = {"tenant_id": target.tenant_id, "subject_id": target.subject_id or 0}
    Confirmation.objects.filter(**own).delete()
    Restriction.objects.filter(**own).delete()
    naming_confirmations(target).update(actor=target.pseudonym)
    for column in ("actor", "lifted_by"):
        Restriction.objects.filter(
            **{"tenant_id": target.tenant_id, f"{column}__in": list(target.names)}
        ).update(**{column: target.pseudonym})


def withdraw_again(*, tenant_id: int, subject: str, purpose: str, before: str, actor: str) -> None:
    """
    Withdraw a consent that was withdrawn once and came back with a backup.

    Args:
        before: when it was withdrawn, RFC 3339; what was given later stays.
    """
    with store().cursor() as cursor:
        cursor.execute(
            "INSERT INTO consentful_consent_entry"
            " (tenant_id, subject_id, purpose_id, decision, actor, method)"
            " SELECT s.tenant_id, s.subject_id, s.purpose_id, %s, %s, 'system'"
            " FROM consentful_consent_state s JOIN consentful_purpose p"
            " ON p.tenant_id = s.tenant_id AND p.id = s.purpose_id AND p.slug = %s"
            " WHERE s.tenant_id = %s AND s.subject_id = consentful_subject_id(%s, %s)"
            " AND s.decision = %s AND s.since < %s::timestamptz",
            [
                Decision.WITHDRAWN, actor, purpose, tenant_id, tenant_id, subject, Decision.GIVEN,
                before,
            ],
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """One withdrawal of a person who is not forgotten."""

    id: int
    entry: str
    subject: str
    purpose: str
    at: datetime


def list_withdrawals(*, tenant_id: int, after: int, most: int) -> Sequence[Withdrawn]:
    """Return withdrawals with a higher id than `after`, in the order of ids. Inside a unit."""
    rows = (
        ConsentEntry.objects.filter(
            tenant_id=tenant_id, pk__gt=after, decision=Decision.WITHDRAWN, subject__erased_at=None
        )
        .order_by("pk")
        .values_list("pk", "entry", "subject__external_id", "purpose__slug", "at")[:most]
    )
    return [
        Withdrawn(id=pk, entry=entry, subject=subject, purpose=purpose, at=at)
        for pk, entry, subject, purpose, at in rows
    ]


def newest_entry(*, tenant_id: int) -> int:
    """Return the highest id in a tenant's ledger, 0 for none. Inside a unit of work."""
    newest = ConsentEntry.objects.filter(tenant_id=tenant_id).order_by("-pk").first()
    return 0 if newest is None else newest.pk
