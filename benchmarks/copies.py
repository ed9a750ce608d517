"""
Databases with many records, filled fast: what growth is measured on.

The product writes its rows one by one and proves each; millions would take hours. So indexes, foreign
keys and triggers rest while rows are put in, in a database of the benchmarks alone.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg import Connection, sql

from benchmarks.database import connect, is_running, store
from benchmarks.population import CATALOG, KEYS, PURPOSE, VALUES, Population
from preferences.catalog import load_catalog
from tenants.services import create_tenant

ROOT = Path(__file__).resolve().parent.parent

TABLES = (
    "consentful_subject", "consentful_consent_entry", "consentful_consent_state",
    "consentful_preference", "consentful_preference_words", "consentful_audit_event",
    "consentful_audit_seal",
)  # fmt: skip

#: Their names hold the process and the number of records.
PREFIX = "benchcopy_consentful_"

#: Tenants among whom the people are dealt out.
TENANTS = 10

PEOPLE = """
    INSERT INTO consentful_subject (tenant_id, external_id, revision, salt)
    SELECT tenant, format('person-%%s', n), md5('r' || n || '.' || tenant), md5('s' || n || '.' || tenant)
    FROM generate_series(1, %(people)s) n CROSS JOIN unnest(%(tenants)s::bigint[]) tenant;
"""
CONSENTS = """
    INSERT INTO consentful_consent_entry (
        tenant_id, subject_id, purpose_id, sequence, entry, decision, version, locale,
        notice_digest, actor, method, at, revision, salt)
    SELECT s.tenant_id, s.id, p.id, 1, md5('e' || s.id), 'given', 1, 'en',
           md5('n' || s.id) || md5('n'), s.external_id, 'user_confirmed', now(),
           md5('r' || s.id), md5('s' || s.id)
    FROM consentful_subject s JOIN consentful_purpose p ON p.tenant_id = s.tenant_id AND p.slug = %(purpose)s
    ORDER BY s.id
"""
STATES = """
    INSERT INTO consentful_consent_state (
        tenant_id, subject_id, purpose_id, decision, version, since, sequence, entry)
    SELECT tenant_id, subject_id, purpose_id, decision, version, at, sequence, entry
    FROM consentful_consent_entry ORDER BY id
"""
#: One record in two has a deadline.
RECORDS = """
    INSERT INTO consentful_preference (
        tenant_id, scope, key, subject_id, purpose_id, value, tags, metadata, source, actor,
        provenance, seen_count, created_at, updated_at, expires_at, revision, salt)
    SELECT s.tenant_id, 'user::' || s.external_id, key, s.id, p.id, %(value)s::json, '{}', '{}',
           'user_confirmed', s.external_id,
           '{"detail": null, "origin": {}, "confidence": null}', 1, now(), now(),
           CASE WHEN place %% 2 = 0 THEN now() + interval '300 days' END,
           md5(key || s.id), md5(s.id || key)
    FROM consentful_subject s JOIN consentful_purpose p ON p.tenant_id = s.tenant_id AND p.slug = %(purpose)s
    CROSS JOIN unnest(%(keys)s::text[]) WITH ORDINALITY AS keys (key, place)
    ORDER BY s.id, place
"""
SHARED = """
    INSERT INTO consentful_preference (
        tenant_id, scope, key, value, tags, metadata, source, actor, provenance, seen_count,
        created_at, updated_at, expires_at, revision, salt)
    SELECT %(tenant)s, %(scope)s, format('key-%%s', n), %(value)s::json, '{}', '{}', 'operator', 'ann',
           '{"detail": null, "origin": {}, "confidence": null}', 1, now(), now(), %(expires)s,
           md5('r' || n), md5('s' || n)
    FROM generate_series(1, %(rows)s) n
"""
#: As a trigger notes them, by which a record is searched.
WORDS = """
    INSERT INTO consentful_preference_words (tenant_id, preference_id, words)
    SELECT r.tenant_id, r.id, consentful_words(r) FROM consentful_preference r ORDER BY r.id
"""
#: One creation of each record, as capture writes it: as many bytes, and no digest that verifies. Their
#: transactions lie before every real one.
EVENTS = """
    INSERT INTO consentful_audit_event (
        tenant_id, at, transaction, cluster, action, outcome, record, record_id, subject_id, actor_id,
        purpose, changed, revision_after, row_digest, target_digest, actor_digest, subject, scope,
        key, request_id, target_salt, actor, actor_salt)
    SELECT tenant_id, now(), id - 1000000000000, 1, 'preference.created', 'done', 'preference', id, subject_id,
           subject_id::text, %(purpose)s, '{}', revision, revision || salt, salt || revision,
           revision || revision, actor, scope, key, salt, salt, actor, salt
    FROM consentful_preference ORDER BY id
"""
SEALS = """
    INSERT INTO consentful_audit_seal (event_id, tenant_id, sequence, previous, hash, at)
    SELECT id, tenant_id, row_number() OVER (PARTITION BY tenant_id ORDER BY id),
           target_salt || revision_after, revision_after || target_salt, at
    FROM consentful_audit_event ORDER BY id
"""
#: Where each chain stands, so that the sealer goes on from there.
HEADS = """
    INSERT INTO consentful_audit_head (tenant_id, sequence, hash, cluster, horizon, resume)
    SELECT DISTINCT ON (tenant_id) tenant_id, sequence, hash, consentful_cluster(),
           pg_snapshot_xmin(pg_current_snapshot())::text::bigint, 9223372036854775807
    FROM consentful_audit_seal ORDER BY tenant_id, sequence DESC
