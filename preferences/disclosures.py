"""Showing an operator what is stored about another person: with a reason, and with an event."""

from typing import Any

from django.core import signing

from audit.services import record_event
from consent.selectors import find_refusal
from preferences.models import Preference
from preferences.records import Record
from preferences.selectors import get_preference, list_personal_data
from tenants.callers import Caller
from tenants.exceptions import (
    ConsentRequired,
    NotFound,
    Objected,
    Restricted,
    ValidationError,
)
from tenants.scopes import Scope
from tenants.units import database

_SALT = "consentful.disclosure"
#: Seconds for which a disclosed value may be edited.
_LIFETIME = 3600


def disclose(*, caller: Caller, scope: Scope, key: str, may_see_withheld: bool = False) -> Record:
    """
    Return one live record and leave a `data.disclosed` event with the caller's reason.

    Inside a unit of work. Reading alone: nothing lets a withheld value be written.

    Args:
        may_see_withheld: show it although no consent is in force. Whoever asks has checked that
            the user holds that permission.

    Raises:
        ValidationError: no reason of 1 to 500 characters.
        ConsentRequired, Objected, Restricted: the gate is shut, and the caller may not see what is
            withheld.
        NotFound: nothing live stands there.
    """
    reason = caller.reason or ""
    if not 1 <= len(reason.strip()) <= len(reason) <= 500:
        raise ValidationError("A reason has 1 to 500 characters.", pointer="/reason")
    try:
        record = get_preference(caller=caller, scope=scope, key=key)
    except (ConsentRequired, Objected, Restricted):
        if not may_see_withheld or scope.subject is None:
            raise
        stored = list_personal_data(caller=caller, subject=scope.subject, key=key)
        if not stored:
            raise NotFound("There is no live record at this address.") from None
        record = stored[0]
    record_event(
        "data.disclosed", tenant_id=caller.tenant_id, actor=caller.actor, subject=scope.subject,
        scope=str(scope), key=key, purpose=record.purpose, using=database(),
    )  # fmt: skip
    return record


def find_gate(*, caller: Caller, row: Preference, scope: Scope) -> str | None:
    """Return the code with which the gate withholds a row, or None. Inside a unit of work."""
    if scope.subject is None or row.purpose_id is None:
        return None
    return find_refusal(
        caller=caller, subject=scope.subject, purpose_id=row.purpose_id, key=row.key
    )


def sign_disclosure(*, user_id: str, row_id: int, reason: str) -> str:
    """Return a proof, for an hour, that this user gave a reason to see this row."""
    return signing.dumps([user_id, row_id, reason], salt=_SALT)


def read_disclosure(text: Any, *, user_id: str, row_id: int) -> str | None:
    """Return the reason that a proof of `sign_disclosure` holds, if it is this user's and row's."""
    try:
        user, row, reason = signing.loads(str(text), salt=_SALT, max_age=_LIFETIME)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    return str(reason) if (user, row) == (user_id, row_id) else None
