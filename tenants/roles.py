"""What a caller may do in a tenant, as five bundles. A role says what is asked for, never for whom."""

from enum import StrEnum


class Role(StrEnum):
    """
    The roles of the contract; they add up.

    Each is stored as the guardian permission `codename` on one tenant.
    """

    MEMBER = "member"
    AGENT = "agent"
    OPERATOR = "operator"
    AUDITOR = "auditor"
    OWNER = "owner"

    @property
    def codename(self) -> str:
        """The permission's codename, e.g. ``act_as_member``."""
        return f"act_as_{self.value}"


ANYONE = frozenset(Role)
#: Who may see and change values at all; an auditor sees none.
READERS = frozenset({Role.MEMBER, Role.AGENT, Role.OPERATOR, Role.OWNER})
#: Who acts for other persons, with a reason.
STEWARDS = frozenset({Role.OPERATOR, Role.OWNER})
#: Who reads the trail and the ledger.
WATCHERS = frozenset({Role.AUDITOR, Role.OWNER})
