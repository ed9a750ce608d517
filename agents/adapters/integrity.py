"""
What `agmi-check` edits behind our back, and how we answer (extra ``integrity``).

It makes tenants, and writes to the database as somebody who owns it: never run it on one that is
not thrown away.
"""

import json
import os
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import django
import psycopg
from agmi.adapters.base import MemoryAdapter, Record
from django.apps import apps
from django.db import IntegrityError, connections
from psycopg import sql
from psycopg.rows import dict_row

if not apps.ready:
    # The program imports this module by its name, outside of any Django project.
    django.setup()

from audit.models import Event
from audit.sealing import seal
from audit.stores import FolderStore
from audit.verification import verify
from preferences.services import set_preference
from preferences.testing import Person, make_person, make_tenant
from tenants.proof import read_checkpoints, write_checkpoint
from tenants.units import database, unit_of_work

#: Names the database for whoever owns it: triggers can be put to sleep there.
ATTACKER = "CONSENTFUL_INTEGRITY_ATTACKER"
#: Seconds that older transactions of the server may keep an event from being sealed.
PATIENCE = 20.0
CATALOG = {
    "purposes": [{"slug": "memory", "title": "Memory", "lawful_basis": "contract"}],
    "undeclared": {"user": "memory"},
}
_COLUMNS = (
    "id, tenant_id, subject_id, purpose_id, scope, key, value::text, revision, salt, source, actor,"
    " provenance::text, tags, metadata::text, seen_count, created_at::text, updated_at::text"
)


