"""Who else read a record: once per record, reader and day, written later, and gone with the record."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from audit.actors import SYSTEM
from preferences import readings
from preferences.jobs import purge_all
from preferences.models import Preference, Reading
from preferences.readings import flush_readings, readings_about
from preferences.selectors import get_preference
from tenants.callers import Caller
from tenants.roles import Role
from tenants.scopes import Scope
from tenants.units import unit_of_work
from tests.http.client import get
from tests.http.conftest import Clock, World

WHY = {"reason": "asked for help"}


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is written but when a test does so: a busy machine would be faster than the test."""
    stop()
    monkeypatch.setattr(readings, "DELAY", 3600)
    yield
    stop()


def stop() -> None:
    with readings._lock:
        timer, readings._timer = readings._timer, None
    if timer is not None:
        timer.cancel()
        timer.join()


def noted(world: World, subject: str = "alice") -> list[tuple[str, str]]:
    """Return who read which key, after what waits was written."""
    flush_readings()
    with unit_of_work(tenant_id=world.tenant.pk, actor=SYSTEM):
        rows = readings_about(tenant_id=world.tenant.pk, subject=subject).order_by("pk")
        return [(row.reader, row.preference.key) for row in rows]


def test_a_read_by_another_is_noted_once_a_day(world: World, frozen: Clock) -> None:
    world.alice.write("me", "k")
    for _ in range(3):
        assert world.agent.read("user::alice", "k").status == 200
    assert noted(world) == [("agent", "k")]
    frozen.move(24 * 3600)
    readings._known.clear()  # as this process would do on the next day
    assert world.agent.read("user::alice", "k").status == 200
    assert noted(world) == [("agent", "k")] * 2


def test_ones_own_reads_and_shared_records_leave_none(world: World) -> None:
    world.alice.write("me", "k")
    world.operator.write("project::x", "k")
    assert world.alice.read("me", "k").status == 200
    assert world.alice.listing().status == 200
    assert world.agent.read("project::x", "k").status == 200
    assert noted(world) == []


@pytest.mark.parametrize("way", ["get", "list", "batch", "bound", "operator", "data"])
def test_every_way_to_read_is_noted(world: World, way: str) -> None:
    world.alice.write("me", "k")
    match way:
        case "get":
            answer, reader = world.agent.read("user::alice", "k"), "agent"
        case "list":
            answer, reader = world.agent.listing(scope="user::alice"), "agent"
        case "batch":
            answer, reader = world.agent.batch(get("user::alice", "k")), "agent"
        case "bound":
            answer, reader = world.bound.read("me", "k"), "bound"
        case "operator":
            answer, reader = world.operator.read("user::alice", "k", query=WHY), "operator"
        case "data":
            answer, reader = world.operator.get("subjects/alice/data", query=WHY), "operator"
    assert answer.status == 200
    assert noted(world) == [(reader, "k")]


def test_what_was_refused_or_absent_is_not(world: World) -> None:
    world.alice.give("me", "support")
    world.alice.write("me", "tone")
    world.alice.withdraw("me", "support")
    assert world.agent.read("user::alice", "tone").status == 403
    assert world.agent.read("user::alice", "nothing").status == 404
    assert world.agent.listing(scope="user::alice").status == 200
    assert noted(world) == []


def test_the_gated_read_stays_one_statement(world: World) -> None:
    world.alice.write("me", "k")
    agent = world.personas["agent"] if world.agent else None
    assert agent is not None
    caller = Caller(
        user_id=str(agent.user.pk), username="agent", tenant_id=world.tenant.pk,
        tenant=world.tenant.slug, roles=frozenset({Role.AGENT}), subject=None, on_behalf_of=None,
    )  # fmt: skip
    with CaptureQueriesContext(connection) as statements:
        get_preference(caller=caller, scope=Scope.of_subject("alice"), key="k")
    assert len(statements) == 1


def test_what_waits_is_written_in_one_statement(world: World) -> None:
    for number in range(20):
        world.alice.write("me", f"k{number}")
    flush_readings()
    world.agent.listing(scope="user::alice")
    with CaptureQueriesContext(connection) as captured:
        flush_readings()
    written = [one["sql"] for one in captured if "consentful_reading" in one["sql"]]
    assert len(written) == 1
    assert len(noted(world)) == 20


def test_it_is_written_by_itself_a_moment_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readings, "DELAY", 0.1)
    world.alice.write("me", "k")
    world.agent.read("user::alice", "k")
    deadline = time.monotonic() + 20
    found = 0
    while not found and time.monotonic() < deadline:
        time.sleep(0.05)
        with unit_of_work(tenant_id=world.tenant.pk, actor=SYSTEM):
            found = Reading.objects.filter(tenant_id=world.tenant.pk).count()
    assert found == 1


def test_readings_go_with_their_record(world: World, frozen: Clock) -> None:
    world.alice.write("me", "forgotten")
    world.alice.write("me", "expired", ttl_seconds=60)
    world.alice.write("me", "kept")
    world.agent.listing(scope="user::alice")
    assert len(noted(world)) == 3
    world.alice.forget("me", "forgotten")
    assert noted(world) == [("agent", "expired"), ("agent", "kept")]
    frozen.move(61)
    purge_all()
    assert noted(world) == [("agent", "kept")]


def test_a_record_that_went_meanwhile_is_passed_over(world: World) -> None:
    world.alice.write("me", "k")
    world.agent.read("user::alice", "k")
    world.alice.forget("me", "k")
    for _ in range(readings.ATTEMPTS):
        assert noted(world) == []
    assert not [one for one in readings._waiting if one[0] == world.tenant.pk]


def test_nobody_waits_for_a_record_that_is_being_written(world: World) -> None:
    """C104: whoever holds the record would wait for the flush, and the flush for them."""
    world.alice.write("me", "k")
    world.agent.read("user::alice", "k")
    with unit_of_work(tenant_id=world.tenant.pk, actor=SYSTEM):
        list(Preference.objects.filter(tenant_id=world.tenant.pk).select_for_update())
        with ThreadPoolExecutor(1) as pool:
            pool.submit(in_a_thread, flush_readings).result(timeout=2)
    assert noted(world) == [("agent", "k")]


def in_a_thread(job: Any) -> None:
    try:
        job()
    finally:
        connection.close()


def test_while_the_store_is_away_they_wait(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.alice.write("me", "k")
    world.agent.read("user::alice", "k")

    def fail(*arguments: Any, **more: Any) -> None:
        raise DatabaseError("away")

    with monkeypatch.context() as patch:
        patch.setattr(readings, "unit_of_work", fail)
        with pytest.raises(DatabaseError):
            flush_readings()
    assert noted(world) == [("agent", "k")]


def test_they_are_kept_for_so_many_days(world: World, frozen: Clock, settings: Any) -> None:
    settings.CONSENTFUL_READINGS_KEPT = 7
    world.alice.write("me", "k")
    world.agent.read("user::alice", "k")
    assert len(noted(world)) == 1
    frozen.move(7 * 24 * 3600)
    purge_all()
    assert len(noted(world)) == 1
    frozen.move(24 * 3600)
    purge_all()
    assert noted(world) == []
