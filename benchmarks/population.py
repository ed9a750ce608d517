"""
Who and what is stored before anything is timed: tenants, people who consented, their records.

The same records stand in Consentful's tables, in the floors' and in the peers'.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from langgraph.store.postgres import PostgresStore
from psycopg import Connection
from psycopg.rows import dict_row

from audit.actors import SYSTEM
from audit.sealing import seal
from benchmarks.database import FLOORS, connect
from benchmarks.harness import Effort
from benchmarks.workers import Worker
from preferences.catalog import load_catalog
from tenants.callers import Caller
from tenants.roles import Role
from tenants.scopes import Scope
from tenants.services import create_tenant
from tenants.units import store, unit_of_work

PURPOSE = "assistance"
KEYS = tuple(f"setting_{number}" for number in range(10))

#: About 110 bytes of JSON, as small settings are.
VALUES: Sequence[dict[str, Any]] = [
    {"style": "brief", "language": "en", "turn": turn, "note": "plain words, short sentences " * 2}
    for turn in range(1, 9)
]

CATALOG: dict[str, Any] = {
    "purposes": [
        {
            "slug": PURPOSE,
            "title": "Assistance",
            "lawful_basis": "consent",
            "notices": [{"version": 1, "locale": "en", "text": "We remember what you prefer."}],
        }
    ],
    "definitions": [
        {
            "key": key,
            "purpose": PURPOSE,
            "schema": {
                "type": "object",
                "properties": {"style": {"enum": ["brief", "detailed"]}, "turn": {"minimum": 0}},
                "required": ["style"],
            },
            "scopes": ["user"],
            "writers": ["subject", "operator", "agent"],
        }
        for key in KEYS
    ],
    # Batches write more keys of one person than are declared.
    "undeclared": {"user": PURPOSE},
}

#: Rows by the thousand: a transaction that holds a fence per person holds a lock per person.
BATCH = 1000

#: What the product would have written, through the same triggers.
PEOPLE = """
    INSERT INTO consentful_subject (tenant_id, external_id)
    SELECT %(tenant)s, format('person-%%s', n) FROM generate_series(%(first)s, %(last)s) n
"""
CONSENTS = """
    INSERT INTO consentful_consent_entry (
        tenant_id, subject_id, purpose_id, decision, version, actor, method, at)
    SELECT s.tenant_id, s.id, p.id, 'given', 1, s.external_id, 'user_confirmed', consentful_now()
    FROM consentful_subject s
    JOIN consentful_purpose p ON p.tenant_id = s.tenant_id AND p.slug = %(purpose)s
    WHERE s.tenant_id = %(tenant)s AND s.external_id = ANY (
        SELECT format('person-%%s', n) FROM generate_series(%(first)s, %(last)s) n)
"""
RECORDS = """
    INSERT INTO consentful_preference (
        tenant_id, scope, key, subject_id, purpose_id, value, tags, metadata, source, actor,
        provenance, seen_count, created_at, updated_at)
    SELECT s.tenant_id, 'user::' || s.external_id, key, s.id, p.id, %(value)s::json, '{}', '{}',
           'user_confirmed', s.external_id,
           '{"detail": null, "origin": {}, "confidence": null}', 1, consentful_now(), consentful_now()
    FROM consentful_subject s
    JOIN consentful_purpose p ON p.tenant_id = s.tenant_id AND p.slug = %(purpose)s
    CROSS JOIN unnest(%(keys)s::text[]) key
    WHERE s.tenant_id = %(tenant)s AND s.external_id = ANY (
        SELECT format('person-%%s', n) FROM generate_series(%(first)s, %(last)s) n)
"""

COPY_TO_FLOORS = """
    INSERT INTO floor_consent (tenant_id, subject, purpose, state)
    SELECT s.tenant_id, who.external_id, p.slug, s.decision FROM consentful_consent_state s
    JOIN consentful_subject who ON who.id = s.subject_id JOIN consentful_purpose p ON p.id = s.purpose_id;
    INSERT INTO floor_preference (tenant_id, scope, key, consent_id, value, revision, updated_at)
    SELECT r.tenant_id, r.scope, r.key, c.id, r.value, r.revision, r.updated_at
    FROM consentful_preference r
    JOIN floor_consent c ON c.tenant_id = r.tenant_id AND 'user::' || c.subject = r.scope;
    INSERT INTO floor_event (at, tenant_id, action, preference_id, actor, revision_after)
    SELECT updated_at, tenant_id, 'created', id, scope, revision FROM floor_preference;
