"""What an operator types into a search box, read by the one parser of addresses."""

from contextlib import suppress

from tenants.exceptions import InvalidScope, ServiceError, ValidationError
from tenants.scopes import Scope, check_key, split_address


def find_addresses(text: str, *, me: str | None = None) -> list[tuple[Scope, str | None]]:
    """
    Return what an exact scope, or scope and key divided by a slash, can mean: one or two readings.

    A branch may hold slashes, so ``branch::acme/checkout::main/x`` is a branch, or the key x of
    the branch main; every other text has one reading.

    Raises:
        ValidationError: it has none.
    """
    found: list[tuple[Scope, str | None]] = []
    problem: ServiceError | None = None
    try:
        found.append((Scope.parse(text, me=me), None))
    except ServiceError as refusal:
        problem = refusal
    scope, key = split_address(text)
    if scope:
        with suppress(ServiceError):
            found.append((Scope.parse(scope, me=me), check_key(key)))
    if not found:
        detail = problem.detail if isinstance(problem, InvalidScope) else "This names no scope."
        raise ValidationError(f"Search for an exact scope, or scope/key. {detail}")
    return found
