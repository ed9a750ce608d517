"""C106: the fence is a statement of its own, before anything that decides; upgrades are refused."""

from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from audit.actors import SYSTEM
from audit.models import Event
from tenants.exceptions import PermissionDenied
from tenants.models import Tenant
from tenants.units import current_unit, unit_of_work


@pytest.fixture
def tenant() -> Tenant:
    return Tenant.objects.create(slug=f"u-{uuid4().hex[:12]}")


def test_the_first_statement_announces_and_fences(tenant: Tenant) -> None:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM, subjects=["alice"], exclusive=True):
            Event.objects.count()
    statements = [one["sql"] for one in captured if "SAVEPOINT" not in one["sql"]]
    assert statements[0] == "BEGIN"
    assert statements[1].startswith("SELECT consentful_enter(")
    assert current_unit() is None


def test_it_is_reentrant_for_the_same_tenant_alone(tenant: Tenant) -> None:
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
            pass
        with pytest.raises(RuntimeError, match="another tenant"):
            with unit_of_work(tenant_id=tenant.pk + 1, actor=SYSTEM):
                pass


def test_fences_are_neither_upgraded_nor_added(tenant: Tenant) -> None:
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM, subjects=["alice"]):
        with (
            pytest.raises(RuntimeError, match="upgrades deadlock"),
            unit_of_work(tenant_id=tenant.pk, actor=SYSTEM, subjects=["alice"], exclusive=True),
        ):
            pass
        with pytest.raises(RuntimeError, match="outermost"):
            with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM, subjects=["bob"]):
                pass


def test_a_refusal_rolls_back_and_leaves_one_event(tenant: Tenant) -> None:
    with pytest.raises(PermissionDenied), unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        Tenant.objects.filter(pk=tenant.pk).update(name="changed")
        raise PermissionDenied(about={"scope": "global", "key": "k"})
    tenant.refresh_from_db()
    assert tenant.name == ""
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        actions = list(Event.objects.order_by("id").values_list("action", "outcome", "key"))
    assert actions == [("tenant.created", "done", None), ("access.denied", "denied", "k")]


def test_the_announcement_ends_with_the_unit_inside_a_hosts_transaction(tenant: Tenant) -> None:
    with transaction.atomic():
        with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
            pass
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('consentful.tenant', true)")
            assert cursor.fetchone() == ("",)


def test_another_isolation_level_is_refused(tenant: Tenant) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        with pytest.raises(Exception, match="READ COMMITTED"):
            with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
                pass
        transaction.set_rollback(True)
