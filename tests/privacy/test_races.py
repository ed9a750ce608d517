"""C063, C106: what is in flight while a person is forgotten fails and stores nothing."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.actors import SYSTEM
from preferences.models import Preference
from preferences.readings import ATTEMPTS, flush_readings
from tenants.exceptions import StaleRevision
from tenants.models import Subject
from tenants.tokens import issue_token, list_tokens
from tenants.units import unit_of_work
from tests.conftest import PATIENCE, connect
from tests.http.client import Answer, put, race
from tests.http.conftest import World
from tests.privacy.dumps import dump, find_lines
from tests.trails import prove


def start(job: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Run a job on a thread of its own, and wait until it stands before the fence."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(job())
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found


def waiting() -> int:
    with connect("runtime") as watcher:
        (count,) = watcher.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        ).fetchone() or (0,)
    return int(count)


def wait_for(count: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while waiting() < count:
        assert time.monotonic() < deadline, "nobody waits for the fence"
        time.sleep(0.01)


def test_C063_what_waits_for_the_erasure_stores_nothing(world: World) -> None:
    """Also what needs no consent: a contract's record would bring the person back."""
    assert world.alice.give("me", "support").status == 200
    assert world.alice.write("me", "reply_style", "brief").status == 201
    assert world.alice.write("me", "theme", "dark").status == 201
    tokens = world.alice, world.operator, world.agent
    assert all(api.token for api in tokens)
    jobs: list[Callable[[], Answer]] = [
        lambda: world.alice.write("me", "reply_style", "detailed", query={"mode": "upsert"}),
        lambda: world.agent.write("user::alice", "theme", "light", query={"mode": "upsert"}),
        lambda: world.alice.batch(put("me", "k", 1), put("me", "tone", "warm")),
        lambda: world.alice.batch(put("me", "k2", 1), atomic=False),
        lambda: world.operator.give("alice", "ads", evidence="by phone"),
        lambda: world.alice.write("me", "k3", 1, headers={"Idempotency-Key": "x"}),
    ]
    # Somebody who works on the person keeps the erasure waiting, and the others behind it.
    with connect("runtime") as holder:
        holder.autocommit = False
        holder.execute(
            "SELECT consentful_enter(%s, %s, %s::text[])",
            [world.tenant.pk, SYSTEM.as_context(), ["alice"]],
        )
        eraser, erased = start(lambda: world.alice.post("subjects/me/erasures", {}))
        wait_for(1)
        started = [start(job) for job in jobs]
        wait_for(1 + len(jobs))
        holder.rollback()
    for thread, _ in [(eraser, erased), *started]:
        thread.join(PATIENCE)
    assert erased[0].status == 201, erased[0]
    answers = [found[0] for _, found in started]
    assert answers[3].status == 200
    assert answers[3].json["results"][0]["status"] == 409
    for answer in (*answers[:3], *answers[4:]):
        assert answer.outcome == (409, "stale_revision"), answer
        assert answer.json["current"] is None
    with unit_of_work(tenant_id=world.tenant.pk, actor=SYSTEM):
        assert not Preference.objects.filter(tenant=world.tenant).exists()
    assert not Subject.objects.filter(tenant=world.tenant, external_id="alice").exists()
    # Asked again, it is decided anew: what rests on a contract is, what needs consent is not.
    assert world.alice.write("me", "reply_style", "brief").outcome == (403, "consent_required")
    assert world.alice.give("me", "support").status == 200
    fresh = world.alice.write("me", "reply_style", "brief")
    assert fresh.status == 201
    assert len(world.alice.get("consents/me/support/history").json["results"]) == 1
    prove(world.tenant)


def test_twins_that_forget_the_same_person_both_succeed(world: World) -> None:
    assert world.alice.write("me", "theme", "dark").status == 201
    assert world.operator.token
    answers = race(
        [
            lambda: world.alice.post("subjects/me/erasures", {}),
            lambda: world.operator.post("subjects/alice/erasures", {}, query={"reason": "asked"}),
            lambda: world.alice.post("subjects/me/erasures", {}),
        ]
    )
    assert [answer.status for answer in answers] == [201, 201, 201]
    counts = [
        one["erased"] for answer in answers for one in answer.json["holders"]
        if one["holder"] == "preferences"
    ]  # fmt: skip
    assert sorted(counts) == [0, 0, 1]
    prove(world.tenant)


@pytest.mark.parametrize("again", range(10))
def test_writers_and_erasures_at_once_leave_all_or_nothing(world: World, again: int) -> None:
    """Whatever the order: no record of a forgotten person, and none of before after a return."""
    assert world.alice.give("me", "support").status == 200

    def write(number: int) -> Callable[[], Answer]:
        return lambda: world.alice.write("me", f"k{number}", number)

    def say_yes() -> Answer:
        return world.alice.give("me", "support")

    answers = race(
        [
            *(write(number) for number in range(4)),
            lambda: world.alice.post("subjects/me/erasures", {}),
            say_yes,
        ]
    )
    assert answers[4].status == 201, answers[4]
    assert {answer.status for answer in answers[:4]} <= {201, 409}
    person = Subject.objects.filter(tenant=world.tenant, external_id="alice").first()
    with unit_of_work(tenant_id=world.tenant.pk, actor=SYSTEM):
        left = Preference.objects.filter(tenant=world.tenant)
        # What was written after the erasure belongs to a new row of the person.
        assert all(person is not None and one.subject_id == person.pk for one in left)
    prove(world.tenant)


