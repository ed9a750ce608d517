"""How an outcome of the SQL functions becomes a refusal. The errors themselves are the tenants' family."""

from preferences.records import Record
from preferences.transitions import MAX_STATE_LENGTH
from tenants.documents import JSONValue
from tenants.exceptions import (
    AlreadyExists,
    ConsentRequired,
    InvalidTransition,
    InvalidTTL,
    NotFound,
    Objected,
    PermissionDenied,
    PurposeNotAllowed,
    Restricted,
    ServiceError,
    StaleRevision,
    UndeclaredKey,
)
from tenants.scopes import Scope

_ARCHIVED = "An archived record stands there: restore it first, or delete it."


def _status(value: JSONValue) -> str | None:
    """Return the state that a value says it is in, as far as it is a name."""
    status = value.get("status") if isinstance(value, dict) else None
    return status if isinstance(status, str) and len(status) <= MAX_STATE_LENGTH else None


def refusal_of(
    outcome: str,
    *,
    scope: Scope,
    key: str,
    purpose: str | None,
    record: Record | None,
    value: JSONValue = None,
    is_restoring: bool = False,
) -> ServiceError:
    """Return the error that tells a caller about `outcome`, with the facts it may know."""
    about = {"subject": scope.subject, "scope": str(scope), "key": key}
    match outcome:
        case "consent_required":
            return ConsentRequired(
                f"The person has not consented to the purpose {purpose}, or no longer does.",
                facts={"purpose": purpose},
                about=about,
            )
        case "purpose_not_allowed":
            return PurposeNotAllowed(
                f"This agent was not given the purpose {purpose}.",
                facts={"purpose": purpose},
                about=about,
            )
        case "objected":
            return Objected(
                f"The person objected to the purpose {purpose}.",
                facts={"purpose": purpose},
                about=about,
            )
        case "restricted":
            return Restricted(
                "The person restricted this: it is kept and not used.",
                facts={"purpose": purpose},
                about=about,
            )
        case "held":
            return Restricted(
                "A legal hold keeps this record as it is: it is neither changed nor deleted.",
                facts={"purpose": purpose},
                about=about,
            )
        case "permission_denied":
            return PermissionDenied("You are not among those who may write this key.", about=about)
        case "undeclared_key":
            return UndeclaredKey(
                f"No definition in force governs this key in scopes of the kind {scope.kind},"
                " and undeclared keys are not stored there.",
            )
        case "invalid_ttl":
            return InvalidTTL(
                "The deadline must lie in the future, before the year 9999, and within what the"
                " key's definition allows; where it sets a limit, a record cannot live for ever.",
            )
        case "already_exists":
            return AlreadyExists(
                _ARCHIVED if record and record.archived_at else None,
                facts={"current": record.current if record else None},
            )
        case "stale_revision":
            return StaleRevision(
                # Who restores an older version is not told to restore it.
                _ARCHIVED if record and record.archived_at and not is_restoring else None,
                facts={"current": record.current if record else None},
            )
        case "invalid_transition":
            was, becomes = _status(record.value if record else None), _status(value)
            return InvalidTransition(
                f"A value does not begin as {becomes}."
                if was is None
                else f"What is {was} does not become {becomes}.",
                facts={
                    "from": was, "to": becomes, "current": record.current if record else None,
                },
            )  # fmt: skip
        case _:
            return NotFound("There is no live record at this address.")
