"""Which scopes a caller's question reaches. Reads nothing that is stored."""

from collections.abc import Iterable, Sequence

from tenants.callers import Caller
from tenants.exceptions import InvalidScope
from tenants.roles import Role
from tenants.scopes import Scope


def persons_of(scopes: Sequence[Scope]) -> list[str]:
    """Return the persons to fence while several statements read these scopes."""
    return sorted({scope.subject for scope in scopes if scope.subject is not None})


def own_scopes(caller: Caller) -> list[Scope]:
    """
    Return the personal scopes of a list that names none.

    Raises:
        InvalidScope: an unbound agent, who cannot list across people.
    """
    if caller.is_agent and caller.on_behalf_of is None:
        raise InvalidScope("An agent without a person names the scope.", pointer="/query/scope")
    stands_for_itself = caller.is_agent or Role.MEMBER in caller.roles
    if caller.subject is None or not stands_for_itself:
        return []
    return [Scope.of_subject(caller.subject)]


def readable_scopes(caller: Caller, scopes: Iterable[Scope]) -> list[Scope]:
    """Return those scopes that the caller may read beside others, each once, in their order."""
    return [scope for scope in dict.fromkeys(scopes) if may_read(caller, scope)]


def may_read(caller: Caller, scope: Scope) -> bool:
    """
    Whether a question over several scopes may look into this one.

    A steward reads another person's data with a reason, one scope at a time; not here.
    """
    if scope.subject is None or caller.stands_for(scope.subject):
        return True
    return caller.is_agent and caller.on_behalf_of is None
