"""What many records do to a read, and a deep page to a list."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from django.db import connections

from benchmarks.copies import Copy, filled_copy, switched_to
from benchmarks.database import connect
from benchmarks.harness import Sampler
from benchmarks.population import Population
from benchmarks.runs import FLOOR, TWIN, Pair, Reading, Run, compare
from benchmarks.workers import Call, Candidate, Worker, working
from preferences.selectors import get_preference, list_preferences
from tenants.roles import Role
from tenants.scopes import Scope
from tenants.units import unit_of_work

SMALL = 10_000
#: The measure of each size. A quick run has no time for the larger one.
LARGE = {"growth-1m": 1_000_000, "growth-5m": 5_000_000}
QUICK_LARGE = {"growth-1m": 1_000_000}

#: Records in one scope, and how deep into it a page starts.
LISTED, DEPTH = 500_000, 450_000
PAGE = 100
PROJECT = Scope.parse("project::large")


def measure(run: Run) -> Iterator[Reading]:
    """Take every measure of this module, each size in a database of its own."""
    wanted = QUICK_LARGE if run.effort.is_quick else LARGE
    with contextlib.ExitStack() as stack:
        small = stack.enter_context(filled_copy(SMALL))
        copies = {
            name: stack.enter_context(
                filled_copy(records, shared={str(PROJECT): LISTED} if name == "growth-1m" else {})
            )
            for name, records in wanted.items()
        }
        samplers: dict[str, Sampler] = {}
        for name, copy in {FLOOR: small, TWIN: small, **copies}.items():
            reads = Candidate(prepare=partial(prepare_read, copy.population))
            with switched_to(copy.database):
                samplers |= stack.enter_context(working({name: reads}, count=1))
        yield from compare(run, samplers, {name: Pair(name, FLOOR) for name in copies})
        yield from measure_depth(run, copies["growth-1m"])


def measure_depth(run: Run, copy: Copy) -> Iterator[Reading]:
    """Time a page at the beginning of a large scope, and one deep inside."""
    with switched_to(copy.database):
        deep = find_depth(copy.population)
        connections.close_all()  # a connection must not cross a fork
        pages = {
            FLOOR: Candidate(prepare=partial(prepare_page, copy.population, 0)),
            "deep": Candidate(prepare=partial(prepare_page, copy.population, deep)),
        }
        with working(run.twinned(pages), count=1) as some:
            yield from compare(run, some, {"depth": Pair("deep", FLOOR)})


def prepare_read(population: Population, worker: Worker) -> Call:
    """Return a person's read of one of their own records, spread over all of them."""
    addresses = population.draw(worker.random)
    asked = [
        (population.caller(one), population.scope(one), one.key)
        for one in (next(addresses) for _ in range(5000))
    ]

    def read() -> object:
        caller, scope, key = worker.random.choice(asked)
        return get_preference(caller=caller, scope=scope, key=key)

    return read


def prepare_page(population: Population, after: int, worker: Worker) -> Call:
    """Return an operator's page of the large scope, as the list of the API asks for it."""
    someone = population.caller(next(population.draw(worker.random)))
    caller = replace(
        someone, tenant_id=next(iter(population.tenants)), roles=frozenset({Role.OPERATOR})
    )

    def page() -> object:
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            records, _ = list_preferences(
                caller=caller, scopes=[PROJECT], after=after, most=PAGE + 1
            )
        if len(records) <= PAGE:
            raise LookupError("The page is not full.")
        return records

    return page


def find_depth(population: Population) -> int:
    """Return the id of the record that so many stand before."""
    with connect(as_owner=True) as owner:
        found = owner.execute(
            "SELECT id FROM consentful_preference WHERE tenant_id = %s AND scope = %s"
            " ORDER BY id OFFSET %s LIMIT 1",
            [next(iter(population.tenants)), str(PROJECT), DEPTH - 1],
        ).fetchone()
    if found is None:
        raise LookupError("The large scope is not large.")
    return int(found[0])
