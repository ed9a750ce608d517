"""What changes through the admin leave in the trail: one event per row, or nothing at all."""

import pytest
from django.contrib.admin.models import LogEntry
from django.db import DatabaseError, connection

from audit.actors import SYSTEM
from preferences.models import Preference
from tenants.units import unit_of_work
from tests.admin.conftest import url
from tests.admin.records import WHY, fields_of, page, row_of
from tests.factories import events_of, make_persona
from tests.http.client import API


def test_bulk_deletion_is_audited_row_by_row_and_bounded(tenant, operator, alice):
    puts = [
        {"op": "put", "scope": "user::alice", "key": f"k{number}", "value": number}
        for number in range(5)
    ]
    assert alice.batch(*puts).status == 200
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        keys = list(Preference.objects.filter(tenant=tenant).values_list("pk", flat=True))
    listed = url(Preference, "changelist")
    body = {"action": "delete_selected", "_selected_action": keys}
    asked = operator.post(listed, body)
    assert "k3" in asked.text
    assert "Say why" in operator.post(listed, {**body, "post": "yes"}, follow=True).text
    across = {**body, "post": "yes", "reason": WHY, "select_across": "1"}
    assert "delete_preferences TENANT SCOPE" in operator.post(listed, across, follow=True).text
    assert not events_of(tenant, "preference.deleted")
    done = operator.post(listed, {**body, "post": "yes", "reason": WHY}, follow=True)
    assert "Deleted: 5." in done.text
    events = events_of(tenant, "preference.deleted")
    assert sorted(event.record_id for event in events) == sorted(keys)
    assert {(event.actor, event.reason) for event in events} == {(operator.user.username, WHY)}


def test_more_than_a_request_deletes_becomes_a_command(tenant, operator, capsys):
    from django.core.management import call_command

    with connection.cursor() as cursor, unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        cursor.execute(
            "INSERT INTO consentful_preference (tenant_id, scope, key, value, tags, metadata,"
            " source, actor, provenance, seen_count, created_at, updated_at)"
            " SELECT %s, 'project::atlas', 'k' || n, '1', '{}', '{}', 'system', 'system',"
            ' \'{"detail":null,"origin":{},"confidence":null}\', 1, now(), now()'
            " FROM generate_series(1, 201) n RETURNING id",
            [tenant.pk],
        )
        keys = [key for (key,) in cursor.fetchall()]
    body = {"action": "delete_selected", "_selected_action": keys, "post": "yes"}
    refused = operator.post(url(Preference, "changelist"), body, follow=True)
    assert "at most 200 rows" in refused.text
    assert not events_of(tenant, "preference.deleted")
    arguments = [tenant.slug, "project::atlas", "--key-prefix", "k1"]
    call_command("delete_preferences", *arguments, "--reason", WHY)
    assert capsys.readouterr().out.strip() == "111"
    events = events_of(tenant, "preference.deleted")
    assert {(event.actor, event.reason) for event in events} == {("system", WHY)}
    assert len(events) == 111


@pytest.mark.parametrize("step", ["after the change", "in the trail"])
def test_C055_a_failed_action_leaves_neither_change_nor_event(
    tenant, operator, staff, as_owner, monkeypatch, step
):
    staff.write("repo::acme/checkout", "k", 1)
    row = row_of(tenant, "repo::acme/checkout", "k")
    form = fields_of(operator.get(page(row)))
    before = len(events_of(tenant))
    body = {**form, "value": "2"}
    if step == "in the trail":
        as_owner(
            f"CREATE FUNCTION refuse_{tenant.pk}() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$;"
            f"CREATE TRIGGER refuse BEFORE INSERT ON consentful_audit_event FOR EACH ROW"
            f" WHEN (NEW.tenant_id = {tenant.pk}) EXECUTE FUNCTION refuse_{tenant.pk}()"
        )
        try:
            answer = operator.post(page(row), body)
        finally:
            as_owner("DROP TRIGGER refuse ON consentful_audit_event")
        assert answer.status_code == 503
        assert "Nothing was saved" in answer.text
    else:

        def fail(*args, **more):
            raise DatabaseError("the log is full")

        monkeypatch.setattr(LogEntry.objects, "create", fail)
        assert operator.post(page(row), body).status_code == 503
    assert row_of(tenant, "repo::acme/checkout", "k").revision == row.revision
    assert len(events_of(tenant)) == before


def test_C051_the_actor_is_always_the_one_who_acts(tenant, operator, frozen):
    agent = API(tenant.slug, make_persona(tenant, "bound").token)
    body = {"scope": "project::atlas", "key": "a", "value": "1"}
    assert operator.post(url(Preference, "add"), body).status_code == 302
    assert agent.write("me", "b", 1, ttl_seconds=60).status == 201
    assert API(tenant.slug).write("me", "c", 1).status == 401
    frozen.move(61)
    from django.core.management import call_command

    call_command("purge_expired")
    found = [
        (event.action, event.actor, event.on_behalf_of)
        for event in events_of(tenant)
        if event.record == "preference"
    ]
    assert found == [
        ("preference.created", operator.user.username, None),
        ("preference.created", "bound", "alice"),
        ("preference.expired", "system", None),
    ]
