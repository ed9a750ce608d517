"""A small tenant with one row of everything that the proof speaks of, and an attacker."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils.timezone import now

from audit.actors import Actor
from audit.findings import Finding, Tally
from audit.sealing import seal
from audit.verification import verify
from consent.models import ConsentEntry, Purpose
from preferences.models import Preference
from tenants.models import Subject, Tenant
from tenants.services import create_tenant
from tenants.units import unit_of_work

ACTOR = Actor(label="ann", id="1", request_id="req-1", reason="because")


@dataclass
class World:
    """One tenant's rows. Two events of the preference, so that it has an older version."""

    tenant: Tenant
    subject: Subject
    purpose: Purpose
    preference: Preference

    @property
    def id(self) -> int:
        return self.tenant.pk

    def events(self, noun: str = "preference") -> list[int]:
        """Ids of the events about one kind of record, oldest first."""
        with connection.cursor() as cursor, unit_of_work(tenant_id=self.id, actor=ACTOR):
            cursor.execute(
                "SELECT id FROM consentful_audit_event WHERE tenant_id = %s AND record = %s"
                " ORDER BY id",
                [self.id, noun],
            )
            return [row[0] for row in cursor.fetchall()]

    def seal(self) -> int:
        """Seal everything, once nothing older runs: autovacuum too has transactions."""
        self.settle()
        return self.seal_once()

    def seal_once(self) -> int:
        return seal(self.id, using="default")

    def settle(self) -> None:
        deadline = time.monotonic() + 20
        is_settled = False
        while not is_settled:
            assert time.monotonic() < deadline, "an older transaction does not end"
            with connection.cursor() as cursor, unit_of_work(tenant_id=self.id, actor=ACTOR):
                cursor.execute(
                    "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint > max(transaction)"
                    " FROM consentful_audit_event WHERE tenant_id = %s",
                    [self.id],
                )
                is_settled = cursor.fetchone()[0]

    def verify(self, tally: Tally | None = None) -> list[Finding]:
        with unit_of_work(tenant_id=self.id, actor=ACTOR):
            return verify(self.id, using="default", tally=tally)

    def codes(self) -> set[str]:
        return {finding.code for finding in self.verify()}


def create_preference(tenant: Tenant, key: str, scope: str = "global", **more: Any) -> Preference:
    moment = now()
    return Preference.objects.create(
        tenant=tenant, scope=scope, key=key, value='"brief"', source="operator", actor="ann",
        provenance='{"detail": null}', created_at=moment, updated_at=moment, **more,
    )  # fmt: skip


@pytest.fixture
def world() -> World:
    tenant = create_tenant(slug=f"t{uuid.uuid4().hex[:20]}")
    with unit_of_work(tenant_id=tenant.pk, actor=ACTOR):
        subject = Subject.objects.create(tenant=tenant, external_id='zoë "☂"\t\x7f\\ 😀')
        purpose = Purpose.objects.create(
            tenant=tenant, slug="support", title="Support", lawful_basis="consent"
        )
        preference = create_preference(
            tenant, "style\u2028ü", f"user::{subject.external_id}", subject=subject, purpose=purpose
        )
        Preference.objects.filter(pk=preference.pk).update(value='"detailed"', tags=["a", "b"])
        ConsentEntry.objects.create(
            tenant=tenant, subject=subject, purpose=purpose, decision="given", version=1,
            actor="ann", method="operator",
        )  # fmt: skip
    world = World(tenant, subject, purpose, preference)
    world.seal()
    return world


@pytest.fixture
def attack(superuser: psycopg.Connection[Any]) -> Callable[..., psycopg.Cursor[Any]]:
    """Execute as superuser with every trigger and foreign key asleep."""

    def execute(statement: str, *parameters: Any) -> psycopg.Cursor[Any]:
        superuser.execute("SET session_replication_role = replica")
        try:
            return superuser.execute(statement, parameters)
        finally:
            superuser.execute("SET session_replication_role = origin")

    return execute


@contextmanager
def opened(world: World) -> Iterator[psycopg.Connection[Any]]:
    """A second connection of the runtime login, in a transaction of the tenant's."""
    connection.ensure_connection()
    password = connection.settings_dict["PASSWORD"] or None
    with psycopg.connect(connection.connection.info.dsn, password=password) as second:
        second.execute("SELECT consentful_enter(%s, %s)", [world.id, ACTOR.as_context()])
        yield second
