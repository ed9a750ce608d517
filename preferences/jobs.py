"""Housekeeping: what is past its deadline goes."""

import time
from collections.abc import Callable

from audit.actors import SYSTEM
from preferences.readings import purge_readings
from preferences.services import purge_expired
from tenants.idempotency import purge_answers
from tenants.models import Tenant
from tenants.observation import note_purged
from tenants.units import unit_of_work

BATCH = 1000


def purge_all(
    *, most_batches: int | None = None, tell: Callable[[int], object] = lambda total: None
) -> int:
    """
    Delete the expired records of every tenant in batches; return how many.

    Args:
        most_batches: per tenant; None for as many as it takes.
        tell: called with the number so far after each batch.
    """
    started = time.perf_counter()
    total = 0
    tenants = Tenant.objects.values_list("pk", flat=True).order_by("pk")
    for tenant_id in tenants:
        with unit_of_work(tenant_id=tenant_id, actor=SYSTEM):
            purge_answers(tenant_id=tenant_id)
            purge_readings(tenant_id=tenant_id)
        batches = 0
        while most_batches is None or batches < most_batches:
            count = purge_expired(tenant_id=tenant_id, actor=SYSTEM, most=BATCH)
            total += count
            tell(total)
            batches += 1
            if count < BATCH:
                break
    note_purged(purged=total, tenants=len(tenants), duration=time.perf_counter() - started)
    return total
