"""The proof of a tenant's trail, as `verify_audit` makes it."""

import time
from typing import Any

from django.db import connection

from audit.actors import SYSTEM
from audit.models import Event
from audit.sealing import seal
from audit.verification import verify
from tenants.models import Tenant
from tenants.units import unit_of_work

#: Seconds that a transaction which is older than the newest event may go on.
PATIENCE = 20.0


def prove(tenant: Tenant) -> None:
    """Seal every event of the tenant, and find nothing wrong with the trail or a row."""
    deadline = time.monotonic() + PATIENCE
    while count_unsealed(tenant):
        assert time.monotonic() < deadline, "an older transaction does not end"
        seal(tenant.pk, using=connection.alias)
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        findings: list[Any] = verify(tenant.pk, using=connection.alias)
    assert findings == []


def count_unsealed(tenant: Tenant) -> int:
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        return Event.objects.filter(tenant_id=tenant.pk, seal=None).count()
