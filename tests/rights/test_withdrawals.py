"""Withdrawal that acts: `on_withdrawal: "erase"` purges what the purpose held, and nothing else."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.core.management import call_command

from audit.actors import SYSTEM
from preferences.withdrawals import purge_withdrawn
from tenants.times import format_time
from tests.http.client import race
from tests.http.conftest import Clock, World


def purge(world: World, most: int = 1000) -> int:
    return purge_withdrawn(tenant_id=world.tenant.pk, actor=SYSTEM, most=most)


def rows_of(world: World, superuser: psycopg.Connection[Any]) -> list[str]:
    found = superuser.execute(
        "SELECT key FROM consentful_preference WHERE tenant_id = %s ORDER BY key", [world.tenant.pk]
    )
    return [key for (key,) in found.fetchall()]


@pytest.fixture
def filled(world: World) -> World:
    for name in ("support", "trial"):
        world.alice.give("me", name)
        world.bob.give("me", name)
    for key in ("tone", "trial", "limited"):
        assert world.alice.write("me", key, 1).status == 201
    assert world.bob.write("me", "trial", 1).status == 201
    return world


def test_it_purges_what_that_purpose_held_of_that_person(
    filled: World, superuser: psycopg.Connection[Any]
) -> None:
    filled.alice.withdraw("me", "trial")
    filled.alice.withdraw("me", "support")  # which keeps
    assert rows_of(filled, superuser) == ["limited", "tone", "trial", "trial"]
    assert purge(filled) == 1
    assert rows_of(filled, superuser) == ["limited", "tone", "trial"]
    assert filled.bob.read("me", "trial").status == 200
    assert purge(filled) == 0
    assert [one.key for one in filled.events("preference.deleted")] == ["trial"]
    assert len(filled.events("withdrawal.created")) == len(filled.events("withdrawal.purged")) == 1
    # Kept and closed, as it was.
    assert filled.alice.read("me", "tone").outcome == (403, "consent_required")
    filled.alice.give("me", "support")
    assert filled.alice.read("me", "tone").status == 200


def test_consent_that_came_back_keeps_what_was_written_under_it(
    filled: World, superuser: psycopg.Connection[Any]
) -> None:
    """Only what was written before the withdrawal goes, whenever the job runs."""
    filled.alice.withdraw("me", "trial")
    filled.alice.give("me", "trial")
    assert filled.alice.read("me", "trial").status == 200  # not purged yet
    assert purge(filled) == 1
    assert filled.alice.read("me", "trial").outcome == (404, "not_found")

    filled.alice.write("me", "trial", 2)
    filled.alice.withdraw("me", "trial")
    filled.alice.give("me", "trial")
    filled.alice.write("me", "trial", 3, query={"mode": "upsert"})
    assert purge(filled) == 0
    assert filled.alice.read("me", "trial").json["value"] == 3


def test_it_goes_on_where_it_was_interrupted(filled: World) -> None:
    filled.alice.withdraw("me", "trial")
    filled.bob.withdraw("me", "trial")
    assert purge(filled, most=1) == 1
    assert filled.events("withdrawal.purged") == []
    assert purge(filled, most=1) == 1
    assert purge(filled, most=1) == 0
    assert len(filled.events("withdrawal.purged")) == 2


def test_two_purges_at_once_share_the_work(filled: World) -> None:
    filled.alice.withdraw("me", "trial")
    assert sorted(race([lambda: purge(filled)] * 4)) == [0, 0, 0, 1]
    purge(filled)
    assert len(filled.events("withdrawal.purged")) == 1


def test_what_a_hold_keeps_waits_for_its_end(filled: World, frozen: Clock) -> None:
    frozen.move(60)
    path = "subjects/alice/holds/trial"
    assert filled.operator.put(path, {"reason": "case 12"}).status == 200
    filled.alice.withdraw("me", "trial")
    frozen.move(1)
    assert purge(filled) == 0
    assert filled.events("withdrawal.purged") == []
    filled.operator.delete(path, query={"reason": "case closed"})
    assert purge(filled) == 1
    assert len(filled.events("withdrawal.purged")) == 1


def test_an_expired_consent_that_is_withdrawn_purges_too(filled: World, frozen: Clock) -> None:
    frozen.move(60)
    until = format_time(frozen.now + timedelta(seconds=60))
    filled.alice.give("me", "trial", expires_at=until)
    frozen.move(61)
    assert filled.alice.status_of("me", "trial") == "expired"
    assert purge(filled) == 0
    assert filled.alice.decide("me", "trial", "refused").json["status"] == "withdrawn"
    assert purge(filled) == 1


def test_housekeeping_does_it(filled: World, superuser: psycopg.Connection[Any]) -> None:
    filled.alice.withdraw("me", "trial")
    call_command("housekeep")
    assert rows_of(filled, superuser) == ["limited", "tone", "trial"]


def test_refused_and_objected_purge_nothing(filled: World) -> None:
    filled.alice.put("subjects/me/objections/news", {})
    filled.alice.decide("me", "letters", "refused")
    assert filled.events("withdrawal.created") == []
