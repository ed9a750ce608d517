"""Two walls around every tenant table: nothing without a tenant, nothing of another's."""

from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.db import DatabaseError, connection, transaction

from audit.actors import SYSTEM
from tenants.checks import EXEMPT_TABLES, check_isolation, find_bypass
from tenants.models import Tenant
from tenants.units import unit_of_work
from tests.factories import unique

OURS = tuple(
    f"consentful_{name}"
    for name in ("audit", "tenants", "consent", "preferences", "agents", "privacy")
)
TABLES = sorted(
    model._meta.db_table
    for label in OURS
    for model in apps.get_app_config(label).get_models()
    if model._meta.db_table not in EXEMPT_TABLES
)


def rows(table: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} LIMIT 1")
        return list(cursor.fetchall())


@pytest.mark.parametrize("table", TABLES)
def test_no_tenant_announced_is_an_error(table: str) -> None:
    with pytest.raises(DatabaseError, match="no tenant was announced"):
        rows(table)


@pytest.mark.parametrize("table", TABLES)
def test_another_tenant_sees_nothing(table: str, superuser: psycopg.Connection[Any]) -> None:
    stranger = Tenant.objects.create(slug=f"stranger-{table.replace('_', '-')}")
    with unit_of_work(tenant_id=stranger.pk, actor=SYSTEM), connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table} WHERE tenant_id <> %s", [stranger.pk])
        assert cursor.fetchone() == (0,)
    # The control: there are rows of others, which the runtime login was not shown.
    found = superuser.execute(f"SELECT count(*) >= 0 FROM {table}").fetchone()
    assert found == (True,)


@pytest.mark.parametrize("table", TABLES)
def test_no_row_can_be_moved_or_touched_from_outside(table: str) -> None:
    stranger, victim = (
        Tenant.objects.create(slug=f"{name}-{table.replace('_', '-')}")
        for name in ("thief", "victim")
    )
    with unit_of_work(tenant_id=stranger.pk, actor=SYSTEM), connection.cursor() as cursor:
        for statement in (
            f"UPDATE {table} SET tenant_id = {stranger.pk} WHERE tenant_id <> {stranger.pk}",
            f"DELETE FROM {table} WHERE tenant_id <> {stranger.pk}",
        ):
            try:
                with transaction.atomic():
                    cursor.execute(statement)
                    assert cursor.rowcount == 0
            except DatabaseError as refusal:
                assert "permission denied" in str(refusal)  # noqa: PT017  either wall will do
    assert victim.pk


def test_the_login_of_requests_is_below_row_level_security() -> None:
    assert find_bypass("default") == (False, [])
    assert check_isolation(None, ["default"]) == []


def test_the_owner_is_reported_where_it_serves() -> None:
    with connection.as_owner():
        escapes, open_tables = find_bypass("default")
    assert escapes
    assert open_tables == []


def test_tables_outside_the_second_wall_are_the_named_ones(
    superuser: psycopg.Connection[Any],
) -> None:
    found = superuser.execute(
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relname ^@ 'consentful_'"
        " AND NOT relrowsecurity"
    ).fetchall()
    assert {name for (name,) in found} == EXEMPT_TABLES


def test_keys_between_tenant_tables_name_the_tenant(superuser: psycopg.Connection[Any]) -> None:
    """A key of one column ignores row-level security and could point into another tenant."""
    found = superuser.execute(
        """
        SELECT c.conrelid::regclass::text, c.confrelid::regclass::text, a.attname
        FROM pg_constraint c
        JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
        WHERE c.contype = 'f' AND cardinality(c.conkey) = 1
          AND c.conrelid::regclass::text ^@ 'consentful_'
          AND c.confrelid::regclass::text ^@ 'consentful_'
          AND c.confrelid::regclass::text <> 'consentful_tenant'
        """
    ).fetchall()
    for child, parent, column in found:
        composite = superuser.execute(
            "SELECT count(*) FROM pg_constraint c JOIN pg_attribute a"
            " ON a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey)"
            " WHERE c.contype = 'f' AND cardinality(c.conkey) = 2 AND a.attname = %s"
            " AND c.conrelid = %s::regclass AND c.confrelid = %s::regclass",
            [column, child, parent],
        ).fetchone()
        # guardian's rows take their tenant from the purpose, by trigger.
        assert composite == (1,) or child.startswith("consentful_purpose_"), (child, column)


def test_the_wall_stands_whatever_the_search_path() -> None:
    """As where a view is materialised, a foreign server asks, or `pg_dump` reads: without `public`."""
    tenant = Tenant.objects.create(slug=unique("without-public"))
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM), connection.cursor() as cursor:
        cursor.execute("SET LOCAL search_path = pg_catalog, pg_temp")
        cursor.execute("SELECT count(*) FROM public.consentful_preference")
        assert cursor.fetchone() == (0,)
