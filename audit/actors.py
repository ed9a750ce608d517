"""Who performs a change, as the trail names it. Nothing here asks whether they may."""

import json
from dataclasses import dataclass, replace
from typing import Self

_ENCODER = json.JSONEncoder(ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """
    The performer of one request, command or job.

    Attributes:
        label: readable name (a user name, or ``system``); blanked when that person is erased.
        id: the host's user id as text, kept as a pseudonym; None for the system.
        on_behalf_of: external id of the subject that a bound agent token stands for.
        request_id: 1-128 visible ASCII characters that tie events to answers and logs.
        reason: why, in 1-500 characters, where a reason had to be given.
    """

    label: str
    id: str | None = None
    on_behalf_of: str | None = None
    request_id: str | None = None
    reason: str | None = None

    def because(self, reason: str | None) -> Self:
        """Return this actor with the reason of one act."""
        return replace(self, reason=reason)

    def as_context(self) -> str:
        """Return the JSON text that is announced to the database's capture triggers."""
        return _ENCODER.encode(
            {
                "actor": self.label,
                "actor_id": self.id,
                "on_behalf_of": self.on_behalf_of,
                "request_id": self.request_id,
                "reason": self.reason,
            }
        )


#: Housekeeping and migrations: no person stands behind them.
SYSTEM = Actor(label="system")
