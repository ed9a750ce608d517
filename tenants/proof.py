"""
Proof of a tenant's trail to hand over: checkpoints, exports and retention, inside its unit of work.

What is signed and computed belongs in `audit`; who may ask, in the views and commands.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError
from django.utils import timezone

from audit import partitions, retention
from audit.actors import SYSTEM, Actor
from audit.chains import last_cut
from audit.checkpoints import Checkpoint, check_checkpoints, read_log, sign_checkpoint, sign_cut
from audit.exceptions import ProofError, ProofRefused
from audit.exports import write_export
from audit.models import Seal
from audit.sealing import GENESIS, seal
from audit.signing import present_key, trusted_keys
from audit.stores import Store
from audit.verification import verify
from tenants.exceptions import NotFound
from tenants.units import database, store, unit_of_work

#: How old a checkpoint gets before housekeeping writes the next.
INTERVAL = timedelta(hours=1)


def read_checkpoints(tenant_id: int, kept: Store | None) -> list[Checkpoint]:
    """
    Return what was signed about a tenant's trail and kept in a store, oldest first.

    Raises:
        StoreFailed: the store does not answer.
        ProofRefused: the log cannot be believed.
    """
    return [] if kept is None else read_log(kept.read(tenant_id), trusted_keys())


def write_checkpoint(tenant_id: int, name: str, *, kept: Store) -> Checkpoint | None:
    """
    Seal, compare the chain with every checkpoint before, and add the next one to the store.

    A new key signs even where nothing happened since: from its first line on, the former one can add
    nothing to the log.

    Returns:
        The new checkpoint, or None where there is nothing new to sign.

    Raises:
        ProofRefused: an earlier checkpoint cannot be believed, or the chain is no longer the one that it
            signed: nothing is written then.
        SigningKeyMissing, StoreFailed: see there.
    """
    seal(tenant_id, using=database())
    with unit_of_work(tenant_id=tenant_id, actor=SYSTEM):
        with store().cursor() as cursor:
            # Two writers at once would both follow the same line.
            cursor.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended('consentful-checkpoint:' || %s, 0))",
                [str(tenant_id)],
            )
        log = read_checkpoints(tenant_id, kept)
        for found in check_checkpoints(tenant_id, log, using=database()):
            raise ProofRefused(found.sentence)
        before = log[-1] if log else None
        newest = sign_checkpoint(tenant_id, name, using=database(), previous=before)
        if newest is None or (before and _same_statement(before, newest)):
            return None
        kept.append(tenant_id, newest.jws)
    return newest


def _same_statement(before: Checkpoint, newest: Checkpoint) -> bool:
    """Tell whether the same key signed the same chain."""
    return (before.sequence, before.count, before.key) == (
        newest.sequence, newest.count, newest.key,
    )  # fmt: skip


def write_due_checkpoints(
    trails: Mapping[int, str], *, kept: Store, interval: timedelta = INTERVAL
) -> list[str]:
    """
    Write the checkpoint of every trail whose last one is old enough; return what was refused.

    One trail that is refused keeps no other waiting.

    Args:
        trails: ids and names, as `tenants.trail.list_trails` returns them.
    """
    refused = []
    for tenant_id, name in trails.items():
        try:
            log = read_checkpoints(tenant_id, kept)
            age = timezone.now() - datetime.fromisoformat(log[-1].time) if log else interval
            if age >= interval:
                write_checkpoint(tenant_id, name, kept=kept)
        except ProofError as fault:
            refused.append(f"{name}: {fault}")
    return refused


def get_checkpoint(tenant_id: int, name: str, *, actor: Actor) -> Checkpoint | None:
    """
    Return a signed checkpoint of the chain as it stands, or None while it has no link.

    Raises:
        SigningKeyMissing, ProofRefused: see `audit.signing.sign`.
    """
    with suppress(IntegrityError):  # a chain that cannot go on: what there is of it can be signed
        seal(tenant_id, using=database())
    with unit_of_work(tenant_id=tenant_id, actor=actor):
        return sign_checkpoint(tenant_id, name, using=database())


def export_trail(tenant_id: int, name: str, *, after: int, actor: Actor) -> Iterator[str]:
    """
    Return the sealed trail as a document, in pieces; each piece is read in a unit of its own.

    Args:
        after: place of the link after which it starts.

    Raises:
        NotFound: no link of that place is there.
        SigningKeyMissing, ProofRefused: see `audit.signing.sign`.
    """
    checkpoint = get_checkpoint(tenant_id, name, actor=actor)

    def unit() -> AbstractContextManager[Any]:
        return unit_of_work(tenant_id=tenant_id, actor=actor)

    with unit():
        start = _find_start(tenant_id, after)
    return write_export(checkpoint, start=start, using=database(), unit=unit)


def _find_start(tenant_id: int, after: int) -> tuple[int, str]:
    """Return place and hash of the link after which a document starts; the oldest there is for 0."""
    cut = last_cut(tenant_id, database())
    start = (cut.sequence, cut.hash) if cut else (0, GENESIS)
    if after in (0, start[0]):
        return start
    link = (
        Seal.objects.using(database())
        .filter(tenant_id=tenant_id, sequence=after, sequence__gt=start[0])
        .first()
    )
    if link is None:
        raise NotFound(f"There is no link {after} in the chain, which starts after {start[0]}.")
    return link.sequence, link.hash


def trim_trail(
    tenant_id: int,
    name: str,
    *,
    keep: timedelta,
    actor: Actor,
    kept: Store | None = None,
    tell: Callable[[int], object] = lambda total: None,
) -> int:
    """
    Cut what is older from a tenant's trail, as the owner of the tables; return how many events.

    Args:
        kept: where the checkpoints are that the trail is compared with.

    Raises:
        ProofRefused, SigningKeyMissing, StoreFailed: see `cut_trail`.
    """
    cut_trail(tenant_id, name, keep=keep, actor=actor, kept=kept)
    return drop_cut_events(tenant_id, tell=tell)


def cut_trail(
    tenant_id: int, name: str, *, keep: timedelta, actor: Actor, kept: Store | None = None
) -> None:
    """
    Decide that what is older goes from a tenant's trail, as the owner of the tables. Deletes nothing.

    The trail is verified first, and what is signed about the last link that goes is kept with the
    cut. Every live row whose last event goes gets a new one, ``….snapshot``.

    Args:
        kept: where the checkpoints are that the trail is compared with.

    Raises:
        ProofRefused: the trail does not verify: what is wrong must not be cut away.
        SigningKeyMissing, StoreFailed: there is no key, or the store does not answer.
    """
    present_key()  # asked before anything is written
    log = read_checkpoints(tenant_id, kept)
    with as_owner():
        seal(tenant_id, using=database())
        with unit_of_work(tenant_id=tenant_id, actor=actor):
            findings = verify(tenant_id, using=database(), checkpoints=log)
            cut = last_cut(tenant_id, database())
            upto = retention.find_prefix(tenant_id, keep=keep, using=database())
        if findings:
            raise ProofRefused(f"Nothing was cut, since verify_audit finds: {findings[0].sentence}")
        if upto > (cut.sequence if cut else 0):
            while retention.write_snapshots(tenant_id, upto, actor=actor, using=database()):
                pass  # a row may change between the look and its snapshot
            with unit_of_work(tenant_id=tenant_id, actor=actor):
                signed = sign_cut(tenant_id, name, upto, using=database())
            retention.cut(signed, actor=actor, using=database())


def drop_cut_events(tenant_id: int, *, tell: Callable[[int], object] = lambda total: None) -> int:
    """Delete what was cut from a tenant's trail, as the owner of the tables; return how many events."""
    with as_owner():
        dropped = retention.drop_cut(tenant_id, using=database(), tell=tell)
        seal(tenant_id, using=database())
    return dropped


def drop_cut_parts() -> int:
    """
    Drop the parts of the table of events of which everything is cut; return how many events.

    Once every trail is cut, and before what is left is deleted row by row. Does nothing where the
    table has no parts.
    """
    with as_owner():
        if not partitions.has_parts(using=database()):
            return 0
        return partitions.drop_covered(using=database())


def as_owner() -> AbstractContextManager[Any]:
    """Use the login that owns the tables inside a block, where there is one of its own."""
    connection: Any = store()
    found: AbstractContextManager[Any] = (
        connection.as_owner() if hasattr(connection, "as_owner") else nullcontext()
    )
    return found
