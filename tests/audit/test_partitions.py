"""The table of events in parts: what an operator does once a month, on a database of its own."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.conftest import connect, copy_database, drop_database

ROOT = Path(__file__).resolve().parents[2]
LATER = """
    CREATE OR REPLACE FUNCTION consentful_now() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS $$ SELECT clock_timestamp() + interval '40 days' $$
"""
WRITE = """
    INSERT INTO consentful_preference (tenant_id, scope, key, value, tags, metadata, source, actor,
        provenance, seen_count, created_at, updated_at)
    VALUES (%(tenant)s, 'global', %(key)s, '1', '{}', '{}', 'operator', 'ann', '{"origin": {}}', 1,
        now(), now())
    ON CONFLICT (tenant_id, scope, key) DO UPDATE SET seen_count = consentful_preference.seen_count + 1
"""


class Apart:
    """A database of its own with one tenant."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.command("create_tenant", "acme")
        with self.connect("owner") as owner:
            (self.tenant,) = owner.execute("SELECT id FROM consentful_tenant").fetchone() or (0,)

    def command(self, *arguments: str, status: int = 0) -> str:
        ran = subprocess.run(
            [sys.executable, "manage.py", *arguments], cwd=ROOT, capture_output=True, text=True,
            env=os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings", "TEST_DATABASE": self.name},
            check=False,
        )  # fmt: skip
        assert ran.returncode == status, ran.stderr
        return ran.stdout

    def connect(self, login: str) -> psycopg.Connection[Any]:
        with connect(login) as known:
            return psycopg.connect(
                known.info.dsn, dbname=self.name, autocommit=True,
                password=known.info.password or None,
            )  # fmt: skip

    def write(self, *keys: str) -> None:
        with self.connect("runtime") as session:
            for key in keys:
                self.write_on(session, key)

    def write_on(self, session: psycopg.Connection[Any], key: str) -> None:
        with session.transaction():
            session.execute("SELECT consentful_enter(%s, '{}')", [self.tenant])
            session.execute(WRITE, {"tenant": self.tenant, "key": key})

    def parts(self) -> dict[str, int]:
        """How many events each part holds, oldest part first."""
        with self.connect("owner") as owner:
            names = owner.execute(
                "SELECT inhrelid::regclass::text FROM pg_inherits"
                " WHERE inhparent = 'consentful_audit_event'::regclass ORDER BY inhrelid"
            ).fetchall()
            return {
                name: (owner.execute(f"SELECT count(*) FROM {name}").fetchone() or (0,))[0]
                for (name,) in names
            }

    def skip(self, ids: int) -> None:
        """Let so many ids pass, as events would."""
        with self.connect("owner") as owner:
            owner.execute(
                "SELECT setval('consentful_audit_event_id_seq', last_value + %s)"
                " FROM consentful_audit_event_id_seq",
                [ids],
            )


@pytest.fixture
def apart(database: str) -> Iterator[Apart]:
    name = f"{database}_apart"
    copy_database(f"{database}_empty", name)
    try:
        yield Apart(name)
    finally:
        drop_database(name)


def test_the_table_is_divided_beside_a_writer_and_its_oldest_part_dropped(apart: Apart) -> None:
    apart.write("a", "b")
    done = threading.Event()
    failed: list[Exception] = []

    def go_on() -> None:
        """A session that has compiled every function before, and goes on using them."""
        with apart.connect("runtime") as session, apart.connect("runtime") as sealer:
            while not done.is_set():
                try:
                    apart.write_on(session, "c")
                    sealer.execute("SELECT consentful_seal(%s)", [apart.tenant])
                except psycopg.Error as fault:
                    failed.append(fault)
                    return

    writer = threading.Thread(target=go_on)
    writer.start()
    try:
        for number in (2, 3):
            assert apart.command("partition_audit", "--ahead", "20000") == (
                f"consentful_audit_event_{number}\n"
            )
            apart.skip(20_000)
            apart.write(f"in part {number}")
    finally:
        done.set()
        writer.join()
    assert failed == []
    assert list(apart.parts()) == [f"consentful_audit_event_{number}" for number in (1, 2, 3)]
    assert all(apart.parts().values())
    apart.command("seal_audit")
    apart.command("verify_audit")

    # A month later everything so far is cut; what is written since keeps the last part.
    with apart.connect("owner") as owner:
        owner.execute(LATER)
    apart.write("young")
    assert int(apart.command("trim_audit", "--keep-days", "30")) > 0
    assert list(apart.parts()) == ["consentful_audit_event_3"]
    apart.command("verify_audit")
    apart.write("a", "later still")
    apart.command("verify_audit")
    apart.command("migrate", "--verbosity", "0")
    assert apart.command("partition_audit") == "consentful_audit_event_4\n"


