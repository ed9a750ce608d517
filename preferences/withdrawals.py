"""
Purging what a withdrawn purpose held, where the purpose says so (`on_withdrawal: "erase"`).

The ledger notes what a withdrawal asks for, and deletes nothing of another app; here it is done, in
batches, by housekeeping. Whatever is interrupted goes on with the next round.
"""

from audit.actors import SYSTEM, Actor
from consent.confirmations import purge_confirmations
from tenants.models import Tenant
from tenants.units import store, unit_of_work

BATCH = 1000


def purge_withdrawn(*, tenant_id: int, actor: Actor, most: int = BATCH) -> int:
    """
    Delete up to `most` records that were written before their purpose was withdrawn; return how many.

    What was written under consent that came back since stays. Rows that somebody works on, or that a hold
    keeps, wait for another round; a withdrawal is done once nothing of it is left.
    """
    with unit_of_work(tenant_id=tenant_id, actor=actor), store().cursor() as cursor:
        cursor.execute(
            # Chosen once: a sub-select with a limit may be run again for every row.
            "WITH due AS MATERIALIZED ("
            " SELECT p.id FROM consentful_withdrawal w JOIN consentful_preference p"
            "  ON p.tenant_id = w.tenant_id AND p.subject_id = w.subject_id"
            "  AND p.purpose_id = w.purpose_id AND p.updated_at <= w.at"
            " WHERE w.tenant_id = %s AND w.purged_at IS NULL"
            "  AND NOT consentful_is_held(p.held_at, p.held_until, (SELECT consentful_now()))"
            " ORDER BY p.scope, p.key LIMIT %s FOR UPDATE OF p SKIP LOCKED)"
            " DELETE FROM consentful_preference p USING due WHERE p.tenant_id = %s AND p.id = due.id",
            [tenant_id, most, tenant_id],
        )
        count = int(cursor.rowcount)
        if count < most:
            cursor.execute(
                "UPDATE consentful_withdrawal w SET purged_at = consentful_now()"
                " WHERE w.tenant_id = %s AND w.purged_at IS NULL AND NOT EXISTS ("
                "  SELECT FROM consentful_preference p WHERE p.tenant_id = w.tenant_id"
                "  AND p.subject_id = w.subject_id AND p.purpose_id = w.purpose_id"
                "  AND p.updated_at <= w.at)",
                [tenant_id],
            )
    return count


def purge_all_withdrawn(*, most_batches: int | None = None) -> int:
    """
    Purge for every tenant, and drop confirmations that nobody brought in time; return how many records.

    Args:
        most_batches: per tenant; None for as many as it takes.
    """
    total = 0
    for tenant_id in Tenant.objects.values_list("pk", flat=True).order_by("pk"):
        purge_confirmations(tenant_id=tenant_id, actor=SYSTEM)
        batches = 0
        while most_batches is None or batches < most_batches:
            count = purge_withdrawn(tenant_id=tenant_id, actor=SYSTEM)
            total += count
            batches += 1
            if count < BATCH:
                break
    return total
