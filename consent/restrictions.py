"""Restricting what is held about a person (GDPR article 18): kept, shown to them, and not used."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Q

from consent.ledger import check_evidence, ensure_subject, method_of
from consent.models import Restriction
from tenants.callers import Caller
from tenants.exceptions import NotFound, ValidationError
from tenants.scopes import Scope, check_key
from tenants.times import format_time
from tenants.units import store, unit_of_work


def restrict(
    *, caller: Caller, subject: str, key: str | None = None, evidence: str | None = None
) -> Restriction:
    """
    Stop the use of everything about a person, or of the record of one key. Repeating adds nothing.

    Takes the exclusive fence: when it returns, no write that was let in before can land.

    Args:
        key: of one record, which need not exist yet; None for everything.
        evidence: how an operator knows that the person wants it.

    Raises:
        PermissionDenied: an agent, or a member for somebody else.
        ValidationError: an operator gave no evidence.
        InvalidKey: it is none.
    """
    subject = Scope.of_subject(subject, creating=True).name
    key = None if key is None else check_key(key, creating=True)
    method = method_of(caller, subject, deed="restricts what is held")
    check_evidence(method, evidence)
    with unit_of_work(
        tenant_id=caller.tenant_id, actor=caller.actor, subjects=[subject], exclusive=True
    ):
        found = _in_force(caller.tenant_id, subject, key)
        if found is None:
            found = Restriction.objects.create(
                tenant_id=caller.tenant_id, subject_id=ensure_subject(caller.tenant_id, subject),
                key=key, actor=caller.username, method=method,
                evidence=evidence or caller.mandate,
            )  # fmt: skip
            found.refresh_from_db()  # the database's clock
        return found


def lift_restriction(
    *, caller: Caller, subject: str, key: str | None = None, reason: str | None = None
) -> Restriction:
    """
    Let what was restricted be used again. The entry stays, so that the person sees who did it and why.

    Args:
        reason: what the person is told; an operator gives one, and tells the person before (article
            18(3)).

    Raises:
        PermissionDenied: an agent, or a member for somebody else.
        ValidationError: an operator gave no reason.
        NotFound: nothing is restricted there.
    """
    subject = Scope.of_subject(subject).name
    key = None if key is None else check_key(key)
    method = method_of(caller, subject, deed="lifts a restriction")
    if method == "operator" and not (reason and reason.strip()):
        raise ValidationError("Say why: the person reads it.", pointer="/query/reason")
    with unit_of_work(
        tenant_id=caller.tenant_id, actor=caller.actor, subjects=[subject], exclusive=True
    ):
        found = _in_force(caller.tenant_id, subject, key)
        if found is None:
            raise NotFound("Nothing is restricted here.")
        Restriction.objects.filter(tenant_id=caller.tenant_id, pk=found.pk).update(
            lifted_by=caller.username, lifted_because=reason
        )
        found.refresh_from_db()
        return found


def list_restrictions(*, tenant_id: int, subject: str) -> Sequence[Restriction]:
    """Return a person's restrictions, oldest first, lifted ones too. Inside a unit of work."""
    return list(
        Restriction.objects.filter(
            tenant_id=tenant_id, subject__external_id=subject, subject__tenant_id=tenant_id
        ).order_by("pk")
    )


def list_restricted_keys(*, tenant_id: int, subjects: Sequence[str]) -> list[tuple[str, str]]:
    """Return person and key of every single record that is restricted. Inside a unit of work."""
    if not subjects:
        return []
    with store().cursor() as cursor:
        cursor.execute(
            "SELECT s.external_id, r.key FROM consentful_subject s JOIN consentful_restriction r"
            " ON r.tenant_id = s.tenant_id AND r.subject_id = s.id AND r.lifted_by IS NULL"
            " WHERE s.tenant_id = %s AND s.external_id = ANY (%s::text[])"
            " AND s.restricted IS NOT NULL AND r.key IS NOT NULL",
            [tenant_id, list(subjects)],
        )
        return list(cursor.fetchall())


def restriction_as_json(row: Restriction) -> dict[str, Any]:
    """Return a restriction as the contract shows it."""
    return {
        "key": row.key,
        "at": format_time(row.at),
        "actor": row.actor,
        "method": row.method,
        "lifted_at": row.lifted_at and format_time(row.lifted_at),
        "lifted_by": row.lifted_by,
        "reason": row.lifted_because,
    }


def _in_force(tenant_id: int, subject: str, key: str | None) -> Restriction | None:
    return Restriction.objects.filter(
        Q(key=key) if key is not None else Q(key__isnull=True),
        tenant_id=tenant_id, subject__external_id=subject, subject__tenant_id=tenant_id,
        lifted_by=None,
    ).first()  # fmt: skip