"""


@dataclass(frozen=True, slots=True)
class Copy:
    """A database of its own, and who is in it."""

    database: str
    population: Population
    records: int


@contextlib.contextmanager
def filled_copy(
    records: int, *, is_whole: bool = False, shared: Mapping[str, int] | None = None
) -> Iterator[Copy]:
    """
    Yield a new database with about so many records of people, which is gone after the block.

    Args:
        is_whole: with the words and the trail of each record, which a read never looks at.
        shared: how many records more the first tenant has in each of these scopes.
    """
    name = f"{PREFIX}{os.getpid()}_{records}"
    drop_copies_of_dead_runs()
    with store()._nodb_cursor() as cursor:
        cursor.execute(f'CREATE DATABASE "{name}"')
    try:
        with switched_to(name):
            subprocess.run(
                [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
                cwd=ROOT, check=True,
                env=os.environ | {"DJANGO_SETTINGS_MODULE": "benchmarks.settings", "BENCH_DATABASE": name},
            )  # fmt: skip
            people = max(1, records // len(KEYS) // TENANTS)
            population = fill(people, is_whole=is_whole, shared=shared or {})
        yield Copy(name, population, people * TENANTS * len(KEYS))
    finally:
        store().close()
        with store()._nodb_cursor() as cursor:
            cursor.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def drop_copies_of_dead_runs() -> None:
    """Drop the copies of runs that were killed."""
    with store()._nodb_cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [PREFIX])
        for (name,) in cursor.fetchall():
            if not is_running(int(name.removeprefix(PREFIX).split("_")[0])):
                cursor.execute(f'DROP DATABASE IF EXISTS "{name}"')


@contextlib.contextmanager
def switched_to(name: str) -> Iterator[None]:
    """Let Django's connection, and processes that are forked meanwhile, work on another database."""
    wrapper = store()
    before = wrapper.settings_dict["NAME"]
    wrapper.close()
    wrapper.settings_dict["NAME"] = name
    try:
        yield
    finally:
        wrapper.close()
        wrapper.settings_dict["NAME"] = before


def fill(people_per_tenant: int, *, is_whole: bool, shared: Mapping[str, int]) -> Population:
    """Fill the database that Django's connection leads to, past the triggers."""
    tenants: dict[int, str] = {}
    for number in range(TENANTS):
        tenant = create_tenant(slug=f"tenant-{number}")
        load_catalog(tenant=tenant, catalog=CATALOG)
        tenants[tenant.pk] = tenant.slug
    facts = {
        "people": people_per_tenant, "tenants": list(tenants), "purpose": PURPOSE,
        "keys": list(KEYS), "value": json.dumps(VALUES[0]),
    }  # fmt: skip
    statements = [
        PEOPLE,
        CONSENTS,
        STATES,
        RECORDS,
        *([WORDS, EVENTS, SEALS, HEADS] if is_whole else []),
    ]
    with connect(as_owner=True) as owner, at_rest(owner):
        for scope, rows in shared.items():
            add_shared(owner, tenant=next(iter(tenants)), scope=scope, rows=rows)
        for statement in statements:
            owner.execute(statement, facts)
    return Population(tenants, people_per_tenant)


def add_shared(
    owner: Connection[Any], *, tenant: int, scope: str, rows: int, expires: str | None = None
) -> None:
    """Add records that are nobody's to one scope, while triggers rest."""
    facts = {
        "tenant": tenant, "scope": scope, "rows": rows, "expires": expires,
        "value": json.dumps(VALUES[0]),
    }  # fmt: skip
    owner.execute(SHARED, facts)


@contextlib.contextmanager
def at_rest(owner: Connection[Any], *, keeping_indexes: bool = False) -> Iterator[None]:
    """
    Let triggers, foreign keys and indexes rest, and put all of them back as they were.

    Args:
        keeping_indexes: for few rows in a table that has many.
    """
    owner.execute("SET synchronous_commit = off")
    owner.execute("SET maintenance_work_mem = '512MB'")
    away: list[sql.Composed] = []
    back: list[sql.Composed] = []
    for table in TABLES:
        name = sql.Identifier(table)
        away.append(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(name))
        back.append(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(name))
        if keeping_indexes:
            continue
        constraints = owner.execute(
            "SELECT conname, contype = 'f', pg_get_constraintdef(oid) FROM pg_constraint AS c"
            " WHERE conrelid = %s::regclass AND (contype = 'f' OR contype = 'u' AND NOT EXISTS ("
            # What the keys of other tables point at stays.
            "  SELECT FROM pg_constraint AS key WHERE key.contype = 'f' AND key.conindid = c.conindid))"
            " ORDER BY contype, conname",
            [table],
        ).fetchall()
        indexes = owner.execute(
            "SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) FROM pg_index i"
            " WHERE i.indrelid = %s::regclass AND NOT i.indisprimary AND NOT EXISTS ("
            " SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)",
            [table],
        ).fetchall()
        for constraint, is_key, definition in constraints:
            away.append(
                sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(
                    name, sql.Identifier(constraint)
                )
            )
            back.append(
                sql.SQL(
                    "ALTER TABLE {} ADD CONSTRAINT {} "
                    + definition
                    + (" NOT VALID" if is_key else "")
                ).format(name, sql.Identifier(constraint))
            )
        for index, definition in indexes:
            away.append(sql.SQL("DROP INDEX {}").format(sql.Identifier(index)))
            back.append(sql.SQL(definition).format())
    for statement in away:
        owner.execute(statement)
    yield
    for statement in back:
        owner.execute(statement)
    owner.execute("VACUUM ANALYZE")
