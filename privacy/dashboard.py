"""
What the dashboard of operators shows of one tenant: a few questions, each bounded by an index.

Nothing counts a whole table: each question takes the newest, or the next, of a bounded number of
rows, and the chart says where that number cut it short. Names no person.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from privacy.charts import Chart, Series
from tenants.units import store

#: Rows that one question looks at.
MOST = 10_000
#: Rows after which it is enough to know that there are more.
MANY = 1000
#: How far the charts reach, back and ahead.
WEEKS, DAYS = 12, 14

WAITING = """
WITH moment AS MATERIALIZED (SELECT consentful_now() AS now)
SELECT 'now', 0, now FROM moment
UNION ALL
SELECT 'unsealed', count(*), min(at) FROM (
    SELECT e.at FROM consentful_audit_event e
    WHERE e.tenant_id = %(tenant)s AND e.id > coalesce((
        SELECT s.event_id FROM consentful_audit_seal s WHERE s.tenant_id = %(tenant)s
        ORDER BY s.sequence DESC LIMIT 1), 0)
    ORDER BY e.id LIMIT %(many)s) unsealed
UNION ALL
SELECT 'expired', count(*), min(expires_at) FROM (
    SELECT p.expires_at FROM consentful_preference p, moment
    WHERE p.tenant_id = %(tenant)s AND p.expires_at <= moment.now
      AND NOT consentful_is_held(p.held_at, p.held_until, moment.now)
    ORDER BY p.expires_at LIMIT %(many)s) expired
UNION ALL
SELECT 'withdrawn', count(*), min(at) FROM (
    SELECT w.at FROM consentful_withdrawal w
    WHERE w.tenant_id = %(tenant)s AND w.purged_at IS NULL ORDER BY w.id LIMIT %(many)s) withdrawn
UNION ALL
SELECT 'erasures', count(*), min(requested_at) FROM (
    SELECT e.requested_at FROM consentful_erasure e
    WHERE e.tenant_id = %(tenant)s AND e.finished_at IS NULL ORDER BY e.id LIMIT %(many)s) erasures
UNION ALL
SELECT 'failing', count(*), min(requested_at) FROM (
    SELECT e.requested_at FROM consentful_erasure e
    JOIN consentful_erasure_holder h ON h.tenant_id = e.tenant_id AND h.erasure_id = e.id
    WHERE e.tenant_id = %(tenant)s AND e.finished_at IS NULL AND h.status = 'failed'
    ORDER BY e.id LIMIT %(many)s) failing
"""

#: What waits, in the order in which it is shown.
KINDS = {
    "unsealed": "events without a seal",
    "expired": "records past their deadline",
    "withdrawn": "withdrawals to be purged",
    "erasures": "unfinished erasures",
    "failing": "holders that failed",
}

CONSENTS = """
SELECT p.slug, newest.decision, newest.week, count(*), min(newest.at)
FROM (SELECT c.purpose_id, c.decision, c.at,
             greatest(date_trunc('week', c.at AT TIME ZONE 'UTC')::date, %(before)s) AS week
      FROM consentful_consent_entry c
      WHERE c.tenant_id = %(tenant)s ORDER BY c.id DESC LIMIT %(most)s) newest
JOIN consentful_purpose p ON p.tenant_id = %(tenant)s AND p.id = newest.purpose_id
GROUP BY 1, 2, 3
"""

REFUSALS = """
SELECT greatest((at AT TIME ZONE 'UTC')::date, %(before)s) AS day, count(*), min(at)
FROM (SELECT e.at FROM consentful_audit_event e
      WHERE e.tenant_id = %(tenant)s AND e.outcome = 'denied'
      ORDER BY e.id DESC LIMIT %(most)s) newest
GROUP BY 1
"""

EXPIRIES = """
SELECT 0, date_trunc('week', expires_at AT TIME ZONE 'UTC')::date, count(*) FROM (
    SELECT p.expires_at FROM consentful_preference p
    WHERE p.tenant_id = %(tenant)s AND p.expires_at > %(now)s AND p.expires_at < %(until)s
    ORDER BY p.expires_at LIMIT %(most)s) records
GROUP BY 2
UNION ALL
SELECT 1, date_trunc('week', expires_at AT TIME ZONE 'UTC')::date, count(*) FROM (
    SELECT s.expires_at FROM consentful_consent_state s
    WHERE s.tenant_id = %(tenant)s AND s.expires_at > %(now)s AND s.expires_at < %(until)s
      AND s.decision = 'given'
    ORDER BY s.expires_at LIMIT %(most)s) consents
GROUP BY 2
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What is yet to be done, of one kind: how much, and since when the oldest waits."""

    kind: str
    count: int
    age: timedelta | None

    @property
    def is_many(self) -> bool:
        """Whether there may be more than was counted."""
        return self.count >= MANY


def ask_waiting(tenant_id: int) -> tuple[datetime, Sequence[Waiting]]:
    """Return the moment by the database's clock, and what waits. Inside a unit of work."""
    found = {
        kind: (count, since) for kind, count, since in _fetch(WAITING, tenant=tenant_id, many=MANY)
    }
    now: datetime = found["now"][1]
    return now, [
        Waiting(kind=kind, count=found[kind][0], age=_age(now, found[kind][1])) for kind in KINDS
    ]


