"""Changes of many records at once, in batches: for commands, which have the time."""

from typing import Any

from preferences.attempts import fences
from tenants.scopes import Scope
from tenants.units import store, unit_of_work


def delete_scope(
    *, tenant_id: int, scope: Scope, key_prefix: str, actor: Any, most: int = 1000
) -> int:
    """
    Delete up to `most` records of one scope, whatever their consent; return how many.

    Each leaves its event. Done in batches by a command: a request would not have the time. What a hold
    keeps stays.

    Args:
        key_prefix: literal; empty for every key.
    """
    with (
        unit_of_work(tenant_id=tenant_id, actor=actor, subjects=fences(scope)),
        store().cursor() as cursor,
    ):
        cursor.execute(
            # Materialized: looked up again for each row, it would lock and delete more than `most`.
            "WITH gone AS MATERIALIZED (SELECT id FROM consentful_preference"
            " WHERE tenant_id = %s AND scope = %s AND key ^@ %s"
            " AND NOT consentful_is_held(held_at, held_until, (SELECT consentful_now()))"
            " ORDER BY key LIMIT %s FOR UPDATE)"
            " DELETE FROM consentful_preference p USING gone WHERE p.tenant_id = %s AND p.id = gone.id",
            [tenant_id, str(scope), key_prefix, most, tenant_id],
        )
        return int(cursor.rowcount)