"""
COPY_TO_PEERS = """
    INSERT INTO store (prefix, key, value, created_at, updated_at)
    SELECT r.tenant_id || '.' || substr(r.scope, 7), r.key, r.value::jsonb, r.created_at, r.updated_at
    FROM consentful_preference r;
    INSERT INTO peer_historied (tenant_id, scope, key, value, created_at, updated_at)
    SELECT tenant_id, scope, key, value::jsonb, created_at, updated_at FROM consentful_preference;
    INSERT INTO peer_logged (tenant_id, scope, key, value, created_at, updated_at)
    SELECT tenant_id, scope, key, value::jsonb, created_at, updated_at FROM consentful_preference;
    INSERT INTO peer_versioned (tenant_id, scope, key, value, created_at, updated_at, version)
    SELECT tenant_id, scope, key, value::jsonb, created_at, updated_at, 1 FROM consentful_preference;
"""


@dataclass(frozen=True, slots=True)
class Address:
    """Where one record stands."""

    tenant_id: int
    subject: str
    key: str

    @property
    def scope(self) -> str:
        return f"user::{self.subject}"


@dataclass(frozen=True)
class Population:
    """What was stored: each tenant's people are called ``person-1``, ``person-2`` …"""

    #: Slugs by id.
    tenants: dict[int, str]
    people_per_tenant: int
    purpose: str = PURPOSE

    @cached_property
    def texts(self) -> Sequence[str]:
        """The values as JSON text."""
        return [json.dumps(value) for value in VALUES]

    @cached_property
    def addresses(self) -> Sequence[Address]:
        """Every record's."""
        return [
            Address(tenant, f"person-{number}", key)
            for tenant in self.tenants
            for number in range(1, self.people_per_tenant + 1)
            for key in KEYS
        ]

    def sample(self, worker: Worker, *, most: int) -> Sequence[Address]:
        """Return some addresses that no other worker gets, spread over all."""
        own = self.addresses[worker.number :: worker.count]
        return worker.random.sample(own, min(most, len(own)))

    def draw(self, numbers: random.Random) -> Iterator[Address]:
        """Yield addresses at random, without a list of them all."""
        tenants = list(self.tenants)
        while True:
            number = numbers.randint(1, self.people_per_tenant)
            yield Address(numbers.choice(tenants), f"person-{number}", numbers.choice(KEYS))

    def caller(self, address: Address) -> Caller:
        """Return the person of an address, asking for themselves."""
        return Caller(
            user_id=address.subject,
            username=address.subject,
            tenant_id=address.tenant_id,
            tenant=self.tenants[address.tenant_id],
            roles=frozenset({Role.MEMBER}),
            subject=address.subject,
            on_behalf_of=None,
        )

    def scope(self, address: Address) -> Scope:
        """Return the scope of an address."""
        return Scope.of_subject(address.subject)


def populate(effort: Effort) -> Population:
    """Fill the fresh database, for Consentful, for the floors and for the peers."""
    tenants: dict[int, str] = {}
    for number in range(effort.tenants):
        tenant = create_tenant(slug=f"tenant-{number}")
        load_catalog(tenant=tenant, catalog=CATALOG)
        # As housekeeping does all the time: it also notes what each writer has to know.
        seal(tenant.pk, "default")
        tenants[tenant.pk] = tenant.slug
        for first in range(1, effort.people_per_tenant + 1, BATCH):
            last = min(first + BATCH - 1, effort.people_per_tenant)
            add_people(tenant.pk, first, last)
    with connect(as_owner=True, row_factory=dict_row) as owner:
        PostgresStore(owner).setup()
    with connect(as_owner=True) as owner:
        owner.execute(FLOORS.read_bytes())
        owner.execute(COPY_TO_FLOORS)
        owner.execute(COPY_TO_PEERS)
        grant_everything(owner)
        owner.execute("VACUUM ANALYZE")
    return Population(tenants, effort.people_per_tenant)


def add_people(tenant_id: int, first: int, last: int) -> None:
    """Add the persons of these numbers, who consent, with a record under every key."""
    facts: dict[str, Any] = {
        "tenant": tenant_id, "first": first, "last": last, "purpose": PURPOSE,
        "keys": list(KEYS), "value": json.dumps(VALUES[0]),
    }  # fmt: skip
    with unit_of_work(tenant_id=tenant_id, actor=SYSTEM), store().cursor() as cursor:
        for statement in (PEOPLE, CONSENTS, RECORDS):
            cursor.execute(statement, facts)


def grant_everything(owner: Connection[Any]) -> None:
    """Let the login that serves use the tables of floors and peers."""
    found = owner.execute(
        "SELECT format('GRANT ALL ON %%s TO %%I', oid::regclass, %s::text) FROM pg_class"
        " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S')"
        " AND relname SIMILAR TO '(floor|peer|peers|store|auditlog|authtoken)%%'",
        [store().settings_dict["USER"]],
    )
    for (grant,) in found.fetchall():
        owner.execute(grant)
