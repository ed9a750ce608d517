"""Withdrawal that acts: `on_withdrawal: "erase"` purges what the purpose held, and nothing else."""

import json
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest
from django.core.management import call_command

from audit.actors import SYSTEM
from audit.signing import trusted_keys
from privacy.jobs import run_erasures
from privacy.models import Erasure
from privacy.verification import verify_receipt
from privacy.withdrawals import purge_withdrawn
from tenants.times import format_time
from tenants.units import unit_of_work
from tests.http.client import race
from tests.http.conftest import Clock, World
from tests.trails import prove


def purge(world: World, most: int | None = None) -> int:
    return purge_withdrawn(tenant_id=world.tenant.pk, most=most)


def erasures_of(world: World) -> list[Any]:
    """What withdrawals asked for, as an owner reads it, oldest first."""
    with unit_of_work(tenant_id=world.tenant.pk, actor=SYSTEM):
        found = Erasure.objects.filter(tenant=world.tenant, method="withdrawal").order_by("pk")
        references = list(found.values_list("reference", flat=True))
    return [world.owner.get(f"erasures/{one}").json for one in references]


def found_with(erasure: Any, name: str) -> Any:
    (found,) = [one for one in erasure["holders"] if one["holder"] == name]
    return found


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
    # As after every erasure, the trail does not tell what it was.
    assert [one.key for one in filled.events("preference.deleted")] == [None]
    assert {one.key for one in filled.events("preference.created")} == {
        "limited",
        "tone",
        "trial",
        None,
    }
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
    filled.alice.write("me", "trial", 3, query={"mode": "upsert"}, headers={"Idempotency-Key": "k"})
    assert purge(filled) == 1
    assert filled.alice.read("me", "trial").json["value"] == 3
    # Nor is anything forgotten that belongs to what stays.
    again = filled.alice.write(
        "me", "trial", 3, query={"mode": "upsert"}, headers={"Idempotency-Key": "k"}
    )
    assert again.headers["Idempotency-Replayed"] == "true"
    assert [one.key for one in filled.events("preference.replaced")] == ["trial"]
    (_, last) = erasures_of(filled)
    assert found_with(last, "preferences")["status"] == "nothing_found"
    prove(filled.tenant)


def test_it_goes_on_where_it_was_interrupted(filled: World) -> None:
    filled.alice.withdraw("me", "trial")
    filled.bob.withdraw("me", "trial")
    assert purge(filled, most=1) == 1
    assert len(filled.events("withdrawal.purged")) == 1
    assert purge(filled, most=1) == 1
    assert purge(filled, most=1) == 0
    assert len(filled.events("withdrawal.purged")) == 2


def test_two_purges_at_once_share_the_work(filled: World) -> None:
    filled.alice.withdraw("me", "trial")
    assert sorted(race([lambda: purge(filled)] * 4)) == [0, 0, 0, 1]
    assert len(filled.events("withdrawal.purged")) == len(erasures_of(filled)) == 1


def test_several_withdrawals_are_one_erasure(filled: World) -> None:
    for _ in range(3):
        filled.alice.withdraw("me", "trial")
        filled.alice.give("me", "trial")
    assert purge(filled) == 1
    assert len(filled.events("withdrawal.purged")) == 3
    assert purge(filled) == 0


def test_somebody_at_work_on_one_person_keeps_no_other_waiting(filled: World) -> None:
    filled.alice.withdraw("me", "trial")
    filled.bob.withdraw("me", "trial")
    held, go_on = Event(), Event()

    def work() -> None:
        with unit_of_work(tenant_id=filled.tenant.pk, actor=SYSTEM, subjects=["alice"]):
            held.set()
            go_on.wait(30)

    def look() -> list[int]:
        held.wait(30)
        try:
            return [purge(filled)]
        finally:
            go_on.set()

    assert race([work, look])[1] == [1]
    assert filled.bob.get("subjects/me/data").json["preferences"] == []
    assert purge(filled) == 1


