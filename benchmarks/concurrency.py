"""What happens side by side: a withdrawal among writers, a purge and the sealer beside a writer."""

import random
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from django.db import connections
from psycopg import Connection

from audit.actors import SYSTEM
from benchmarks.companions import Company, beside
from benchmarks.copies import add_shared, at_rest
from benchmarks.database import connect
from benchmarks.harness import Sampler, Series, Slice, take_turns
from benchmarks.population import PURPOSE, VALUES, Address, Population
from benchmarks.runs import FLOOR, TWIN, Pair, Reading, Run, compare
from benchmarks.workers import Candidate, working
from benchmarks.writes import prepare_write
from consent.models import Decision
from consent.services import decide
from preferences.services import purge_expired, set_preference
from tenants.exceptions import ConsentRequired
from tenants.units import store

WRITERS = 16
#: Seconds of writing before each withdrawal, and of watching after it.
LEAD, WATCH = 0.01, 0.005

#: Expired records of a whole run and of a quick one, and events that wait to be sealed.
EXPIRED = {False: 100_000, True: 10_000}
UNSEALED = {False: 300_000, True: 50_000}
#: Rows that a purge deletes in one transaction, and events that one call of the sealer seals.
PURGED_AT_ONCE = 1000
SEALED_AT_ONCE = 1000
#: Seconds of one slice where a p99 of few operations is asked for, and how many rounds there are at most.
LONG = 1.0
MOST_ROUNDS = 40

BACKLOG = """
    INSERT INTO consentful_audit_event (
        tenant_id, at, transaction, cluster, action, outcome, changed, target_digest, actor_digest)
    SELECT tenant, consentful_now(), pg_current_xact_id()::text::bigint, consentful_cluster(),
           'data.disclosed', 'done', '{}', repeat('0', 64), repeat('0', 64)
    FROM generate_series(1, %s) n CROSS JOIN unnest(%s::bigint[]) tenant
"""
#: Whatever was written about the person between a withdrawal and the consent after it.
LATE = """
    SELECT count(*) FROM (
        SELECT decision, at, lead(at) OVER (ORDER BY sequence) AS until FROM consentful_consent_entry e
        WHERE tenant_id = %(tenant)s AND subject_id = (
            SELECT id FROM consentful_subject WHERE tenant_id = %(tenant)s AND external_id = %(subject)s)
    ) AS said JOIN consentful_audit_event AS event
      ON event.tenant_id = %(tenant)s AND event.scope = %(scope)s AND event.record = 'preference'
     AND event.at > said.at AND (said.until IS NULL OR event.at < said.until)
    WHERE said.decision = 'withdrawn'
"""


class LateWrite(Exception):
    """A write landed after a withdrawal had been answered: no number is worth reporting then."""


def measure(run: Run) -> Iterator[Reading]:
    """Take every measure of this module."""
    connections.close_all()  # a connection must not cross a fork
    yield measure_withdrawal(run)
    yield measure_purge(run)
    yield from measure_sealing(run)


# Withdrawal --------------------------------------------------------------------------------------


def measure_withdrawal(run: Run) -> Reading:
    """
    Time withdrawals of one person whom 16 writers write about, and of the same person left alone.

    Raises:
        LateWrite: one of the writes was seen after the answer.
    """
    population = run.population
    address = next(population.draw(random.Random(1)))  # noqa: S311  no secret
    writers = [partial(prepare_hammering, population, address, n) for n in range(WRITERS)]
    with beside(writers) as company, connect(as_owner=True) as owner:
        withdrawing = Withdrawing(population, address, owner)

        def among_writers(seconds: float) -> Slice:
            with company.at_work():
                return withdrawing.sample(seconds)

        series = take_turns(
            {FLOOR: withdrawing.sample, "beside": among_writers},
            rounds=run.effort.rounds,
            seconds=LONG,
        )
        facts = {"tenant": address.tenant_id, "subject": address.subject, "scope": address.scope}
        (late,) = owner.execute(LATE, facts).fetchone() or (0,)
        if late or withdrawing.late:
            raise LateWrite(f"{late} by the trail, {withdrawing.late} by what was seen")
        writes = company.count
    connections.close_all()
    alone, among = series[FLOOR], series["beside"]
    count = sum(len(one.latencies) for one in among.slices)
    return Reading(
        measure="withdrawal",
        value=among.p99 * 1e3,
        median=among.median,
        p99=among.p99,
        per_second=among.per_second,
        against_median=alone.median,
        note=f"{count:,} withdrawals beside {writes:,} writes, none of which landed late;"
        f" left alone, p99 {alone.p99 * 1e3:.1f} ms.",
    )


def prepare_hammering(population: Population, address: Address, number: int) -> Callable[[], int]:
    """Return a writer that writes about one person without a pause, consent or not."""
    caller, scope = population.caller(address), population.scope(address)

    def write() -> int:
        try:
            set_preference(
                caller=caller, scope=scope, key=f"hammered_{number}",
                value=VALUES[number % len(VALUES)], upsert=True,
            )  # fmt: skip
        except ConsentRequired:
            return 0
        return 1

    return write


