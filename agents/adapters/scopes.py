"""Which scope an adapter stands in: settled once, when it is made."""

from tenants.callers import Caller, check_reach
from tenants.exceptions import PermissionDenied
from tenants.scopes import Scope


def settle_scope(caller: Caller, scope: Scope | None) -> Scope:
    """
    Return the scope that was chosen, or the caller's own person.

    Raises:
        PermissionDenied: no scope was given, and the caller stands for no person; or the scope is
            that of a person whom the caller does not act for. Stewards look with a reason, not here.
    """
    if scope is None:
        if caller.subject is None:
            raise PermissionDenied("This caller stands for no person: name a scope.")
        scope = Scope.of_subject(caller.subject)
    check_reach(caller, scope.subject)
    if caller.discloses(scope.subject):
        raise PermissionDenied("A steward reads another person's data with a reason, not here.")
    return scope
