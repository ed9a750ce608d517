"""
C114: a migration of a table that may be large must not stop those who use it.

The first two migrations of an app make its tables, which are empty then. From the third on, every
operation is judged here, and run on a filled database while it is in use.
"""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently,
    RemoveIndexConcurrently,
)
from django.core.management.sql import emit_post_migrate_signal, emit_pre_migrate_signal
from django.db import connection, models
from django.db.migrations import Migration, operations
from django.db.migrations.loader import MigrationLoader
from django.db.models.fields import NOT_PROVIDED
from psycopg import sql

from tests.conftest import connect

ROOT = Path(__file__).resolve().parents[2]
OURS = ("audit", "tenants", "consent", "preferences", "memory", "agents", "privacy")
ROWS = 200_000
#: Seconds that nobody may wait for a migration: it gives up after 0.75, and the machine may be busy.
PATIENCE = 3.0


def later_migrations() -> Iterator[Migration]:
    labels = {config.label for config in apps.get_app_configs() if config.name in OURS}
    for (label, name), migration in MigrationLoader(None).disk_migrations.items():
        if label in labels and int(name[:4]) > 2:
            yield migration


def find_blocking(migration: Migration) -> list[str]:
    """Return what in a migration would hold a table for as long as it has rows."""
    models_made = [one for one in migration.operations if isinstance(one, operations.CreateModel)]
    made = {one.name.lower() for one in models_made}
    tables = {str(one.options.get("db_table", "")).upper() for one in models_made} - {""}
    found: list[str] = []
    for operation in flatten(migration.operations):
        if isinstance(operation, operations.RunSQL):
            found += find_blocking_sql(operation.sql, tables, is_atomic=migration.atomic)
        elif getattr(operation, "model_name", "").lower() not in made:
            found += find_blocking_operation(operation, is_atomic=migration.atomic)
    return found


def flatten(several: Iterable[Any]) -> Iterator[Any]:
    for operation in several:
        yield operation
        if isinstance(operation, operations.SeparateDatabaseAndState):
            yield from flatten(operation.database_operations)


def find_blocking_operation(operation: Any, *, is_atomic: bool) -> list[str]:
    name = type(operation).__name__
    match operation:
        case AddIndexConcurrently() | RemoveIndexConcurrently():
            return [f"{name} in an atomic migration"] if is_atomic else []
        case AddConstraintNotValid():
            return []
        case operations.AddIndex() | operations.RemoveIndex():
            return [f"{name}: use its concurrent form"]
        case operations.AddConstraint():
            return [f"{name}: add it NOT VALID, or a unique one from a concurrent index"]
        case operations.AddField(field=field):
            return [f"{name} {operation.name}: {fault}" for fault in find_faults(field)]
        case operations.AlterField() | operations.AlterUniqueTogether():
            return [f"{name}: write the steps in SQL, NOT VALID first"]
    return []


def find_faults(field: Any) -> Iterator[str]:
    if field.remote_field is not None and getattr(field, "db_constraint", True):
        yield "a foreign key is checked row by row under a lock"
    if field.db_index or field.unique:
        yield "its index is not made concurrently"
    default = getattr(field, "db_default", NOT_PROVIDED)
    if isinstance(default, models.Func):
        yield "a default that is computed for each row writes the whole table anew"
    if not field.null and default is NOT_PROVIDED and not field.has_default():
        yield "not null without a default fails on rows that stand"


