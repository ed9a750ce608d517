"""
What housekeeping has not done yet, over all tenants: measured for Prometheus when it asks.

Here belongs the measuring alone. It reads ids and times, tenant by tenant behind row-level
security like everyone, and stops counting early: how far behind something is says more than how
much of it there is.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, InterfaceError, transaction

from tenants.extras import prometheus
from tenants.units import current_unit, store

#: Rows of one tenant after which counting stops.
MOST = 1000

#: One block for all tenants: a round trip for each of thousands would take longer than a scrape.
#: Every question is answered by the first entries of an index. The newest link of a chain names
#: the last event in the order of sealing, so what was captured after it is what waits; an event
#: that committed late, with a smaller id, is missed here, and never by the sealer.
MEASURE = f"""
DO $$
DECLARE
    moment timestamptz := consentful_now();
    tenant bigint;
    sealed bigint;
    rows bigint;
    earliest timestamptz;
    expired bigint := 0;
    oldest_deadline timestamptz;
    unsealed bigint := 0;
    oldest_event timestamptz;
BEGIN
    FOR tenant IN SELECT 0 UNION ALL SELECT id FROM consentful_tenant LOOP
        PERFORM set_config('consentful.tenant', tenant::text, true);
        SELECT count(*), min(due.expires_at) INTO rows, earliest FROM (
            SELECT p.expires_at FROM consentful_preference p
            WHERE p.tenant_id = tenant AND p.expires_at <= moment
              AND NOT consentful_is_held(p.held_at, p.held_until, moment)
            ORDER BY p.expires_at LIMIT {MOST}) due;
        expired := expired + rows;
        oldest_deadline := least(oldest_deadline, earliest);
        SELECT s.event_id INTO sealed FROM consentful_audit_seal s
        WHERE s.tenant_id = tenant ORDER BY s.sequence DESC LIMIT 1;
        SELECT count(*), min(late.at) INTO rows, earliest FROM (
            SELECT e.at FROM consentful_audit_event e
            WHERE e.tenant_id = tenant AND e.id > coalesce(sealed, 0)
            ORDER BY e.id LIMIT {MOST}) late;
        unsealed := unsealed + rows;
        oldest_event := least(oldest_event, earliest);
    END LOOP;
    PERFORM set_config('consentful.tenant', '', true);
    PERFORM set_config('consentful.backlog', json_build_array(
        expired, extract(epoch FROM moment - oldest_deadline),
        unsealed, extract(epoch FROM moment - oldest_event))::text, true);
END
$$
"""  # noqa: S608  constant text


@dataclass(frozen=True, slots=True)
class Backlog:
    """
    How far behind housekeeping is.

    Attributes:
        expired: rows past their deadline that are still there; at most `MOST` of one tenant count.
        expired_seconds: how long the oldest of them has been past it; 0 where there is none.
        unsealed, unsealed_seconds: the same of events without a seal.
    """

    expired: int
    expired_seconds: float
    unsealed: int
    unsealed_seconds: float


def measure_backlog() -> Backlog:
    """
    Ask the database, outside of any unit of work.

    Raises:
        DatabaseError, InterfaceError: it does not answer, or not within five seconds.
    """
    connection = store()
    if current_unit() is not None:
        raise RuntimeError("A unit of work is open: its tenant would be forgotten.")
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '5s'")
        cursor.execute(MEASURE)
        cursor.execute("SELECT current_setting('consentful.backlog')")
        (text,) = cursor.fetchone()
    expired, expired_seconds, unsealed, unsealed_seconds = json.loads(text)
    return Backlog(expired, expired_seconds or 0.0, unsealed, unsealed_seconds or 0.0)


class BacklogCollector:
    """Measures on every scrape; for a registry of `prometheus_client`."""

    def describe(self) -> Iterable[Any]:
        """Name the metrics without asking the database: registering asks for that."""
        return list(_families(None))

    def collect(self) -> Iterable[Any]:
        """Yield what was measured, or only that the database does not answer."""
        try:
            backlog = measure_backlog()
        except (DatabaseError, InterfaceError):
            return [_gauge("consentful_store_up", STORE_UP, 0)]
        return list(_families(backlog))


STORE_UP = "Whether the database answered when this was asked for."


def _families(backlog: Backlog | None) -> Iterable[Any]:
    found = backlog or Backlog(0, 0, 0, 0)
    yield _gauge("consentful_store_up", STORE_UP, 1)
    yield _gauge(
        "consentful_expired_waiting",
        f"Records past their deadline that are not purged yet; up to {MOST} of each tenant.",
        found.expired,
    )
    yield _gauge(
        "consentful_purge_lag_seconds",
        "Seconds since the earliest deadline of a record that is not purged yet.",
        found.expired_seconds,
    )
    yield _gauge(
        "consentful_unsealed_events",
        f"Events that no seal covers yet; up to {MOST} of each tenant.",
        found.unsealed,
    )
    yield _gauge(
        "consentful_seal_lag_seconds",
        "Seconds since the earliest event that no seal covers yet.",
        found.unsealed_seconds,
    )


def _gauge(name: str, text: str, value: float) -> Any:
    return prometheus().core.GaugeMetricFamily(name, text, value=value)
