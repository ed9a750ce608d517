"""What the outcomes of the SQL functions say about the gate and about conflicts, to be counted."""

from tenants.exceptions import Conflict, ServiceError
from tenants.metrics import count_conflict, count_gate
from tenants.scopes import Scope

#: With these the gate refuses.
REFUSALS = frozenset({"consent_required", "purpose_not_allowed", "objected", "restricted"})

#: These come before the gate, or from a first look that a real attempt follows.
UNDECIDED = frozenset({"definition_changed", "undeclared_key", "permission_denied", "checked"})


def count_read(outcome: str, *, scope: Scope, purpose: str | None) -> None:
    """Count the decision behind a read; shared records, and keys that nothing governs, have none."""
    if scope.subject is not None and purpose is not None:
        count_gate(outcome if outcome in REFUSALS else None)


def count_write(outcome: str, *, scope: Scope) -> None:
    """Count the decision behind a write of a personal record."""
    if scope.subject is not None and outcome not in UNDECIDED:
        count_gate(outcome if outcome in REFUSALS else None)


def count_delete(outcome: str, *, scope: Scope) -> None:
    """Count what an agent may not delete: nobody else's deleting asks the gate."""
    if scope.subject is not None and outcome in REFUSALS:
        count_gate(outcome)


def count_refusal(refusal: ServiceError) -> None:
    """Count a conflict; other refusals are counted with the request."""
    if isinstance(refusal, Conflict):
        count_conflict(refusal.code)
