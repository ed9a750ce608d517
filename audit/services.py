"""Writing to the trail what is no change of data. Changes are captured by triggers alone."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from django.db import connections

from audit.actors import Actor


def record_event(
    action: Literal["access.denied", "data.disclosed", "context.injected"],
    *,
    tenant_id: int,
    actor: Actor,
    outcome: Literal["done", "denied"] = "done",
    subject: str | None = None,
    scope: str | None = None,
    key: str | None = None,
    purpose: str | None = None,
    using: str = "default",
) -> None:
    """
    Add one event about an attempt, a disclosure or an injection.

    Args:
        action: what happened; the database refuses every action that names a change.
        subject: external id of the person concerned.
        scope: canonical text of the scope, and `key`, of the record concerned.
        purpose: slug of the purpose that decided.
    """
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT consentful_record_event(%s, %s, %s, %s, %s, %s, %s, %s)",
            [tenant_id, actor.as_context(), action, outcome, subject, scope, key, purpose],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """
    One stored version that a language model was shown.

    Attributes:
        subject: external id of the person whose it is; None for shared data.
        scope: canonical text.
        purpose: slug of the purpose that governs it.
    """

    record_id: int
    revision: str
    subject: str | None
    scope: str
    key: str
    purpose: str | None


def record_injections(
    shown: Sequence[Injection], *, tenant_id: int, actor: Actor, using: str = "default"
) -> None:
    """Add one `context.injected` event for each version that was shown, in one statement."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT consentful_record_injections(%s, %s, %s)",
            [tenant_id, actor.as_context(), json.dumps([asdict(one) for one in shown])],
        )
