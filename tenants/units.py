"""
The unit of work: the only place that opens a transaction for one tenant.

Announces the tenant and the actor to the database, takes the consent fence, and sees to it that
a refusal leaves its event. Knows nothing of what is stored.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from django.db import DatabaseError, connections, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from audit.actors import Actor
from audit.services import record_event
from tenants.exceptions import Forbidden, StaleRevision
from tenants.models import Tenant
from tenants.restores import check_current
from tenants.tracing import unit_span, waiting

#: What `consentful_enter` raises where the wait for a fence ended with the person's erasure.
FORGOTTEN = "CF003"


@dataclass(slots=True)
class Unit:
    """What the transaction on one connection has announced and fenced so far."""

    tenant_id: int
    actor: Actor
    #: External id of each fenced subject, and whether the fence is exclusive.
    fences: dict[str, bool] = field(default_factory=dict)


def database() -> str:
    """Return the alias of the database that holds the tenants."""
    return router.db_for_write(Tenant)


def store() -> BaseDatabaseWrapper:
    """Return the connection of this thread to the database that holds the tenants."""
    return connections[database()]


def now() -> datetime:
    """Return the database's time, by which alone deadlines are judged."""
    with store().cursor() as cursor:
        cursor.execute("SELECT consentful_now()")
        moment: datetime = cursor.fetchone()[0]
    return moment


def current_unit() -> Unit | None:
    """Return the unit that this thread's connection is in, if any."""
    return getattr(store(), "consentful_unit", None)


@contextmanager
def unit_of_work(
    *, tenant_id: int, actor: Actor, subjects: Iterable[str] = (), exclusive: bool = False
) -> Iterator[Unit]:
    """
    Run the block as one transaction of one tenant.

    Re-entrant for the same tenant; the outermost unit commits. Inside a host's own `atomic()` the
    fence is held until the host commits.

    Args:
        tenant_id: the tenant whose rows can be seen and written.
        actor: who performs the change, for the trail.
        subjects: external ids of the persons to fence: shared for writers, who may work side by
            side, or `exclusive` for what they must not pass (a consent decision, an erasure).

    Raises:
        RuntimeError: the unit is nested in one of another tenant, or asks for a stronger or a
            further fence than its outermost unit took. Both can deadlock with a twin.
        StoreUnavailable: the database is an older copy that awaits its erasures.
        StaleRevision: the person was forgotten while this unit waited for the fence.
        ServiceError: whatever the block refuses; a 403 leaves one denied event.
    """
    connection = store()
    outer = current_unit()
    if outer is not None:
        _check_nested(outer, tenant_id, subjects, exclusive)
        with transaction.atomic(using=connection.alias):
            yield outer
        return

    unit = Unit(tenant_id, actor, dict.fromkeys(subjects, exclusive))
    if unit.fences:
        check_current()
    try:
        with (
            unit_span(tenant_id=tenant_id, fenced=len(unit.fences)) as span,
            transaction.atomic(using=connection.alias),
        ):
            with connection.cursor() as cursor, waiting(span), refusing_the_forgotten():
                cursor.execute(
                    "SELECT consentful_enter(%s, %s, %s::text[], %s)",
                    [tenant_id, actor.as_context(), list(unit.fences), exclusive],
                )
            connection.consentful_unit = unit  # type: ignore[attr-defined]
            try:
                yield unit
            finally:
                connection.consentful_unit = None  # type: ignore[attr-defined]
    except Forbidden as refusal:
        record_denied(refusal, tenant_id=tenant_id, actor=actor)
        raise
    finally:
        _forget_announcement(connection)


def take_back() -> None:
    """Let the unit of work that is open end without a trace: the last line of a dry run."""
    transaction.set_rollback(True, using=database())


@contextmanager
def refusing_the_forgotten() -> Iterator[None]:
    """
    Run what takes a fence; refuse where the wait for it ended with the person's erasure.

    Raises:
        StaleRevision: the person was forgotten meanwhile. Nothing may bring it back but a new
            decision of its own.
    """
    try:
        yield
    except DatabaseError as fault:
        if getattr(fault.__cause__, "sqlstate", None) != FORGOTTEN:
            raise
        raise StaleRevision(
            "The person was forgotten meanwhile: nothing was stored.", facts={"current": None}
        ) from fault


def record_denied(refusal: Forbidden, *, tenant_id: int, actor: Actor) -> None:
    """
    Leave the one denied event of a refusal, in a transaction of its own on the same connection.

    The refused transaction has rolled back by then; a second connection would deadlock a small
    pool. Inside a host's `atomic()` the event goes with the host's own rollback.
    """
    if refusal.is_recorded:
        return
    record_event(
        "access.denied",
        tenant_id=tenant_id,
        actor=actor,
        outcome="denied",
        subject=refusal.about.get("subject"),
        scope=refusal.about.get("scope"),
        key=refusal.about.get("key"),
        purpose=refusal.facts.get("purpose"),
        using=database(),
    )
    refusal.is_recorded = True


def _check_nested(outer: Unit, tenant_id: int, subjects: Iterable[str], exclusive: bool) -> None:
    if outer.tenant_id != tenant_id:
        raise RuntimeError("A unit of work of another tenant is open on this connection.")
    for subject in subjects:
        if subject not in outer.fences:
            raise RuntimeError(
                "Name every subject in the outermost unit of work: fences are ordered."
            )
        if exclusive and not outer.fences[subject]:
            raise RuntimeError("Take the exclusive fence in the outermost unit: upgrades deadlock.")


def _forget_announcement(connection: BaseDatabaseWrapper) -> None:
    """Inside a host's transaction the settings would outlive the unit and open the tenant."""
    if connection.in_atomic_block and not connection.needs_rollback:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('consentful.tenant', '', true),"
                " set_config('consentful.context', '', true)"
            )
