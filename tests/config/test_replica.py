"""A hot standby on this machine: what it may answer, and why a gated read is not among it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from config.embedded import PORT, SOCKET, SUPERUSER, EmbeddedServer, _binaries
from config.postgresql.bootstrap import prepare_logins_and_database
from tests.conftest import PATIENCE

ROOT = Path(__file__).resolve().parents[2]

CONSENT = """
    INSERT INTO consentful_consent_entry
        (tenant_id, subject_id, purpose_id, decision, version, actor, method)
    SELECT s.tenant_id, s.id, p.id, %s, 1, 'alice', 'user_confirmed'
    FROM consentful_subject s JOIN consentful_purpose p ON p.tenant_id = s.tenant_id
"""
STORED = """
    INSERT INTO consentful_subject (tenant_id, external_id) SELECT id, 'alice' FROM consentful_tenant;
    INSERT INTO consentful_purpose (tenant_id, slug, title, lawful_basis, required_version, on_withdrawal)
    SELECT id, 'support', 'Support', 'consent', 1, 'keep' FROM consentful_tenant;
    INSERT INTO consentful_preference (tenant_id, scope, key, subject_id, purpose_id, value, tags,
        metadata, source, actor, provenance, seen_count, created_at, updated_at)
    SELECT s.tenant_id, 'user::alice', 'tone', s.id, p.id, '"warm"', '{}', '{}', 'user_confirmed',
        'alice', '{"origin": {}}', 1, now(), now()
    FROM consentful_subject s JOIN consentful_purpose p ON p.tenant_id = s.tenant_id
"""


@dataclass
class Server:
    """One server, and how to reach it."""

    directory: Path
    host: Path

    def connect(self, login: str, database: str = "consentful") -> psycopg.Connection[Any]:
        return psycopg.connect(
            host=str(self.host), port=PORT, user=login, dbname=database, autocommit=True
        )

    def command(self, *arguments: str) -> str:
        def url(login: str) -> str:
            return f"postgresql://{login}@/consentful?host={self.host}&port={PORT}"

        ran = subprocess.run(
            [sys.executable, "manage.py", *arguments], cwd=ROOT, capture_output=True, text=True,
            check=False,
            env=os.environ | {
                "DATA_DIR": str(self.directory), "DATABASE_URL": url("consentful"),
                "DATABASE_OWNER_URL": url("consentful_owner"), "DJANGO_SETTINGS_MODULE": "config.settings",
            },
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def read(self) -> str:
        """What a gated read answers, as the service asks for it."""
        with self.connect("consentful") as session, session.transaction():
            row = session.execute(
                "SELECT outcome FROM consentful_preference_get("
                "(SELECT id FROM consentful_tenant), 'user::alice', 'user', 'alice', 'tone', NULL)"
            ).fetchone()
        assert row is not None
        return str(row[0])


@pytest.fixture
def primary(tmp_path: Path) -> Iterator[Server]:
    server = EmbeddedServer(tmp_path / "primary")
    (tmp_path / "primary").mkdir()
    host = server.acquire()
    try:
        prepare_logins_and_database(host)
        made = Server(tmp_path / "primary", host)
        made.command("migrate", "--verbosity", "0")
        made.command("create_tenant", "acme")
        with made.connect("consentful_owner") as owner:
            owner.execute(STORED)
            owner.execute(CONSENT, ["given"])
        made.command("seal_audit")
        yield made
    finally:
        server.release()


@pytest.fixture
def replica(primary: Server, tmp_path: Path) -> Iterator[Server]:
    place = tmp_path / "replica"
    place.mkdir()
    standby = EmbeddedServer(place)
    # Beside the final place, where the server's account may write.
    standby._give_to_server(place)
    copied = subprocess.run(
        standby._as_server(
            str(_binaries() / "pg_basebackup"), "--pgdata", str(standby.cluster),
            "--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync",
            "--dbname", make_conninfo(host=str(primary.host), port=PORT, user=SUPERUSER),
        ),
        cwd="/", env=standby._environment(standby.cluster), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert copied.returncode == 0, copied.stderr
    os.chown(place, os.geteuid(), os.getegid())
    # The primary's socket lies in its cluster, and what keeps others from it was copied.
    (standby.cluster / f"{SOCKET}.lock").unlink(missing_ok=True)
    host = standby.acquire()
    try:
        yield Server(place, host)
    finally:
        standby.release()


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_replica_serves_the_trail_and_proves_it_and_is_late_for_the_gate(
    primary: Server, replica: Server
) -> None:
    wait_for(lambda: replica.read() == "found")

    # What is history is as true there: the trail, its proof, an export.
    replica.command("verify_audit")
    told = replica.command(
        "shell", "--no-imports", "-c",
        "from audit.actors import SYSTEM; from tenants.proof import export_trail;"
        " from tenants.models import Tenant; tenant = Tenant.objects.get();"
        " print(''.join(export_trail(tenant.pk, tenant.slug, after=0, actor=SYSTEM)))",
    )  # fmt: skip
    assert json.loads(told)["events"]
    assert "preference.created" in told

    # What is allowed now is not. However short the lag is, it is never nothing.
    with replica.connect(SUPERUSER) as superuser:
        superuser.execute("SELECT pg_wal_replay_pause()")
        wait_for(
            lambda: (
                superuser.execute("SELECT pg_get_wal_replay_pause_state()").fetchone()
                == ("paused",)
            )
        )
        with primary.connect("consentful_owner") as owner:
            owner.execute(CONSENT, ["withdrawn"])
        assert primary.read() == "consent_required"
        assert replica.read() == "found"  # after the withdrawal had been answered
        superuser.execute("SELECT pg_wal_replay_resume()")
    wait_for(lambda: replica.read() == "consent_required")

    # And a refusal could leave no event.
    with (
        replica.connect("consentful") as session,
        pytest.raises(psycopg.errors.ReadOnlySqlTransaction),
    ):
        session.execute(
            "SELECT consentful_record_event(id, '{}', 'access.denied', 'denied')"
            " FROM consentful_tenant"
        )
