"""One look at one tenant: the same rows throughout, another's never, and nothing can be written."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import DatabaseError, connection, connections, transaction

from audit.actors import SYSTEM
from audit.models import Event
from tenants.models import Subject
from tenants.roles import Role
from tenants.snapshots import snapshot
from tenants.units import unit_of_work
from tests.factories import Persona, make_tenant
from tests.http.client import API


@pytest.fixture
def alice() -> Persona:
    return Persona(make_tenant(), "alice", Role.MEMBER)


def write(persona: Persona, key: str) -> None:
    """Write beside the test's own connection."""

    def run() -> int:
        try:
            return API(persona.tenant.slug, persona.token).write("me", key).status
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(run).result() == 201


def count(tenant_id: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM consentful_preference WHERE tenant_id = %s", [tenant_id]
        )
        found: int = cursor.fetchone()[0]
        return found


def test_every_statement_sees_the_same_moment(alice: Persona) -> None:
    write(alice, "first")
    with snapshot(tenant_id=alice.tenant.pk):
        assert count(alice.tenant.pk) == 1
        write(alice, "second")
        assert count(alice.tenant.pk) == 1
    with unit_of_work(tenant_id=alice.tenant.pk, actor=SYSTEM):
        assert count(alice.tenant.pk) == 2


def test_nothing_of_another_tenant_is_seen(alice: Persona) -> None:
    write(alice, "first")
    with snapshot(tenant_id=make_tenant().pk):
        assert count(alice.tenant.pk) == 0
    with pytest.raises(DatabaseError, match="no tenant was announced"):
        Event.objects.first()


def test_nothing_can_be_written(alice: Persona) -> None:
    with pytest.raises(DatabaseError, match="read-only transaction"):
        with snapshot(tenant_id=alice.tenant.pk):
            Subject.objects.create(tenant=alice.tenant, external_id="mallory")


def test_a_unit_of_work_is_refused_inside(alice: Persona) -> None:
    with pytest.raises(DatabaseError, match="READ COMMITTED"):
        with snapshot(tenant_id=alice.tenant.pk):
            with unit_of_work(tenant_id=alice.tenant.pk, actor=SYSTEM):
                pass


def test_an_open_transaction_is_left_first(alice: Persona) -> None:
    with transaction.atomic():
        with pytest.raises(RuntimeError, match="leave the open one"):
            with snapshot(tenant_id=alice.tenant.pk):
                pass