def chart_waiting(waiting: Sequence[Waiting]) -> Chart:
    """Return what is unsealed, overdue or failing."""
    return Chart(
        key="waiting",
        title="What waits or fails",
        text="Things that housekeeping, the sealer or a holder of personal data has yet to do.",
        head="What",
        labels=[KINDS[one.kind] for one in waiting],
        series=[Series(name="now", values=[one.count for one in waiting])],
        note=f"Counting stops at {MANY} of a kind." if any(one.is_many for one in waiting) else "",
    )


def chart_consents(tenant_id: int, now: datetime) -> Sequence[Chart]:
    """Return one chart for each purpose that anybody decided about. Inside a unit of work."""
    weeks = _weeks(now, -WEEKS + 1, 1)
    rows = _fetch(CONSENTS, tenant=tenant_id, most=MOST, before=weeks[0] - timedelta(days=7))
    shown, note = _cut(weeks, rows, what="decisions", days=7)
    words = ("given", "refused", "withdrawn")
    charts: list[Chart] = []
    for slug in sorted({row[0] for row in rows if row[2] in shown and row[1] in words}):
        counts = {(row[1], row[2]): row[3] for row in rows if row[0] == slug}
        charts.append(
            Chart(
                key=f"consents-{len(charts)}",
                title=f"Consents to {slug}",
                text=f"How often consent to {slug} was given, refused or withdrawn, week by week.",
                head="Week from",
                labels=[f"{week:%Y-%m-%d}" for week in shown],
                series=[
                    Series(name=word, values=[counts.get((word, week), 0) for week in shown])
                    for word in words
                ],
                note=note,
            )
        )
    return charts


def chart_refusals(tenant_id: int, now: datetime) -> Chart:
    """Return how many attempts were refused on each day. Inside a unit of work."""
    today = now.astimezone(UTC).date()
    days = [today - timedelta(days=back) for back in reversed(range(DAYS))]
    rows = _fetch(REFUSALS, tenant=tenant_id, most=MOST, before=days[0] - timedelta(days=1))
    shown, note = _cut(days, [(None, None, *row) for row in rows], what="refusals", days=1)
    counts = {day: count for day, count, _ in rows}
    return Chart(
        key="refusals",
        title="Refused attempts",
        text="Requests that the gate, a role or a hold refused, day by day.",
        head="Day",
        labels=[f"{day:%Y-%m-%d}" for day in shown],
        series=[Series(name="refused", values=[counts.get(day, 0) for day in shown])],
        note=note,
    )


def chart_expiries(tenant_id: int, now: datetime) -> Chart:
    """Return what ends in the weeks ahead. Inside a unit of work."""
    weeks = _weeks(now, 0, WEEKS)
    until = weeks[-1] + timedelta(days=7)
    rows = _fetch(EXPIRIES, tenant=tenant_id, now=now, until=until, most=MOST)
    shown, note = list(weeks), ""
    for number in (0, 1):
        mine = [row for row in rows if row[0] == number]
        if sum(row[2] for row in mine) >= MOST:
            # The last week that was reached was not looked at to its end.
            shown = [week for week in shown if week < max(row[1] for row in mine)] or shown[:1]
            note = (
                f"The next {MOST} of a kind are looked at: what ends after"
                f" {shown[-1] + timedelta(days=6):%Y-%m-%d} is left out."
            )
    counts = {(row[0], row[1]): row[2] for row in rows}
    return Chart(
        key="expiries",
        title="Expiries ahead",
        text="Records that expire and consents that end by themselves, week by week.",
        head="Week from",
        labels=[f"{week:%Y-%m-%d}" for week in shown],
        series=[
            Series(name=name, values=[counts.get((number, week), 0) for week in shown])
            for number, name in enumerate(("records", "consents"))
        ],
        note=note,
    )


def _weeks(now: datetime, first: int, last: int) -> Sequence[date]:
    """Return the Mondays of the weeks from the first to before the last, counted from this one."""
    today = now.astimezone(UTC).date()
    monday = today - timedelta(days=today.weekday())
    return [monday + timedelta(days=7 * place) for place in range(first, last)]


def _cut(
    periods: Sequence[date], rows: Sequence[Sequence[Any]], *, what: str, days: int
) -> tuple[Sequence[date], str]:
    """Return the periods that were looked at as a whole, and what to say of the others."""
    if sum(row[3] for row in rows) < MOST:
        return periods, ""
    earliest: datetime = min(row[4] for row in rows)
    start = earliest.astimezone(UTC).date()
    whole = [one for one in periods if one > start]
    if len(whole) == len(periods):
        return periods, ""
    # Of the present one, what was reached is shown at least.
    shown = whole or periods[-1:]
    begins = f"{shown[0]:%Y-%m-%d}" if whole else f"{earliest.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return shown, f"The newest {MOST} {what} are looked at: what was before {begins} is left out."


def _age(now: datetime, since: datetime | None) -> timedelta | None:
    return None if since is None else max(now - since, timedelta(0))


def _fetch(statement: str, **values: Any) -> list[tuple[Any, ...]]:
    with store().cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