def test_a_part_is_guarded_like_the_whole(apart: Apart) -> None:
    apart.write("a")
    apart.command("partition_audit", "--ahead", "1000")
    apart.skip(1000)
    apart.write("b")
    # Rights are given anew after every migration.
    apart.command("migrate", "--verbosity", "0")
    apart.command("verify_audit")
    whole = ("consentful_audit_event", *apart.parts())
    with apart.connect("runtime") as session:
        with pytest.raises(psycopg.Error, match="no tenant was announced"):
            session.execute("SELECT * FROM consentful_audit_event LIMIT 1")
        session.execute("SELECT set_config('consentful.tenant', '0', false)")
        for table in whole[1:]:
            for statement in (f"SELECT FROM {table}", f"INSERT INTO {table} DEFAULT VALUES"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    session.execute(statement)
    with apart.connect("owner") as owner:
        for table in whole:
            for statement in (
                f"DELETE FROM {table}", f"UPDATE {table} SET action = 'x'", f"TRUNCATE {table}",
            ):  # fmt: skip
                with pytest.raises(psycopg.errors.InsufficientPrivilege, match="is refused"):
                    owner.execute(statement)
        # Nothing is cut, so no part goes.
        assert owner.execute("SELECT consentful_drop_part()").fetchone() == (None,)
        owner.execute("ALTER TABLE consentful_audit_event_1 DISABLE TRIGGER consentful_insert_only")
    assert "consentful_audit_event_1" in apart.command("verify_audit", status=1)


def test_a_division_that_cannot_have_the_table_leaves_nothing_behind(apart: Apart) -> None:
    apart.write("a")
    with apart.connect("owner") as owner, owner.transaction():
        owner.execute("LOCK TABLE consentful_audit_event IN ACCESS SHARE MODE")
        apart.command("partition_audit", status=1)
    with apart.connect("owner") as owner:
        found = owner.execute(
            "SELECT count(*) FROM pg_constraint WHERE conname = 'consentful_event_bounds'"
        ).fetchone()
    assert found == (0,)
    assert apart.parts() == {}
    apart.write("b")
    apart.command("verify_audit")


INDEXES = """
    SELECT indrelid::regclass::text, indisvalid FROM pg_index JOIN pg_class ON oid = indexrelid
    WHERE relname ^@ 'consentful_event_denied' OR indexrelid IN (
        SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass('consentful_event_denied'))
    ORDER BY 1
"""


def test_an_index_of_a_later_version_is_made_part_by_part(apart: Apart) -> None:
    migrate = ("migrate", "--verbosity", "0", "consentful_audit")
    # As if this version came to a trail that was divided before.
    apart.command(*migrate, "0006", "--fake")
    with apart.connect("owner") as owner:
        owner.execute("DROP INDEX consentful_event_denied")
    apart.write("a")
    for _ in range(2):
        apart.command("partition_audit", "--ahead", "1000")
        apart.skip(1000)
        apart.write("b", "c")
    with apart.connect("owner") as owner:
        assert owner.execute(INDEXES).fetchall() == []
        # A run that was interrupted: the whole has its index, one part has an invalid one.
        owner.execute(
            "CREATE INDEX consentful_event_denied ON ONLY consentful_audit_event (tenant_id, id)"
            " WHERE outcome = 'denied'"
        )
        with pytest.raises(psycopg.errors.UniqueViolation):
            owner.execute(
                "CREATE UNIQUE INDEX CONCURRENTLY consentful_event_denied_2"
                " ON consentful_audit_event_2 (tenant_id)"
            )
        assert ("consentful_audit_event_2", False) in owner.execute(INDEXES).fetchall()
    apart.command(*migrate, "0007")
    apart.command("partition_audit", "--ahead", "1000")
    every = [("consentful_audit_event", True)]
    every += [(f"consentful_audit_event_{number}", True) for number in (1, 2, 3, 4)]
    with apart.connect("owner") as owner:
        assert owner.execute(INDEXES).fetchall() == every
    # And back, and forth again.
    apart.command(*migrate, "0006")
    with apart.connect("owner") as owner:
        assert owner.execute(INDEXES).fetchall() == []
    apart.command(*migrate, "0007")
    with apart.connect("owner") as owner:
        assert owner.execute(INDEXES).fetchall() == every
    apart.command(*migrate, "--fake")
    apart.command("verify_audit")
