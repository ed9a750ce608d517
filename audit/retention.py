"""
Retention: cutting the oldest part of a tenant's trail so that the rest still verifies.

Works as the owner of the tables alone, and commits in small steps: cut short, it goes on where it
was when it is called again.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import batched
from typing import Any

from django.db import connections, transaction

from audit.actors import Actor
from audit.checkpoints import Checkpoint
from audit.guards import captured_models

#: Links deleted in one transaction.
BATCH = 5000
#: Rows whose snapshots are one transaction: whoever wants to write one of them waits for its end.
SNAPSHOTS = 200

_LOCK = "hashtextextended('consentful-retention:' || %s::text, 0)"


def find_prefix(tenant_id: int, *, keep: timedelta, using: str) -> int:
    """Return the place of the last link whose event, like all before it, is older; 0 for none."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(min(link.sequence)"
            " FILTER (WHERE event.at >= consentful_now() - make_interval(secs => %s)) - 1,"
            " max(link.sequence), 0)"
            " FROM consentful_audit_seal AS link JOIN consentful_audit_event AS event"
            " ON event.id = link.event_id WHERE link.tenant_id = %s",
            [keep.total_seconds(), tenant_id],
        )
        return int(cursor.fetchone()[0])


def write_snapshots(tenant_id: int, upto: int, *, actor: Actor, using: str) -> int:
    """Repeat each live row whose last event stands in the prefix; return how many there were."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT record, array_agg(record_id ORDER BY record_id) FROM consentful_uncovered(%s, %s)"
            " GROUP BY record ORDER BY record",
            [tenant_id, upto],
        )
        records = cursor.fetchall()
    written = 0
    for noun, ids in records:
        for several in batched(ids, SNAPSHOTS):
            done = _snapshot(noun, several, actor=actor, using=using)
            written += len(done)
            # Somebody has these locked, or they are gone: waited for one by one.
            for row_id in sorted(set(several) - done):
                written += len(_snapshot(noun, [row_id], actor=actor, using=using))
    return written


def _snapshot(noun: str, row_ids: Sequence[int], *, actor: Actor, using: str) -> set[int]:
    """Write the events of some rows in one transaction; return the rows that have theirs."""
    (table,) = (model._meta.db_table for model in captured_models() if model.noun == noun)
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT consentful_snapshot(%s, %s, %s, %s)",
            [table, noun, list(row_ids), actor.as_context()],
        )
        return set(cursor.fetchone()[0])


def stay_uncut(tenant_id: int, *, using: str) -> None:
    """Keep retention from taking anything of a trail until the transaction ends: it is being read."""
    with connections[using].cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_xact_lock_shared({_LOCK})", [tenant_id])


def _wait_for_readers(cursor: Any, tenant_id: int) -> None:
    """A verification may take minutes, and would find gone what it has not read yet."""
    cursor.execute("SELECT set_config('lock_timeout', '0', true)")
    cursor.execute(f"SELECT pg_advisory_xact_lock({_LOCK})", [tenant_id])


def cut(checkpoint: Checkpoint, *, actor: Actor, using: str) -> None:
    """Decide that everything up to the checkpoint's link goes. Nothing is deleted yet."""
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        _wait_for_readers(cursor, checkpoint.tenant_id)
        cursor.execute(
            "SELECT consentful_cut(%s, %s, %s, %s, %s)",
            [
                checkpoint.tenant_id,
                checkpoint.sequence,
                checkpoint.hash,
                checkpoint.jws,
                actor.as_context(),
            ],
        )


def drop_cut(
    tenant_id: int, *, using: str, tell: Callable[[int], object] = lambda total: None
) -> int:
    """Delete what cuts cover, in batches; return how many events are gone."""
    total = 0
    while True:
        with transaction.atomic(using=using), connections[using].cursor() as cursor:
            _wait_for_readers(cursor, tenant_id)
            cursor.execute("SELECT consentful_drop_cut(%s, %s)", [tenant_id, BATCH])
            dropped = int(cursor.fetchone()[0])
        total += dropped
        tell(total)
        if dropped < BATCH:
            return total
