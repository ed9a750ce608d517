"""The chain: the same text in both languages, and no event before the one it follows."""

from typing import Any

import psycopg
import pytest
from django.db import connection

from audit.models import Event, Seal
from audit.sealing import GENESIS, actor_digest, chain_hash, content, target_digest
from preferences.models import Preference
from tenants.units import unit_of_work
from tests.audit.conftest import ACTOR, World, create_preference, opened


def test_python_and_sql_seal_the_same_text(world: World) -> None:
    with unit_of_work(tenant_id=world.id, actor=ACTOR), connection.cursor() as cursor:
        cursor.execute(
            "SELECT e.id, consentful_event_content(e) FROM consentful_audit_event e"
            " WHERE tenant_id = %s",
            [world.id],
        )
        texts = dict(cursor.fetchall())
        events = list(Event.objects.filter(tenant_id=world.id))
    assert len(events) >= 6
    assert {event.pk: content(event) for event in events} == texts


def test_digests_cover_readable_columns_whatever_characters_they_hold(world: World) -> None:
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        for event in Event.objects.filter(tenant_id=world.id):
            assert target_digest(event) == event.target_digest
            assert actor_digest(event) == event.actor_digest


def test_links_follow_each_other_without_gaps(world: World) -> None:
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        links = list(
            Seal.objects.filter(tenant_id=world.id).select_related("event").order_by("sequence")
        )
    assert [link.sequence for link in links] == list(range(1, len(links) + 1))
    previous = GENESIS
    for link in links:
        assert link.previous == previous
        previous = chain_hash(link.sequence, previous, content(link.event))
        assert link.hash == previous


def test_sealing_again_adds_nothing(world: World) -> None:
    assert world.seal() == 0


def test_events_of_a_running_transaction_wait_and_so_does_what_follows_them(world: World) -> None:
    with opened(world) as second:
        second.execute(
            "UPDATE consentful_preference SET seen_count = 2 WHERE id = %s", [world.preference.pk]
        )
        with unit_of_work(tenant_id=world.id, actor=ACTOR):
            create_preference(world.tenant, "later")
        assert world.seal_once() == 0
        second.commit()
    assert world.seal() == 2


def test_events_of_one_record_are_sealed_in_their_order(world: World) -> None:
    """
    A younger transaction writes the record first and commits; the older one writes it next.

    The horizon of transactions alone would let the older one's event pass ahead.
    """
    with opened(world) as older, opened(world) as younger:
        older.execute("SELECT pg_current_xact_id()")
        younger.execute("SELECT pg_current_xact_id()")
        for connection_of, count in ((younger, 2), (older, 3)):
            connection_of.execute(
                "UPDATE consentful_preference SET seen_count = %s WHERE id = %s",
                [count, world.preference.pk],
            )
            world.seal_once()
            connection_of.commit()
            world.seal_once()
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        Preference.objects.filter(pk=world.preference.pk).update(seen_count=4)
    world.seal()
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        sealed = list(
            Seal.objects.filter(tenant_id=world.id, event__record="preference")
            .order_by("sequence")
            .values_list("event__revision_before", "event__revision_after")
        )
    assert len(sealed) == 5
    assert [before for before, _ in sealed] == [None, *(after for _, after in sealed[:-1])]
    assert world.verify() == []


def test_no_second_link_follows_a_link(
    world: World, owner_connection: psycopg.Connection[Any]
) -> None:
    """A fork: whoever may insert links can neither take a place again nor start beside it."""
    statement = (
        "INSERT INTO consentful_audit_seal (event_id, tenant_id, sequence, previous, hash, at)"
        " SELECT -event_id, tenant_id, %s, previous, repeat('f', 64), at FROM consentful_audit_seal"
        " WHERE tenant_id = %s AND sequence = 3"
    )
    for place in (3, 4, 7):
        with pytest.raises(psycopg.errors.UniqueViolation):
            owner_connection.execute(statement, [place, world.id])
    assert world.verify() == []


def test_a_backlog_is_sealed_batch_by_batch_and_nothing_is_passed_by(world: World) -> None:
    """A full batch ends among events that wait; an older transaction commits in between."""
    with opened(world) as older:
        older.execute(
            "UPDATE consentful_preference SET seen_count = 2 WHERE id = %s", [world.preference.pk]
        )
        with unit_of_work(tenant_id=world.id, actor=ACTOR):
            for key in "abcdef":
                create_preference(world.tenant, key)
        older.commit()
    world.settle()
    sealed = []
    with connection.cursor() as cursor:
        while not sealed or sealed[-1]:
            if len(sealed) < 3:
                with unit_of_work(tenant_id=world.id, actor=ACTOR):
                    create_preference(world.tenant, f"meanwhile {len(sealed)}")
            world.settle()
            cursor.execute("SELECT consentful_seal(%s, 2)", [world.id])
            sealed.append(cursor.fetchone()[0])
    assert sealed == [2, 2, 2, 2, 2, 0]
    with unit_of_work(tenant_id=world.id, actor=ACTOR):
        assert not Event.objects.filter(tenant_id=world.id, seal=None).exists()
    assert world.verify() == []
