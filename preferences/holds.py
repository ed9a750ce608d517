"""Legal holds: one record stays as it is, whoever asks, until the hold ends (GDPR article 17(3)(e))."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from consent.ledger import check_deadline
from preferences.models import Preference
from tenants.callers import Caller
from tenants.exceptions import NotFound, PermissionDenied, ValidationError
from tenants.scopes import Scope, check_key
from tenants.times import format_time
from tenants.units import unit_of_work


def hold(
    *, caller: Caller, subject: str, key: str, reason: str, until: datetime | None = None
) -> Preference:
    """
    Keep one record of a person as it is: neither changed nor deleted, purged or erased. Again: anew.

    An expired record that housekeeping has not purged can be held, too. Under the exclusive fence: what
    is being written stands before the hold.

    Args:
        until: when the hold ends by itself; None until somebody ends it.

    Raises:
        PermissionDenied: no operator asks.
        ValidationError: no reason of 1 to 500 characters, or the end has passed.
        NotFound: there is no such record.
    """
    scope, key = _address(caller, subject, key)
    _check_reason(reason)
    told = replace(caller, reason=reason)
    with unit_of_work(
        tenant_id=caller.tenant_id, actor=told.actor, subjects=[subject], exclusive=True
    ):
        check_deadline(until, pointer="/until")
        found = Preference.objects.filter(tenant_id=caller.tenant_id, scope=scope, key=key)
        if not found.update(
            held_at=RawSQL("coalesce(held_at, consentful_now())", []),
            held_until=until,
            hold_reason=reason,
        ):
            raise NotFound("There is no record at this address.")
        return found.get()


def release(*, caller: Caller, subject: str, key: str, reason: str) -> None:
    """
    End a hold before its time. What waited for it, an erasure, goes on by itself.

    Raises:
        PermissionDenied: no operator asks.
        ValidationError: no reason of 1 to 500 characters.
        NotFound: nothing is held there.
    """
    scope, key = _address(caller, subject, key)
    _check_reason(reason)
    told = replace(caller, reason=reason)
    with unit_of_work(
        tenant_id=caller.tenant_id, actor=told.actor, subjects=[subject], exclusive=True
    ):
        ended = held(Preference.objects.filter(tenant_id=caller.tenant_id, scope=scope, key=key))
        if not ended.update(held_at=None, held_until=None, hold_reason=None):
            raise NotFound("Nothing is held here.")


def held(records: QuerySet[Preference]) -> QuerySet[Preference]:
    """Return those of the records that a hold keeps now."""
    return records.alias(
        is_held=RawSQL("consentful_is_held(held_at, held_until, consentful_now())", [])
    ).filter(is_held=True)


def list_holds(*, tenant_id: int, subject: str) -> Sequence[Preference]:
    """Return a person's records that are held now, oldest first. Inside a unit of work."""
    scope = str(Scope.of_subject(subject))
    return list(held(Preference.objects.filter(tenant_id=tenant_id, scope=scope)).order_by("pk"))


def hold_as_json(row: Preference) -> dict[str, Any]:
    """Return a hold as the contract shows it."""
    return {
        "key": row.key,
        "since": row.held_at and format_time(row.held_at),
        "until": row.held_until and format_time(row.held_until),
        "reason": row.hold_reason,
    }


def _address(caller: Caller, subject: str, key: str) -> tuple[str, str]:
    if not caller.is_steward:
        raise PermissionDenied(
            "Only an operator holds a record, or ends a hold.", about={"subject": subject}
        )
    return str(Scope.of_subject(subject)), check_key(key)


def _check_reason(reason: str) -> None:
    if not 1 <= len(reason.strip()) <= len(reason) <= 500:
        raise ValidationError("A reason has 1 to 500 characters.", pointer="/reason")
