"""
One consistent look at one tenant: many statements that all see the same moment.

No unit of work: it takes no fence, announces no actor and cannot write. Whatever decides by what it
reads belongs in `tenants.units`, which refuses this isolation level for that reason.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from tenants.restores import check_current
from tenants.units import store


@contextmanager
def snapshot(*, tenant_id: int) -> Iterator[None]:
    """
    Run the block as one read-only transaction in which every statement sees the same rows.

    Raises:
        StoreUnavailable: the database is an older copy that awaits its erasures.
        RuntimeError: a transaction is open already, which has seen other moments.
    """
    check_current()
    connection = store()
    if connection.in_atomic_block:
        raise RuntimeError("A snapshot begins its own transaction: leave the open one first.")
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        # Before anything is read; and a client's program may not count on more than this.
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT set_config('consentful.tenant', %s, true)", [str(tenant_id)])
        yield