class Withdrawing:
    """Consents and withdraws in turn, and looks after each withdrawal whether anything still lands."""

    def __init__(
        self, population: Population, address: Address, owner: Connection[tuple[object, ...]]
    ) -> None:
        self.caller = population.caller(address)
        self.address = address
        self.owner = owner
        self.late = 0

    def sample(self, seconds: float) -> Slice:
        latencies = array("d")
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            self.decide(Decision.GIVEN)
            time.sleep(LEAD)
            began = time.perf_counter()
            self.decide(Decision.WITHDRAWN)
            latencies.append(time.perf_counter() - began)
            before = self.stored()
            time.sleep(WATCH)
            self.late += self.stored() != before
        self.decide(Decision.GIVEN)
        return Slice(latencies=latencies, per_second=len(latencies) / sum(latencies))

    def decide(self, decision: Decision) -> None:
        decide(
            caller=self.caller, subject=self.address.subject, purpose=PURPOSE, decision=decision,
            version=1,
        )  # fmt: skip

    def stored(self) -> object:
        """Return every record's revision, as anybody sees them now."""
        return self.owner.execute(
            "SELECT array_agg(revision ORDER BY id) FROM consentful_preference"
            " WHERE tenant_id = %s AND scope = %s",
            [self.address.tenant_id, self.address.scope],
        ).fetchone()


# Purge -------------------------------------------------------------------------------------------


def measure_purge(run: Run) -> Reading:
    """Time a tenant's writer while that tenant's expired records are deleted, and alone."""
    population = run.population
    tenant = next(iter(population.tenants))
    rows = EXPIRED[run.effort.is_quick]
    with connect(as_owner=True) as owner, at_rest(owner, keeping_indexes=True):
        add_shared(owner, tenant=tenant, scope="project::expired", rows=rows, expires="2026-01-01")
    connections.close_all()
    own = Population({tenant: population.tenants[tenant]}, population.people_per_tenant)
    candidate = Candidate(prepare=partial(prepare_write, own))
    with (
        beside([partial(prepare_purge, tenant)]) as company,
        working({FLOOR: candidate}, count=1) as some,
    ):
        alone, beside_it = until_done(some[FLOOR], company, rows=rows)
    purged, seconds = company.count, len(beside_it.slices) * LONG
    return Reading(
        measure="purge",
        value=beside_it.p99 / alone.p99,
        median=beside_it.median,
        p99=beside_it.p99,
        per_second=beside_it.per_second,
        against_median=alone.median,
        note=f"{purged:,} of {rows:,} expired records purged beside the writer, about"
        f" {purged / seconds:,.0f} a second; alone, its p99 is {alone.p99 * 1e3:.1f} ms.",
    )


def prepare_purge(tenant: int) -> Callable[[], int]:
    """Return housekeeping's own purge, batch after batch."""
    return partial(purge_expired, tenant_id=tenant, actor=SYSTEM, most=PURGED_AT_ONCE)


def until_done(writer: Sampler, company: Company, *, rows: int) -> tuple[Series, Series]:
    """Return the writer's slices alone and in company, until the rows are gone."""
    slices: dict[bool, list[Slice]] = {False: [], True: []}
    order = random.Random(1)  # noqa: S311  no secret: a run can be repeated
    while company.count < rows and len(slices[True]) < MOST_ROUNDS:
        turn = [False, True]
        order.shuffle(turn)
        for in_company in turn:
            if in_company:
                with company.at_work():
                    slices[True].append(writer(LONG))
            else:
                slices[False].append(writer(LONG))
    return Series(slices[False]), Series(slices[True])


# Sealer ------------------------------------------------------------------------------------------


def measure_sealing(run: Run) -> Iterator[Reading]:
    """Time a writer while the sealer works off a backlog, and without it."""
    population = run.population
    tenants = list(population.tenants)
    events = UNSEALED[run.effort.is_quick]
    with connect(as_owner=True) as owner:
        owner.execute(BACKLOG, [events // len(tenants), tenants])
        owner.execute("VACUUM ANALYZE consentful_audit_event")
    connections.close_all()
    candidate = Candidate(prepare=partial(prepare_write, population))
    with (
        beside([partial(prepare_sealing, tenants)]) as company,
        working({FLOOR: candidate}, count=1) as some,
    ):
        write = some[FLOOR]

        def beside_sealer(seconds: float) -> Slice:
            with company.at_work():
                return write(seconds)

        samplers = {FLOOR: write, TWIN: write, "beside": beside_sealer}
        began = time.monotonic()
        (reading,) = compare(run, samplers, {"sealing": Pair("beside", FLOOR)})
        if not company.count:
            raise RuntimeError("The sealer sealed nothing.")
        note = f"{company.count:,} events sealed within {time.monotonic() - began:.0f} seconds of turns."
        yield replace(reading, note=note)


def prepare_sealing(tenants: list[int]) -> Callable[[], int]:
    """Return the sealer, which takes the tenants in turn."""
    turns = {"next": 0}

    def seal_some() -> int:
        tenant = tenants[turns["next"] % len(tenants)]
        turns["next"] += 1
        with store().cursor() as cursor:
            cursor.execute("SELECT consentful_seal(%s, %s)", [tenant, SEALED_AT_ONCE])
            return int(cursor.fetchone()[0])

    return seal_some