def test_what_waits_for_the_erasure_brings_no_name_back(world: World, tmp_path: Path) -> None:
    """A look at the person, a refused attempt, a mandate and a token, all begun before it ended."""
    marker = f"zzlate{world.tenant.slug.replace('-', '')}"
    assert world.operator.write(f"user::{marker}", "theme", "dark").status == 201
    for name in ("alice", "bob", "agent", "auditor"):
        assert getattr(world, name).get("whoami").status == 200
    why = {"reason": f"about {marker}"}
    tokens = len(list_tokens())
    user = world.personas["agent"].user

    def appoint() -> Answer:
        return world.operator.put(f"subjects/{marker}/guardians/alice", {"evidence": marker})

    def issue() -> str:
        try:
            return issue_token(user=user, tenant=world.tenant, on_behalf_of=marker)[0]
        except StaleRevision as refusal:
            return refusal.code

    jobs: list[Callable[[], Any]] = [
        lambda: world.operator.get(f"subjects/{marker}/data", query=why),
        lambda: world.operator.get(f"subjects/{marker}/export", query=why),
        lambda: world.operator.read(f"user::{marker}", "theme", query=why),
        lambda: world.operator.get(f"consents/{marker}", query=why),
        lambda: world.bob.read(f"user::{marker}", f"{marker}-key"),
        appoint,
        issue,
    ]
    with connect("runtime") as holder:
        holder.autocommit = False
        holder.execute(
            "SELECT consentful_enter(%s, %s, %s::text[])",
            [world.tenant.pk, SYSTEM.as_context(), [marker]],
        )
        eraser, erased = start(
            lambda: world.operator.post(
                f"subjects/{marker}/erasures", {}, query={"reason": "asked"}
            )
        )
        wait_for(1)
        started = [start(job) for job in jobs]
        wait_for(1 + len(jobs))
        holder.rollback()
    for thread, _ in [(eraser, erased), *started]:
        thread.join(PATIENCE)
    assert erased[0].status == 201, erased[0]
    *looks, refused, appointed, issued = [found[0] for _, found in started]
    assert {look.status for look in looks} == {200}, looks
    assert refused.outcome == (403, "permission_denied")
    assert appointed.outcome == (409, "stale_revision")
    assert issued == "stale_revision"
    assert len(list_tokens()) == tokens
    disclosed = world.events("data.disclosed")
    assert len(disclosed) == 4
    assert {one.actor for one in disclosed} == {"operator"}
    assert {one.subject for one in disclosed} == {erased[0].json["pseudonym"]}
    dump(tmp_path / "after.sql")
    assert find_lines(marker, tmp_path / "after.sql") == []
    prove(world.tenant)


@pytest.mark.parametrize("again", range(5))
def test_readers_keep_no_erasure_from_being_verified(world: World, again: int) -> None:
    assert world.alice.give("me", "support").status == 200
    for number in range(30):
        assert world.alice.write("me", f"k{number}", number).status == 201
    assert world.operator.token
    assert world.agent.token
    assert world.bob.token
    done = threading.Event()

    def go_on(look: Callable[[], Answer]) -> Callable[[], set[int]]:
        def run() -> set[int]:
            seen = set()
            while not done.is_set():
                seen.add(look().status)
            return seen

        return run

    def erase() -> set[int]:
        try:
            time.sleep(0.2)
            return {world.alice.post("subjects/me/erasures", {}).status}
        finally:
            done.set()

    why = {"reason": "round"}
    *seen, erased = race(
        [
            *[go_on(lambda: world.operator.get("subjects/alice/data", query=why))] * 2,
            go_on(lambda: world.operator.read("user::alice", "k1", query=why)),
            go_on(lambda: world.agent.read("user::alice", "k2")),
            go_on(lambda: world.bob.read("user::alice", "k3")),
            erase,
        ]
    )
    assert erased == {201}
    assert set.union(*seen) <= {200, 403, 404}
    prove(world.tenant)


def test_C106_the_fence_comes_before_anything_that_decides(world: World) -> None:
    assert world.alice.write("me", "theme", "dark").status == 201
    for _ in range(ATTEMPTS):
        flush_readings()  # what other tests have noted, of records that are gone
    with CaptureQueriesContext(connection) as captured:
        assert world.alice.post("subjects/me/erasures", {}).status == 201
    statements = [one["sql"] for one in captured]
    fence = next(n for n, one in enumerate(statements) if "'{alice}'" in one and "enter" in one)
    assert statements[fence].startswith("SELECT consentful_enter(")
    assert "true)" in statements[fence]  # exclusive
    assert statements[fence - 1] == "BEGIN"
    about = ("consentful_preference", "consentful_consent", "consentful_subject")
    assert not any(table in one for one in statements[:fence] for table in about
                   if "consentful_caller" not in one)  # fmt: skip
