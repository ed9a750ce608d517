"""
The floors: what PostgreSQL and its driver need at least for the same promise.

One statement per operation, prepared, over a bare connection; no Django, no policies, no triggers.
Whatever Consentful takes beyond it is the price of being general, kept apart and provable.
"""

from typing import Any

from psycopg import Connection

from benchmarks.database import connect
from benchmarks.population import Address, Population
from benchmarks.workers import Call, Worker

READ = """
    SELECT p.value::text, p.revision, p.updated_at
    FROM floor_preference p JOIN floor_consent c ON c.id = p.consent_id
    WHERE p.tenant_id = %s AND p.scope = %s AND p.key = %s AND c.state = 'given'
"""

#: The lock on the consent keeps a withdrawal waiting until this write has ended.
WRITE = """
    WITH gate AS (
        SELECT id FROM floor_consent
        WHERE tenant_id = %s AND subject = %s AND purpose = %s AND state = 'given' FOR SHARE
    ), change AS (
        UPDATE floor_preference p
        SET value = %s::json, revision = replace(gen_random_uuid()::text, '-', ''),
            updated_at = clock_timestamp()
        FROM gate
        WHERE p.tenant_id = %s AND p.scope = %s AND p.key = %s
          AND p.consent_id = gate.id AND p.revision = %s
        RETURNING p.id, p.revision
    ), event AS (
        INSERT INTO floor_event (
            at, tenant_id, action, preference_id, actor, revision_before, revision_after)
        SELECT clock_timestamp(), %s, 'replaced', id, %s, %s, revision FROM change
    )
    SELECT revision FROM change
"""


def prepare_read(population: Population, worker: Worker) -> Call:
    """Return the floor of a gated read."""
    session = connect()
    addresses = [
        (one.tenant_id, one.scope, one.key) for one in population.sample(worker, most=5000)
    ]

    def read() -> object:
        found = session.execute(READ, worker.random.choice(addresses), prepare=True).fetchone()
        if found is None:
            raise LookupError("The floor lost a record.")
        return found

    return read


#: What this process knows of the floor's records: the twin writes the same ones.
_revisions: dict[Address, str] = {}


def prepare_write(population: Population, worker: Worker) -> Call:
    """Return the floor of a gated write, on addresses that no other worker writes."""
    session = connect()
    addresses = population.sample(worker, most=500)
    _revisions.update({one: _revision(session, one) for one in addresses})
    values = population.texts

    def write() -> object:
        address = worker.random.choice(addresses)
        before = _revisions[address]
        known = (address.tenant_id, address.scope, address.key)
        found = session.execute(
            WRITE,
            [
                address.tenant_id, address.subject, population.purpose,
                worker.random.choice(values), *known, before,
                address.tenant_id, address.subject, before,
            ],
            prepare=True,
        ).fetchone()  # fmt: skip
        if found is None:
            raise LookupError("The floor was not written.")
        _revisions[address] = found[0]
        return found

    return write


def _revision(session: Connection[Any], address: Address) -> str:
    found = session.execute(READ, (address.tenant_id, address.scope, address.key)).fetchone()
    if found is None:
        raise LookupError("The floor lacks a record.")
    return str(found[1])
