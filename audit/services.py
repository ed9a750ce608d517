"""Writing to the trail what is no change of data. Changes are captured by triggers alone."""

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
