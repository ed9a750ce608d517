"""What a language model was shown: events that are no version of a record, and break no proof."""

import io
import json
from datetime import timedelta

import pytest
from django.db import connection

from audit.actors import SYSTEM
from audit.exports import verify_export
from audit.findings import Tally
from audit.models import Event
from audit.services import Injection, record_injections
from audit.signing import trusted_keys
from preferences.models import Preference
from tenants.proof import export_trail, trim_trail
from tenants.units import unit_of_work
from tests.audit.conftest import ACTOR, World
from tests.audit.test_checkpoints import key  # noqa: F401  a fixture


def show(world: World) -> Preference:
    """Record that the preference, as it stands, was shown."""
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        row = Preference.objects.get(pk=world.preference.pk)
        record_injections(
            [
                Injection(
                    record_id=row.pk, revision=row.revision, subject=world.subject.external_id,
                    scope=row.scope, key=row.key, purpose="support",
                )
            ],
            tenant_id=world.id, actor=ACTOR, using=connection.alias,
        )  # fmt: skip
    return row


def shown(world: World) -> list[Event]:
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        return list(Event.objects.filter(tenant_id=world.id, action="context.injected"))


def test_it_names_the_version_and_the_person(world: World) -> None:
    row = show(world)
    (event,) = shown(world)
    assert (event.record, event.record_id, event.revision_after) == (None, row.pk, row.revision)
    assert (event.subject_id, event.subject) == (world.subject.pk, world.subject.external_id)
    assert (event.actor, event.reason, event.row_digest) == ("ann", "because", None)


def test_versions_go_on_and_end_around_it(world: World) -> None:
    for value in ('"one"', '"two"'):
        show(world)
        with unit_of_work(tenant_id=world.id, actor=ACTOR):
            Preference.objects.filter(pk=world.preference.pk).update(value=value)
    show(world)
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        Preference.objects.filter(pk=world.preference.pk).delete()
    world.seal()
    assert world.verify() == []


@pytest.mark.usefixtures("key")
def test_an_exported_document_verifies_with_it(world: World) -> None:
    show(world)
    world.settle()
    pieces = export_trail(world.id, world.tenant.slug, after=0, actor=SYSTEM)
    document = "".join(pieces)
    assert document.count('"context.injected"') == 1
    assert verify_export(io.StringIO(document), trusted_keys(), tally=Tally()) == []


@pytest.mark.usefixtures("key")
def test_it_keeps_nothing_alive_when_the_trail_is_cut(world: World) -> None:
    show(world)
    world.settle()
    assert trim_trail(world.id, world.tenant.slug, keep=timedelta(0), actor=SYSTEM)
    assert shown(world) == []
    world.seal()
    assert world.verify() == []


def test_the_login_of_requests_claims_no_change_by_it(world: World) -> None:
    """The function writes this one action: what it is given cannot name another."""
    with unit_of_work(tenant_id=world.id, actor=ACTOR), connection.cursor() as cursor:
        cursor.execute(
            "SELECT consentful_record_injections(%s, %s, %s)",
            [
                world.id,
                ACTOR.as_context(),
                json.dumps([{"record_id": 1, "action": "role.created"}]),
            ],
        )
    assert [event.record_id for event in shown(world)] == [1]
