"""
How the arguments of a tool are read: whose record is meant, and whether this caller may ask so.

Reads nothing that is stored. What a value must be is for the services to say.
"""

from django.core import signing

from agents.tool_schemas import DEFAULT_LIMIT, MOST
from tenants.callers import Caller, check_reach
from tenants.documents import JSONValue, canonical
from tenants.exceptions import InvalidScope, PermissionDenied, ValidationError
from tenants.idempotency import IdempotencyKey
from tenants.scopes import Scope, check_key


def read_address(
    caller: Caller, scope: object, key: object, *, creating: bool = False
) -> tuple[Scope, str]:
    """Return the scope and the key in their canonical form, and in the caller's reach."""
    name = check_key(key, creating=creating)
    try:
        return read_scope(caller, scope, creating=creating), name
    except PermissionDenied as refusal:
        refusal.about["key"] = name
        raise


def read_scope(caller: Caller, scope: object, *, creating: bool = False) -> Scope:
    """
    Return the scope that is named, or the caller's own person.

    Raises:
        InvalidScope: it is malformed, or left out by a caller who must say whom it is about.
        PermissionDenied: it is another person's, or `me` of a caller who stands for nobody.
    """
    if scope is None:
        if caller.subject is None or (caller.is_agent and caller.on_behalf_of is None):
            raise InvalidScope("Name the scope: this credential stands for no person.")
        return Scope.of_subject(caller.subject, creating=creating)
    place = Scope.parse(scope, me=caller.subject, creating=creating)
    try:
        check_reach(caller, place.subject)
    except PermissionDenied as refusal:
        refusal.about["scope"] = str(place)
        raise
    return place


def check_no_reason(caller: Caller, scope: Scope | None) -> None:
    """A steward who sees or deletes another person's data says why, for which HTTP has a place."""
    if scope is not None and caller.discloses(scope.subject):
        raise ValidationError(
            "Another person's data takes a reason, which tools have no place for: use the HTTP"
            " interface.",
            pointer="/scope",
        )


def read_limit(limit: object) -> int:
    if limit is None:
        return DEFAULT_LIMIT
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST:
        raise ValidationError(f"A limit is a number from 1 to {MOST}.", pointer="/limit")
    return limit


def read_position(cursor: object, salt: str) -> int:
    try:
        if not isinstance(cursor, str):
            raise signing.BadSignature("No text.")
        return int(signing.loads(cursor, salt=salt))
    except signing.BadSignature as fault:
        raise ValidationError(
            "This cursor is not one of this list: start without it.", pointer="/cursor"
        ) from fault


def read_once(
    caller: Caller, key: object, tool: str, scope: str, name: str, asked: JSONValue
) -> IdempotencyKey | None:
    if key is None:
        return None
    if not isinstance(key, str):
        raise ValidationError("An idempotency key is a string.", pointer="/idempotency_key")
    return IdempotencyKey.of_request(
        key,
        tenant_id=caller.tenant_id,
        caller=f"{caller.user_id}:{caller.on_behalf_of or ''}",
        request=tuple(part.encode() for part in (tool, scope, name, canonical(asked))),
    )