class IntegrityAdapter(MemoryAdapter):
    """
    One tenant with two persons; the trail, and checkpoints that are kept outside the database.

    Args:
        attacker: a connection that may disable triggers, or how to make one; by default what the
            variable `CONSENTFUL_INTEGRITY_ATTACKER` says.
    """

    name = "consentful"
    #: Reads do not compute digests: the audit finds what was edited.
    detection_point = "audit"
    supports_replay = True
    supports_metadata = True
    supports_snapshot = True

    def __init__(self, attacker: "psycopg.Connection[Any] | str | None" = None) -> None:
        given = os.environ[ATTACKER] if attacker is None else attacker
        self._attacker = (
            psycopg.connect(given, autocommit=True) if isinstance(given, str) else given
        )

    # The store, used as a product uses it ------------------------------------------------------

    def setup(self) -> None:
        self._tenant = make_tenant(CATALOG)
        self._person, self._other = make_person(self._tenant), make_person(self._tenant)
        self._folder = tempfile.TemporaryDirectory()
        self._kept = FolderStore(Path(self._folder.name))

    def teardown(self) -> None:
        self._folder.cleanup()

    def seed(self, n: int) -> None:
        self._write(self._person, n)

    def seed_other(self, n: int) -> None:
        self._write(self._other, n)

    def append_genuine(self) -> None:
        self._write(self._person, 1)

    def _write(self, person: Person, count: int) -> None:
        for _ in range(count):
            marker = uuid.uuid4().hex
            set_preference(
                caller=person.caller,
                scope=person.scope,
                key=f"note-{marker}",
                value=f"note {marker}",
            )
        self._seal()
        write_checkpoint(self._tenant.pk, self._tenant.slug, kept=self._kept)

    def _seal(self) -> None:
        """Seal all there is, as housekeeping does a little later."""
        deadline = time.monotonic() + PATIENCE
        while True:
            with suppress(IntegrityError):  # a chain that cannot go on is a finding
                seal(self._tenant.pk, using=database())
            with unit_of_work(tenant_id=self._tenant.pk, actor=self._person.caller.actor):
                if not Event.objects.filter(tenant_id=self._tenant.pk, seal=None).exists():
                    return
            if time.monotonic() > deadline:
                return
            time.sleep(0.05)

    def reload(self) -> None:
        connections.close_all()

    def verify(self) -> bool:
        """Do what `verify_audit` does for one tenant."""
        with suppress(IntegrityError):
            seal(self._tenant.pk, using=database())
        with unit_of_work(tenant_id=self._tenant.pk, actor=self._person.caller.actor):
            findings = verify(
                self._tenant.pk,
                using=database(),
                checkpoints=read_checkpoints(self._tenant.pk, self._kept),
            )
        self.verify_detail = findings[0].sentence if findings else None
        return not findings

    # The rows, behind its back -----------------------------------------------------------------

    def read_all_raw(self) -> list[Record]:
        return self._read(self._person)

    def read_other_raw(self) -> list[Record]:
        return self._read(self._other)

    def write_raw(self, record: Record) -> None:
        target = self._id_at(record.seq)
        if target is None:
            self._insert(record.fields)
        else:
            self._execute(
                "UPDATE consentful_preference SET value = %s::json, provenance = %s::json,"
                " metadata = %s::json, tags = %s WHERE id = %s",
                *(record.fields[name] for name in ("value", "provenance", "metadata", "tags")),
                target,
            )

    def delete_raw(self, seq: int) -> None:
        self._execute("DELETE FROM consentful_preference WHERE id = %s", self._id_at(seq))

    def replay_onto(self, victim_seq: int, donor: Record) -> None:
        # With its revision and salt: all that was proven about the donor.
        self._execute(
            "UPDATE consentful_preference SET value = %s::json, revision = %s, salt = %s WHERE id = %s",
            *(donor.fields[name] for name in ("value", "revision", "salt")),
            self._id_at(victim_seq),
        )

    def read_meta(self, seq: int) -> dict[str, Any]:
        fields = self.read_all_raw()[seq].fields
        return {"source": fields["source"], **json.loads(fields["metadata"])}

    def write_meta(self, seq: int, meta: dict[str, Any]) -> None:
        self._execute(
            "UPDATE consentful_preference SET source = 'operator', metadata = %s::json WHERE id = %s",
            json.dumps({name: value for name, value in meta.items() if name != "source"}),
            self._id_at(seq),
        )

    def snapshot_store(self) -> object:
        """Copy every row of the tenant; what is kept outside the database is not the store's."""
        copies = {}
        for table in self._tables():
            copies[table] = f"kept_{uuid.uuid4().hex}"
            self._attacker.execute(
                sql.SQL("CREATE TEMP TABLE {} AS SELECT * FROM {} WHERE tenant_id = {}").format(
                    sql.Identifier(copies[table]), sql.Identifier(table), self._tenant.pk
                )
            )
        return copies

    def restore_store(self, token: Any) -> None:
        for table, copy in token.items():
            self._execute(
                sql.SQL("DELETE FROM {} WHERE tenant_id = %s").format(sql.Identifier(table)),
                self._tenant.pk,
            )
            self._execute(
                sql.SQL("INSERT INTO {} OVERRIDING SYSTEM VALUE SELECT * FROM {}").format(
                    sql.Identifier(table), sql.Identifier(copy)
                )
            )
            self._attacker.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(copy)))

    # What a record is --------------------------------------------------------------------------

    def mutate_payload(self, record: Record) -> Record:
        record.fields["value"] = json.dumps(json.loads(record.fields["value"]) + " [edited]")
        return record

    def forge_record(self, template: Record) -> Record:
        new = uuid.uuid4().hex
        fields = {**template.fields, "key": f"note-{new}", "revision": new, "salt": new}
        return self.mutate_payload(Record(seq=template.seq + 1, fields=fields))

    def identity_of(self, record: Record) -> str:
        return str(record.fields["id"])

    def payload_of(self, record: Record) -> str:
        return str(record.fields["value"])

    def owner_of(self, record: Record) -> str:
        return str(record.fields["scope"])

    # The attacker ------------------------------------------------------------------------------

    def _read(self, person: Person) -> list[Record]:
        with self._attacker.cursor(row_factory=dict_row) as cursor:
            cursor.execute(
                f"SELECT {_COLUMNS} FROM consentful_preference"  # noqa: S608  names of the schema alone
                " WHERE tenant_id = %s AND scope = %s ORDER BY id",
                [self._tenant.pk, str(person.scope)],
            )
            return [Record(seq=seq, fields=row) for seq, row in enumerate(cursor.fetchall())]

    def _id_at(self, seq: int) -> int | None:
        records = self.read_all_raw()
        return records[seq].fields["id"] if seq < len(records) else None

    def _insert(self, fields: dict[str, Any]) -> None:
        names = [name for name in fields if name != "id"]
        self._execute(
            sql.SQL("INSERT INTO consentful_preference ({}) VALUES ({})").format(
                sql.SQL(", ").join(map(sql.Identifier, names)),
                sql.SQL(", ").join(sql.Placeholder() * len(names)),
            ),
            *(fields[name] for name in names),
        )

    def _execute(self, statement: Any, *parameters: Any) -> None:
        """Execute with every trigger asleep."""
        self._attacker.execute("SET session_replication_role = replica")
        try:
            self._attacker.execute(statement, parameters)
        finally:
            self._attacker.execute("SET session_replication_role = origin")

    def _tables(self) -> list[str]:
        found = self._attacker.execute(
            "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
            " WHERE c.relname ^@ 'consentful_' AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
            " AND a.attname = 'tenant_id' AND c.relpersistence = 'p' ORDER BY c.relname"
        ).fetchall()
        return [name for (name,) in found]
