"""Complete by construction: every table is captured, and the runtime login cannot touch the trail."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db import DatabaseError, connection, transaction
from django.db.models import F, ProtectedError
from django.utils.timezone import now

from audit.models import Captured, Event, Seal
from consent.models import ConsentEntry, ConsentState
from preferences.models import Preference
from tenants.units import unit_of_work
from tests.audit.conftest import ACTOR, World, create_preference

#: Tables of ours that leave no events, each with the reason.
EXEMPT = {
    "Event",  # the trail itself
    "Seal",
    "Head",
    "Cut",  # itself an event, trail.cut
    "ConsentState",  # a copy of the ledger, compared with it by verification
    "Reading",  # a trail itself, of what changes nothing
    "RecordWords",  # derived from the record by the database
    "IdempotencyRecord",  # a copy of what the trail already says
}
#: What the database says to those who may not.
REFUSED = r"permission denied|must be owner|refused|written by|append-only"
OURS = {"audit", "tenants", "consent", "preferences", "privacy"}


def own_models() -> list[type]:
    return [model for model in apps.get_models() if model.__module__.split(".")[0] in OURS]


def test_every_table_is_captured_or_exempt_by_name() -> None:
    loose = {model.__name__ for model in own_models() if not issubclass(model, Captured)}
    assert loose == EXEMPT


def test_every_captured_table_has_its_trigger_under_its_noun() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgrelid::regclass::text, split_part(encode(tgargs, 'escape'), '\\000', 1)"
            " FROM pg_trigger WHERE tgname = 'consentful_capture' AND tgenabled = 'O'"
        )
        attached = dict(cursor.fetchall())
    captured = {
        model._meta.db_table: model.noun for model in own_models() if issubclass(model, Captured)
    }
    assert attached == captured


def test_nouns_are_unique() -> None:
    nouns = [model.noun for model in own_models() if issubclass(model, Captured)]
    assert len(nouns) == len(set(nouns))


def test_C049_bulk_update_delete_and_plain_sql_leave_events(world: World) -> None:
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        before = Event.objects.filter(tenant_id=world.id).count()
        create_preference(world.tenant, "one")
        Preference.objects.filter(tenant_id=world.id, key="one").update(seen_count=9)
        with connection.cursor() as cursor:
            cursor.execute(
                "DELETE FROM consentful_preference WHERE tenant_id = %s AND key = 'one'", [world.id]
            )
        events = list(Event.objects.filter(tenant_id=world.id).order_by("pk")[before:])
    assert [event.action for event in events] == [
        "preference.created", "preference.replaced", "preference.deleted",
    ]  # fmt: skip
    assert events[1].changed == ["seen_count"]
    assert events[1].revision_before == events[0].revision_after
    assert events[2].revision_after is None
    assert {event.actor for event in events} == {"ann"}


def test_an_update_that_changes_nothing_leaves_no_event(world: World) -> None:
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        before = Event.objects.filter(tenant_id=world.id).count()
        Preference.objects.filter(pk=world.preference.pk).update(tags=["a", "b"])
        assert Event.objects.filter(tenant_id=world.id).count() == before


def test_events_hold_no_value(world: World) -> None:
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        Preference.objects.filter(pk=world.preference.pk).update(value='"marker-of-a-value"')
        rows = list(Event.objects.filter(tenant_id=world.id).values())
    assert "marker-of-a-value" not in json.dumps(rows, default=str)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE consentful_audit_event SET action = 'x' WHERE tenant_id = {tenant}",
        "DELETE FROM consentful_audit_event WHERE tenant_id = {tenant}",
        "TRUNCATE consentful_audit_event",
        "INSERT INTO consentful_audit_event SELECT * FROM consentful_audit_event LIMIT 1",
        "UPDATE consentful_audit_seal SET hash = '' WHERE tenant_id = {tenant}",
        "DELETE FROM consentful_audit_seal WHERE tenant_id = {tenant}",
        "UPDATE consentful_audit_head SET sequence = 0 WHERE tenant_id = {tenant}",
        "UPDATE consentful_consent_state SET decision = 'given' WHERE tenant_id = {tenant}",
        "UPDATE consentful_consent_entry SET decision = 'given' WHERE tenant_id = {tenant}",
        "TRUNCATE consentful_preference",
        "ALTER TABLE consentful_preference DISABLE TRIGGER ALL",
        "ALTER TABLE consentful_audit_event DISABLE TRIGGER consentful_insert_only",
        "DROP TRIGGER consentful_capture ON consentful_preference",
        "SET session_replication_role = replica",
        "SELECT consentful_append_event({tenant}, 'preference.created', 'done', NULL, NULL, NULL,"
        " NULL, NULL, NULL, NULL, '{{}}', NULL, NULL, NULL, NULL)",
        "SELECT consentful_attach('consentful_preference', 'x')",
        "SELECT consentful_record_event({tenant}, '{{}}', 'preference.created', 'done')",
    ],
)
def test_the_runtime_login_cannot_touch_the_trail(world: World, statement: str) -> None:
    with (
        pytest.raises(DatabaseError, match=r"permission denied|must be owner|refused|written by"),
        unit_of_work(tenant_id=world.id, actor=ACTOR),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement.format(tenant=world.id), None)
    assert world.verify() == []


@pytest.mark.parametrize("table", ["consentful_audit_event", "consentful_audit_seal"])
@pytest.mark.parametrize("verb", ["UPDATE {} SET tenant_id = 0", "DELETE FROM {}", "TRUNCATE {}"])
def test_the_owner_too_is_refused(world: World, as_owner, table: str, verb: str) -> None:
    with pytest.raises(DatabaseError, match="is refused"):
        as_owner(verb.format(table))


def test_a_change_without_context_names_the_login(world: World, superuser) -> None:
    superuser.execute(
        "UPDATE consentful_preference SET seen_count = 7 WHERE id = %s", [world.preference.pk]
    )
    world.seal()
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        event = Event.objects.filter(tenant_id=world.id).latest("pk")
    assert event.actor == "role:postgres"
    assert world.verify() == []


def test_C049_every_way_of_the_orm_leaves_events(world: World) -> None:
    """Three rows, changed by an update, an F() expression, bulk_update and save: value, deadline, scope."""
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        for key in ("a", "b", "c"):
            create_preference(world.tenant, key)
        rows = Preference.objects.filter(tenant_id=world.id, key__in=["a", "b", "c"])
        seen = [set(rows.values_list("revision", flat=True))]

        def changed(columns: list[str]) -> None:
            events = Event.objects.filter(tenant_id=world.id, action="preference.replaced")
            latest = list(events.order_by("-pk")[:3])
            assert [event.changed for event in latest] == [columns] * 3
            revisions = set(rows.values_list("revision", flat=True))
            assert {event.revision_after for event in latest} == revisions
            assert {event.revision_before for event in latest} == seen[-1]
            assert not any(revisions & before for before in seen)
            seen.append(revisions)

        rows.update(value='"detailed"')
        changed(["value"])
        rows.update(seen_count=F("seen_count") + 1)
        changed(["seen_count"])
        several = list(rows)
        for row in several:
            row.expires_at = now() + timedelta(days=1)
        Preference.objects.bulk_update(several, ["expires_at"])
        changed(["expires_at"])
        for row in rows:
            row.scope = "project::moved"
            row.save()
        changed(["scope"])
    assert len(set.union(*seen)) == 15
    world.settle()
    assert world.verify() == []


@pytest.mark.parametrize("model", [Event, Seal, ConsentEntry, ConsentState])
def test_C053_the_orm_cannot_touch_what_is_append_only(world: World, model: Any) -> None:
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        rows = model.objects.filter(tenant_id=world.id)
        before = list(rows.order_by("pk").values())
        assert before
        column = next(field.name for field in model._meta.concrete_fields if not field.primary_key)
        for change in (
            lambda: rows.delete(),
            lambda: rows._raw_delete(connection.alias),
            lambda: rows.first().delete(),
            lambda: rows.update(**{column: F(column)}),
            lambda: rows.first().save(force_update=True),
            lambda: model.objects.bulk_update(list(rows), [column]),
        ):
            with pytest.raises(DatabaseError, match=REFUSED), transaction.atomic():
                change()
        assert list(rows.order_by("pk").values()) == before


def test_C053_nothing_goes_with_a_tenant_or_a_person(world: World) -> None:
    """No cascade reaches the trail or the ledger: whoever would delete what they name is refused."""
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        before = Event.objects.filter(tenant_id=world.id).count()
        for row in (world.tenant, world.subject, world.purpose):
            with pytest.raises((ProtectedError, DatabaseError)), transaction.atomic():
                row.delete()
            with pytest.raises(DatabaseError), transaction.atomic():
                type(row).objects.filter(pk=row.pk)._raw_delete(connection.alias)
                with connection.cursor() as cursor:
                    cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        assert Event.objects.filter(tenant_id=world.id).count() == before
        assert ConsentEntry.objects.filter(tenant_id=world.id).exists()