STATEMENT = re.compile(r"\$(\w*)\$.*?\$\1\$|'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
BLOCKING = {
    r"CREATE (UNIQUE )?INDEX (?!CONCURRENTLY)": "an index that is not made concurrently",
    r"DROP INDEX (?!CONCURRENTLY)": "an index that is not dropped concurrently",
    r"REINDEX (?!.*CONCURRENTLY)": "an index that is not remade concurrently",
    r"ALTER TABLE .*ADD CONSTRAINT (?!.*(NOT VALID|USING INDEX))": "a constraint without NOT VALID",
    r"ALTER TABLE .*ADD (UNIQUE|CHECK|FOREIGN KEY|PRIMARY KEY|EXCLUDE)": "a nameless constraint",
    r"ALTER TABLE .*(SET DATA )?TYPE ": "a change of type, which writes the whole table anew",
    r"ALTER TABLE .*SET NOT NULL": "SET NOT NULL, which reads the whole table under a lock",
    r"ALTER TABLE .*SET (TABLESPACE|LOGGED|UNLOGGED|ACCESS METHOD)": "a rewrite of the table",
    r"ALTER TABLE .*ADD (COLUMN )?(?!CONSTRAINT ).*(DEFAULT \w+ ?\(|GENERATED|SERIAL|REFERENCES)":
        "a column that writes or checks the whole table",
    r"(VACUUM|CLUSTER|LOCK TABLE|TRUNCATE|REFRESH MATERIALIZED VIEW (?!CONCURRENTLY))":
        "a lock on the whole table",
    r"UPDATE ": "a change of all rows at once: move data in batches",
    r"DELETE FROM ": "a change of all rows at once: move data in batches",
}  # fmt: skip


def find_blocking_sql(text: Any, tables: set[str], *, is_atomic: bool) -> list[str]:
    """As above; `tables` are new in this migration, hence empty and used by nobody."""
    if not isinstance(text, str):
        pieces = [one if isinstance(one, str) else one[0] for one in text]
        text = ";".join(pieces)
    # Bodies of functions, strings and comments do nothing by themselves.
    bare = re.sub(r"\s+", " ", STATEMENT.sub(" ", text)).upper()
    made = tables | set(re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)", bare))
    found = []
    for statement in (one.strip() for one in bare.split(";")):
        if " CONCURRENTLY " in statement and is_atomic:
            found.append(f"CONCURRENTLY in an atomic migration: {statement[:80]}")
        if any(re.search(rf"\b{table}\b", statement) for table in made):
            continue
        for pattern, fault in BLOCKING.items():
            if re.match(pattern, statement):
                found.append(f"{fault}: {statement[:80]}")
    return found


def test_C114_no_later_migration_holds_a_table() -> None:
    faults = {
        f"{migration.app_label}.{migration.name}": found
        for migration in later_migrations()
        if (found := find_blocking(migration))
    }
    assert faults == {}


def migration_of(*several: Any, atomic: bool = True) -> Migration:
    made = Migration("0003_later", "consentful_preferences")
    made.operations, made.atomic = list(several), atomic
    return made


INDEX = models.Index(fields=["key"], name="later")
TRUTH = models.CheckConstraint(condition=models.Q(key__gt=""), name="later")


@pytest.mark.parametrize(
    "operation",
    [
        operations.AddIndex("preference", INDEX),
        operations.RemoveIndex("preference", "later"),
        AddIndexConcurrently("preference", INDEX),  # inside a transaction
        operations.AddConstraint("preference", TRUTH),
        operations.AddField("preference", "later", models.TextField(unique=True, null=True)),
        operations.AddField("preference", "later", models.TextField(db_index=True, null=True)),
        operations.AddField("preference", "later", models.TextField()),
        operations.AddField(
            "preference", "later", models.ForeignKey("Later", models.CASCADE, null=True)
        ),
        operations.AddField(
            "preference", "later", models.DateTimeField(db_default=models.functions.Now())
        ),
        operations.AlterField("preference", "key", models.TextField()),
        operations.RunSQL("CREATE INDEX later ON consentful_preference (key)"),
        operations.RunSQL("create  unique\nindex later on consentful_preference (key)"),
        operations.RunSQL(
            "SELECT 1; CREATE INDEX CONCURRENTLY later ON consentful_preference (key)"
        ),
        operations.RunSQL("ALTER TABLE consentful_preference ADD CONSTRAINT later CHECK (id > 0)"),
        operations.RunSQL("ALTER TABLE consentful_preference ALTER COLUMN id TYPE numeric"),
        operations.RunSQL("ALTER TABLE consentful_preference ALTER tags SET NOT NULL"),
        operations.RunSQL(
            "ALTER TABLE consentful_preference ADD COLUMN later uuid DEFAULT gen_random_uuid()"
        ),
        operations.RunSQL("LOCK TABLE consentful_preference"),
        operations.RunSQL(["SELECT 1", ("UPDATE consentful_preference SET tags = %s", ["{}"])]),
        operations.RunSQL("DELETE FROM consentful_preference"),
        operations.SeparateDatabaseAndState(
            database_operations=[operations.AddIndex("preference", INDEX)]
        ),
    ],
)
def test_what_holds_a_table_is_found(operation: Any) -> None:
    assert find_blocking(migration_of(operation))


@pytest.mark.parametrize(
    ("several", "is_atomic"),
    [
        ([AddIndexConcurrently("preference", INDEX)], False),
        ([AddConstraintNotValid("preference", TRUTH)], True),
        ([operations.AddField("preference", "later", models.TextField(null=True))], True),
        ([operations.AddField("preference", "later", models.TextField(default=""))], True),
        ([operations.AddField("preference", "later", models.TextField(db_default=""))], True),
        ([operations.RunSQL("CREATE TABLE later (id int); CREATE INDEX ON later (id)")], True),
        ([operations.RunSQL("CREATE INDEX CONCURRENTLY a ON consentful_preference (id)")], False),
        (
            [
                operations.RunSQL(
                    "ALTER TABLE consentful_preference"
                    " ADD CONSTRAINT later CHECK (id > 0) NOT VALID"
                ),
                operations.RunSQL("ALTER TABLE consentful_preference VALIDATE CONSTRAINT later"),
            ],
            True,
        ),
        (
            [
                operations.RunSQL(
                    "ALTER TABLE consentful_preference ADD CONSTRAINT later"
                    " FOREIGN KEY (tenant_id, id) REFERENCES other (tenant_id, id) NOT VALID"
                ),
            ],
            True,
        ),
        (
            [
                operations.RunSQL(
                    "CREATE FUNCTION later() RETURNS void LANGUAGE sql AS"
                    " $$ UPDATE consentful_preference SET tags = '{}'; $$ -- DELETE FROM it"
                )
            ],
            True,
        ),
        (
            [
                operations.CreateModel(
                    "Later",
                    [("id", models.BigAutoField(primary_key=True))],
                    options={"db_table": "later"},
                ),
                operations.RunSQL("ALTER TABLE later ADD CONSTRAINT a CHECK (id > 0)"),
            ],
            True,
        ),
        (
            [
                operations.CreateModel("Later", [("id", models.BigAutoField(primary_key=True))]),
                operations.AddIndex("later", models.Index(fields=["id"], name="later")),
            ],
            True,
        ),
    ],
)
def test_what_holds_nothing_is_taken(several: Sequence[Any], is_atomic: bool) -> None:
    assert find_blocking(migration_of(*several, atomic=is_atomic)) == []


def test_C114_a_blocked_migration_gives_up() -> None:
    """It fails and can be run again; whoever queues behind it would wait as long as it does."""

    def waits() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            return str(cursor.fetchone()[0])

    before = waits()
    emit_pre_migrate_signal(0, False, connection.alias)
    try:
        assert waits() == "750ms"
    finally:
        emit_post_migrate_signal(0, False, connection.alias)
    assert waits() == before


@pytest.fixture
def filled(database: str) -> Iterator[tuple[str, psycopg.Connection[Any]]]:
    """A database as the second migrations left it, with many rows in its largest tables."""
    name = f"{database}_filled"
    with connect("owner") as owner:
        owner.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        owner.execute(
            sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(sql.Identifier(name))
        )
    try:
        for label in ("audit", "tenants", "consent", "preferences"):
            # One by one: a first run that was interrupted must be able to go on.
            ran = migrate(name, f"consentful_{label}", "0002")
            assert ran.returncode == 0, ran.stderr
        with connect_to("superuser", name) as superuser:
            superuser.execute("SET session_replication_role = replica")
            fill(superuser)
            superuser.execute("SET session_replication_role = origin")
            superuser.execute("ANALYZE")
            yield name, superuser
    finally:
        with connect("owner") as owner:
            owner.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def fill(superuser: psycopg.Connection[Any]) -> None:
    (tenant,) = superuser.execute(
        "INSERT INTO consentful_tenant (slug, name) VALUES ('large', '') RETURNING id"
    ).fetchone() or (0,)
    superuser.execute(
        "INSERT INTO consentful_preference (tenant_id, scope, key, value, tags, metadata, source,"
        " actor, provenance, seen_count, created_at, updated_at)"
        " SELECT %s, 'project::p' || mod(n, 100), 'k' || n, '1', '{}', '{}', 'operator', 'ann', '{}',"
        " 1, now(), now() FROM generate_series(1, %s) n",
        [tenant, ROWS],
    )
    superuser.execute(
        "INSERT INTO consentful_audit_event (tenant_id, at, transaction, cluster, action, outcome,"
        " record, record_id, changed, target_digest, actor_digest)"
        " SELECT %s, now(), 1, 1, 'preference.created', 'done', 'preference', n, '{}', '', ''"
        " FROM generate_series(1, %s) n",
        [tenant, ROWS],
    )


def test_C114_nobody_waits_for_the_later_migrations(
    filled: tuple[str, psycopg.Connection[Any]],
) -> None:
    """Beside readers and writers, and beside a session that sleeps over a row it has locked."""
    name, superuser = filled
    done = threading.Event()
    waited: dict[str, float] = {}

    def use(what: str, statement: str) -> None:
        with connect_to("superuser", name) as session:
            while not done.is_set():
                started = time.monotonic()
                session.execute(statement)
                waited[what] = max(waited.get(what, 0.0), time.monotonic() - started)
                time.sleep(0.005)

    threads = [
        threading.Thread(target=use, args=one)
        for one in (
            ("read", "SELECT count(*) FROM consentful_preference WHERE key = 'k7'"
                     " AND scope = 'project::p7'"),
            ("write", "UPDATE consentful_preference SET seen_count = seen_count + 1"
                      " WHERE key = 'k8' AND scope = 'project::p8'"),
            ("trail", "SELECT max(id) FROM consentful_audit_event"),
        )
    ]  # fmt: skip
    superuser.execute("BEGIN")
    superuser.execute("UPDATE consentful_preference SET seen_count = 2 WHERE key = 'k9'")
    for thread in threads:
        thread.start()
    try:
        # Where it needs the table for a moment, it gives up, and goes on once the sleeper is gone.
        blocked = migrate(name)
        assert blocked.returncode == 0 or "lock timeout" in blocked.stderr, blocked.stderr
        superuser.execute("ROLLBACK")
        ran = migrate(name)
        assert ran.returncode == 0, ran.stderr
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert waited.keys() == {"read", "write", "trail"}
    assert max(waited.values()) < PATIENCE, waited


def connect_to(login: str, name: str) -> psycopg.Connection[Any]:
    with connect(login) as known:
        return psycopg.connect(known.info.dsn, dbname=name, autocommit=True,
                               password=known.info.password or None)  # fmt: skip


def migrate(name: str, *which: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "migrate", "--no-input", *which],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings", "TEST_DATABASE": name},
    )  # fmt: skip
