"""Reading the trail: a tenant's events, newest first, and whose trails there are."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError
from django.db.models import F, QuerySet

from audit.actors import SYSTEM
from audit.chains import last_cut
from audit.models import Event
from audit.sealing import seal
from tenants.exceptions import ValidationError
from tenants.models import Tenant
from tenants.observation import note_sealed
from tenants.services import get_tenant
from tenants.times import format_time
from tenants.units import database, store, unit_of_work

#: What commands call the trail of what no tenant owns.
INSTALLATION = "the installation"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailFilter:
    """
    Which events are asked for; None leaves a member open.

    Attributes:
        scope: canonical text.
        actor: readable name of the performer.
        since: the first moment that counts.
        until: the first moment that no longer does.
    """

    scope: str | None = None
    key: str | None = None
    action: str | None = None
    actor: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def list_events(
    *, tenant_id: int, wanted: TrailFilter, before: int = 0, most: int
) -> QuerySet[Event]:
    """
    Return up to `most` events of one tenant, newest first. Inside a unit of work.

    Args:
        before: id of the event after which the page starts; 0 for the first page.
    """
    conditions = {
        "scope": wanted.scope,
        "key": wanted.key,
        "action": wanted.action,
        "actor": wanted.actor,
        "at__gte": wanted.since,
        "at__lt": wanted.until,
        "pk__lt": before or None,
    }
    given = {name: value for name, value in conditions.items() if value is not None}
    return (
        Event.objects.filter(tenant_id=tenant_id, **given)
        .annotate(sequence=F("seal__sequence"))
        .order_by("-pk")[:most]
    )


def list_changes(*, tenant_id: int, after: int | None, most: int) -> list[Any]:
    """
    Return up to `most` sealed events in the order of the chain. Inside a unit of work.

    Sealed places are never given twice nor filled in later, so whoever asks again with the last
    sequence seen misses nothing and sees nothing twice.

    Args:
        after: sequence of the last event that is known; None for the oldest that is kept.

    Raises:
        ValidationError: retention took events after it, which the follower never saw.
    """
    cut = last_cut(tenant_id, database())
    start = cut.sequence if cut else 0
    if after is not None and after < start:
        raise _no_longer_kept(start)
    changes: list[Any] = list(
        Event.objects.filter(tenant_id=tenant_id, seal__tenant_id=tenant_id)
        .filter(seal__sequence__gt=start if after is None else after)
        .annotate(sequence=F("seal__sequence"))
        .order_by("seal__sequence")[:most]
    )
    if after is not None and changes and changes[0].sequence != after + 1:
        # Taken between the two statements.
        raise _no_longer_kept(changes[0].sequence - 1)
    return changes


def _no_longer_kept(last: int) -> ValidationError:
    return ValidationError(
        f"Events up to {last} are no longer kept. Read everything anew, then follow from there.",
        pointer="/query/after",
    )


def event_as_json(event: Any) -> dict[str, Any]:
    """Return an event of `list_events` as the contract shows it."""
    return {
        "id": event.pk,
        "at": format_time(event.at),
        "action": event.action,
        "actor": event.actor,
        "on_behalf_of": event.on_behalf_of,
        "subject": event.subject,
        "target": {"scope": event.scope, "key": event.key},
        "purpose": event.purpose,
        "revision_before": event.revision_before,
        "revision_after": event.revision_after,
        "changed": event.changed,
        "outcome": event.outcome,
        "reason": event.reason,
        "request_id": event.request_id,
        "sequence": event.sequence,
    }


def list_trails() -> dict[int, str]:
    """
    Return the id and a readable name of every trail: the installation's, and each tenant's.

    A tenant without a row is among them where it has events: whoever deletes a tenant behind the
    trail's back must not take its proof along.
    """
    trails = {0: INSTALLATION}
    trails |= dict(Tenant.objects.order_by("pk").values_list("pk", "slug"))
    with store().cursor() as cursor:
        cursor.execute(
            "SELECT id FROM generate_series(1, ("
            " SELECT last_value FROM pg_sequences WHERE quote_ident(schemaname) || '.' || quote_ident(sequencename)"
            " = pg_get_serial_sequence('consentful_tenant', 'id'))) AS id"
            " EXCEPT SELECT id FROM consentful_tenant ORDER BY id"
        )
        absent = [row[0] for row in cursor.fetchall()]
    for tenant_id in absent:
        with unit_of_work(tenant_id=tenant_id, actor=SYSTEM):
            if Event.objects.using(database()).filter(tenant_id=tenant_id).exists():
                trails[tenant_id] = nameless(tenant_id)
    return trails


def nameless(tenant_id: int) -> str:
    """Return what commands call the trail of a tenant that is not there any more."""
    return f"tenant {tenant_id}, which has no row"


def find_trails(slug: str | None) -> dict[int, str]:
    """
    Return one tenant's trail, or all of `list_trails` where none is named.

    Raises:
        NotFound: there is no such tenant.
    """
    if slug is None:
        return list_trails()
    found = get_tenant(slug=slug)
    return {found.pk: found.slug}


def seal_trails() -> tuple[int, list[str]]:
    """
    Seal what can be sealed of every trail; return how many events, and whose chain cannot go on.

    A chain that was tampered with stops its own sealing, never that of the tenants after it.
    """
    sealed, stuck = 0, []
    for tenant_id, name in list_trails().items():
        try:
            sealed += seal(tenant_id, using=database())
        except IntegrityError:
            stuck.append(name)
    note_sealed(sealed=sealed, stuck=len(stuck))
    return sealed, stuck