def test_what_a_hold_keeps_waits_for_its_end(filled: World, frozen: Clock) -> None:
    """The erasure says so, and goes on by itself."""
    frozen.move(60)
    path = "subjects/alice/holds/trial"
    assert filled.operator.put(path, {"reason": "case 12"}).status == 200
    filled.alice.withdraw("me", "trial")
    frozen.move(1)
    assert purge(filled) == 1
    (kept,) = erasures_of(filled)
    assert (kept["status"], found_with(kept, "preferences")["held"]) == ("pending", 1)
    run_erasures()
    assert filled.owner.get("subjects/alice/holds", query={"reason": "case"}).json["results"]
    filled.operator.delete(path, query={"reason": "case closed"})
    run_erasures()
    (done,) = erasures_of(filled)
    assert (done["status"], found_with(done, "preferences")["erased"]) == ("done", 1)
    prove(filled.tenant)


def test_it_is_an_erasure_like_any_other_with_a_receipt(filled: World) -> None:
    filled.alice.withdraw("me", "trial")
    assert purge(filled) == 1
    run_erasures()
    (erasure,) = erasures_of(filled)
    assert (erasure["status"], erasure["method"]) == ("done", "withdrawal")
    assert (erasure["extent"]["everything"], erasure["extent"]["purposes"]) == (False, ["trial"])
    assert erasure["extent"]["written_until"] <= erasure["requested_at"]
    assert found_with(erasure, "preferences")["erased"] == 1
    # The person finds it, and whoever has no business with it does not.
    assert filled.alice.get("subjects/me/data").json["erasures"][0]["id"] == erasure["id"]
    receipt = filled.alice.get(f"erasures/{erasure['id']}/receipt")
    assert receipt.json["payload"]["extent"] == erasure["extent"]
    assert filled.bob.get(f"erasures/{erasure['id']}").outcome == (404, "not_found")
    assert verify_receipt(receipt.json["receipt"], trusted_keys()) == []


def test_the_hosts_own_holders_are_asked_until_they_succeed(
    filled: World, tmp_path: Path, settings: Any, frozen: Clock
) -> None:
    (tmp_path / "search_index.json").write_text(
        json.dumps({f"{filled.tenant.pk}:alice": ["a", "b"], f"{filled.tenant.pk}:bob": ["c"]})
    )
    settings.HOST_FOLDER = str(tmp_path)
    settings.CONSENTFUL_PERSONAL_DATA = ["tests.privacy.hosts.Index"]
    frozen.move(60)
    filled.alice.withdraw("me", "trial")
    (tmp_path / "broken").touch()
    frozen.move(1)
    assert purge(filled) == 1
    run_erasures()
    (erasure,) = erasures_of(filled)
    failed = found_with(erasure, "search_index")
    assert (failed["status"], failed["reason"]) == ("failed", "The index does not answer.")
    (tmp_path / "broken").unlink()
    frozen.move(3600)
    run_erasures()
    (erasure,) = erasures_of(filled)
    assert erasure["status"] == "done"
    assert found_with(erasure, "search_index")["erased"] == 2
    assert json.loads((tmp_path / "search_index.json").read_text()) == {
        f"{filled.tenant.pk}:bob": ["c"]
    }


def test_a_person_who_is_forgotten_whole_leaves_nothing_to_purge(filled: World) -> None:
    filled.alice.withdraw("me", "trial")
    assert filled.alice.post("subjects/me/erasures", {}).status == 201
    assert purge(filled) == 0
    assert erasures_of(filled) == []


def test_an_expired_consent_that_is_withdrawn_purges_too(filled: World, frozen: Clock) -> None:
    frozen.move(60)
    until = format_time(frozen.now + timedelta(seconds=60))
    filled.alice.give("me", "trial", expires_at=until)
    frozen.move(61)
    assert filled.alice.status_of("me", "trial") == "expired"
    assert purge(filled) == 0  # nobody withdrew it
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
