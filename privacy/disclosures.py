"""Showing an operator how much is held about a person: with a reason, and with an event."""

from collections.abc import Sequence

from audit.services import record_event
from privacy.selectors import Preview, preview_erasure
from privacy.services import check_may_erase
from tenants.callers import Caller
from tenants.exceptions import ValidationError
from tenants.scopes import Scope
from tenants.units import database, unit_of_work


def disclose_preview(
    *,
    caller: Caller,
    subject: str,
    keys: Sequence[str] | None = None,
    purposes: Sequence[str] | None = None,
) -> Sequence[Preview]:
    """
    Return what an erasure would take, store by store; leave a `data.disclosed` event.

    Raises:
        PermissionDenied: the caller may not have this person forgotten.
        ValidationError: no reason of 1 to 500 characters for another person's.
    """
    check_may_erase(caller, subject)
    reason = caller.reason or ""
    if not caller.discloses(subject):
        return preview_erasure(caller=caller, subject=subject, keys=keys, purposes=purposes)
    if not 1 <= len(reason.strip()) <= len(reason) <= 500:
        raise ValidationError("A reason has 1 to 500 characters.", pointer="/reason")
    with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
        found = preview_erasure(caller=caller, subject=subject, keys=keys, purposes=purposes)
        record_event(
            "data.disclosed", tenant_id=caller.tenant_id, actor=caller.actor, subject=subject,
            scope=str(Scope.of_subject(subject)), using=database(),
        )  # fmt: skip
    return found
