"""Gated writes through the Python interface, over the floor, and against what others do for less."""

from collections.abc import Iterator
from functools import partial

from django.db import connections
from langgraph.store.base import PutOp
from langgraph.store.postgres import PostgresStore
from psycopg.rows import dict_row

from benchmarks import floors
from benchmarks.database import connect
from benchmarks.peers.models import Historied, Kept, Logged, Versioned
from benchmarks.population import VALUES, Population
from benchmarks.runs import FLOOR, Pair, Reading, Run, compare
from benchmarks.workers import Call, Candidate, Worker, working
from preferences.batches import read_operations, run_batch
from preferences.selectors import get_preference
from preferences.services import set_preference

OURS = "consentful"
LANGGRAPH = "langgraph"
HISTORY = "simple-history"
LOG = "auditlog"
VERSION = "concurrency and auditlog"

#: Records in one batch.
BATCH = 100
#: How much longer its slices are than those of one write.
LONGER = 2.5


def measure(run: Run) -> Iterator[Reading]:
    """Take every measure of this module."""
    population = run.population
    connections.close_all()  # a connection must not cross a fork
    ours = Candidate(prepare=partial(prepare_write, population))
    floor = Candidate(prepare=partial(floors.prepare_write, population))
    everyone = {
        FLOOR: floor,
        OURS: ours,
        LANGGRAPH: Candidate(prepare=partial(prepare_put, population)),
        HISTORY: Candidate(prepare=partial(prepare_get_and_save, Historied, population)),
        LOG: Candidate(prepare=partial(prepare_get_and_save, Logged, population)),
        VERSION: Candidate(prepare=partial(prepare_get_and_save, Versioned, population)),
    }
    with working(run.twinned(everyone), count=1) as some:
        yield from compare(
            run,
            some,
            {
                "write-1": Pair(OURS, FLOOR),
                "write-langgraph": Pair(OURS, LANGGRAPH),
                "write-history": Pair(OURS, HISTORY),
                "write-auditlog": Pair(OURS, LOG),
                "write-concurrency": Pair(OURS, VERSION),
            },
        )
    with working(run.twinned({FLOOR: floor, OURS: ours}), count=4) as some:
        yield from compare(run, some, {"write-4": Pair(OURS, FLOOR)})
    batches = {
        FLOOR: Candidate(prepare=partial(prepare_batch_put, population), records=BATCH),
        OURS: Candidate(prepare=partial(prepare_batch, population), records=BATCH),
    }
    with working(run.twinned(batches), count=1) as some:
        yield from compare(run, some, {"batch": Pair(OURS, FLOOR)}, longer=LONGER)


def prepare_write(population: Population, worker: Worker) -> Call:
    """Return a person's write over the version that they saw last."""
    asked = [
        (population.caller(one), population.scope(one), one.key)
        for one in population.sample(worker, most=500)
    ]
    revisions = [
        get_preference(caller=caller, scope=scope, key=key).revision for caller, scope, key in asked
    ]

    def write() -> object:
        number = worker.random.randrange(len(asked))
        caller, scope, key = asked[number]
        outcome = set_preference(
            caller=caller,
            scope=scope,
            key=key,
            value=worker.random.choice(VALUES),
            revision=revisions[number],
        )
        revisions[number] = outcome.record.revision
        return outcome

    return write


def prepare_put(population: Population, worker: Worker) -> Call:
    """Return a put of LangGraph's store: no gate, no revision, no event."""
    session = PostgresStore(connect(prepare_threshold=0, row_factory=dict_row))
    asked = [
        ((str(one.tenant_id), one.subject), one.key) for one in population.sample(worker, most=500)
    ]

    def put() -> object:
        namespace, key = worker.random.choice(asked)
        return session.put(namespace, key, worker.random.choice(VALUES))

    return put


def prepare_get_and_save(model: type[Kept], population: Population, worker: Worker) -> Call:
    """Return what Django's own forms do: load an object, change it, save it."""
    asked = population.sample(worker, most=500)

    def get_and_save() -> object:
        address = worker.random.choice(asked)
        kept = model.objects.get(tenant_id=address.tenant_id, scope=address.scope, key=address.key)
        kept.value = worker.random.choice(VALUES)
        kept.save()
        return kept

    return get_and_save


def prepare_batch(population: Population, worker: Worker) -> Call:
    """Return a person's atomic batch of writes, whatever stands there."""
    (address,) = population.sample(worker, most=1)
    caller = population.caller(address)

    def write() -> object:
        operations = [
            {
                "op": "put",
                "scope": "me",
                "key": key,
                "value": worker.random.choice(VALUES),
                "mode": "upsert",
            }
            for key in _batch_keys()
        ]
        read = read_operations({"operations": operations}, caller)
        refusal, _ = run_batch(caller=caller, operations=read, is_atomic=True)
        if refusal is not None:
            raise refusal
        return read

    return write


def prepare_batch_put(population: Population, worker: Worker) -> Call:
    """Return a batch of puts of LangGraph's store, which makes one statement of them."""
    session = PostgresStore(connect(prepare_threshold=0, row_factory=dict_row))
    (address,) = population.sample(worker, most=1)
    namespace = (str(address.tenant_id), address.subject)

    def put() -> object:
        return session.batch(
            [PutOp(namespace, key, worker.random.choice(VALUES)) for key in _batch_keys()]
        )

    return put


def _batch_keys() -> list[str]:
    return [f"batched_{number}" for number in range(BATCH)]
