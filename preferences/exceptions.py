"""How an outcome of the SQL functions becomes a refusal. The errors themselves are the tenants' family."""

from preferences.records import Record
from tenants.exceptions import (
    AlreadyExists,
    ConsentRequired,
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


def refusal_of(
    outcome: str, *, scope: Scope, key: str, purpose: str | None, record: Record | None
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
                _ARCHIVED if record and record.archived_at else None,
                facts={"current": record.current if record else None},
            )
        case _:
            return NotFound("There is no live record at this address.")
