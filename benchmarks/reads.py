"""Gated reads through the Python interface, over the floor and against a store without consent."""

from collections.abc import Iterator
from functools import partial

from django.db import connections
from langgraph.store.postgres import PostgresStore
from psycopg.rows import dict_row

from benchmarks import floors
from benchmarks.database import connect
from benchmarks.population import Population
from benchmarks.runs import FLOOR, Pair, Reading, Run, compare
from benchmarks.workers import Call, Candidate, Worker, working
from preferences.selectors import get_preference

OURS, LANGGRAPH = "consentful", "langgraph"


def measure(run: Run) -> Iterator[Reading]:
    """Take every measure of this module."""
    population = run.population
    floor = Candidate(prepare=partial(floors.prepare_read, population))
    ours = Candidate(prepare=partial(prepare_read, population))
    langgraph = Candidate(prepare=partial(prepare_get, population))
    connections.close_all()  # a connection must not cross a fork
    with working(run.twinned({FLOOR: floor, OURS: ours, LANGGRAPH: langgraph}), count=1) as some:
        yield from compare(
            run,
            some,
            {"read-1": Pair(OURS, FLOOR), "read-langgraph": Pair(OURS, LANGGRAPH)},
        )
    with working(run.twinned({FLOOR: floor, OURS: ours}), count=4) as some:
        yield from compare(run, some, {"read-4": Pair(OURS, FLOOR)})


def prepare_read(population: Population, worker: Worker) -> Call:
    """Return a person's read of one of their own records."""
    asked = [
        (population.caller(one), population.scope(one), one.key)
        for one in population.sample(worker, most=5000)
    ]

    def read() -> object:
        caller, scope, key = worker.random.choice(asked)
        return get_preference(caller=caller, scope=scope, key=key)

    return read


def prepare_get(population: Population, worker: Worker) -> Call:
    """Return a get of LangGraph's store, connected as its own constructor does it."""
    found = PostgresStore(connect(prepare_threshold=0, row_factory=dict_row))
    asked = [
        ((str(one.tenant_id), one.subject), one.key) for one in population.sample(worker, most=5000)
    ]

    def get() -> object:
        item = found.get(*worker.random.choice(asked))
        if item is None:
            raise LookupError("LangGraph's store lacks a record.")
        return item

    return get
