"""As long and as often as it takes: five hundred withdrawals, and half a minute of everything at once."""

import threading
import time
from functools import partial

import django
import psycopg
from django.db import connection

from audit.actors import SYSTEM
from preferences.services import purge_expired
from tests.http.client import delete, get, put, race

ROUNDS = 500
#: Half a minute with the newest Django and PostgreSQL; beside it, the oldest are tried as well.
SECONDS = 30 if django.VERSION >= (6,) else 10


def open_session(tenant):
    """A session of the runtime login beside Django's: what it waits for holds up no thread."""
    connection.ensure_connection()
    password = connection.settings_dict["PASSWORD"] or None
    session = psycopg.connect(connection.connection.info.dsn, password=password)
    session.execute("SELECT consentful_enter(%s, '{}')", [tenant.pk])
    return session


WRITE = """
    SELECT outcome FROM consentful_preference_put(
        %(tenant)s, '{}', 'user::alice', 'user', 'alice', 'tone', NULL, 'subject', 'user_confirmed',
        'alice', %(assumed)s, true, 'upsert', '{}', %(value)s, NULL, NULL,
        '{"detail": null, "origin": {}, "confidence": null}', false, NULL, NULL)
"""
DECIDE = """
    INSERT INTO consentful_consent_entry (tenant_id, subject_id, purpose_id, decision, version,
        actor, method, sequence, entry, at)
    SELECT tenant_id, subject_id, purpose_id, %(decision)s, 1, 'alice', 'user_confirmed', 0, '', now()
    FROM consentful_consent_state WHERE tenant_id = %(tenant)s
"""


def test_C106_five_hundred_withdrawals_against_writers(world):
    """In the order of the trail, which is that of the fence, no write follows a withdrawal."""
    done, tenant = threading.Event(), world.tenant
    world.alice.give("me", "support")
    with open_session(tenant) as session:
        (assumed,) = session.execute(
            "SELECT revision FROM consentful_definition WHERE tenant_id = %s AND key = 'tone'",
            [tenant.pk],
        ).fetchone()

    def write():
        outcomes = set()
        with open_session(tenant) as session:
            session.commit()
            step = 0
            while not done.is_set():
                step += 1
                parameters = {"tenant": tenant.pk, "assumed": assumed, "value": str(step)}
                outcomes.add(session.execute(WRITE, parameters).fetchone()[0])
                time.sleep(0.001 * (step % 3))  # the check is done, the commit is not
                session.commit()
        return outcomes

    def withdraw():
        try:
            with open_session(tenant) as session:
                session.commit()
                for decision in ["withdrawn", "given"] * ROUNDS:
                    session.execute(
                        "SELECT consentful_enter(%s, '{}', '{alice}', true)", [tenant.pk]
                    )
                    session.execute(DECIDE, {"decision": decision, "tenant": tenant.pk})
                    session.commit()
                    time.sleep(0.001)
        finally:
            done.set()
        return set()

    outcomes = set().union(*race([write, write, write, withdraw]))
    assert outcomes == {"created", "replaced", "consent_required"}
    is_open, writes = True, 0
    for event in world.events(
        "consent.given", "consent.withdrawn", "preference.created", "preference.replaced"
    ):
        if event.action.startswith("consent."):
            is_open = event.action == "consent.given"
        else:
            assert is_open, event.pk
            writes += 1
    assert writes > ROUNDS / 10
    assert len(world.events("consent.withdrawn")) == ROUNDS


def count_deadlocks():
    with connection.cursor() as cursor:
        # What this session read before is kept for its transaction, and statistics come late.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return cursor.fetchone()[0]


def test_C102_half_a_minute_of_everything_at_once(world):
    """Batches in both orders, single writes, deletes, decisions and purges."""
    alice, bob, operator = world.alice, world.bob, world.operator
    for who in (alice, bob):
        assert who.give("me", "support").status == 200
    before, until = count_deadlocks(), time.monotonic() + SECONDS
    names, scopes = ["a", "b", "tone"], ["user::alice", "user::bob", "project::x"]
    puts = [put(scope, name, 1, mode="upsert", ttl_seconds=1) for scope in scopes for name in names]
    puts = [one for one in puts if one["key"] != "tone" or one["scope"].startswith("user")]

    def forget_person():
        for one in alice.get("subjects/me/data").json["preferences"]:
            alice.forget("me", one["key"])
        return alice.withdraw("me", "support")

    steps = [
        lambda: operator.batch(*puts),
        lambda: operator.batch(*puts[::-1]),
        lambda: operator.batch(*puts[::-1], atomic=False),
        lambda: operator.batch(
            *(delete(one["scope"], one["key"]) for one in puts[::-1]), atomic=False,
            query={"reason": "asked"},
        ),
        lambda: bob.batch(put("me", "b", 1, mode="upsert"), get("me", "a"), delete("me", "tone")),
        lambda: alice.write("me", "a", 1, query={"mode": "upsert"}),
        lambda: alice.give("me", "support"),
        forget_person,
        # Of this tenant alone: hundreds that other tests left would take the time there is.
        partial(purge_expired, tenant_id=world.tenant.pk, actor=SYSTEM, most=1000),
    ]  # fmt: skip

    def loop(step):
        statuses, rounds = set(), 0
        while time.monotonic() < until:
            answer = step()
            rounds += 1
            status = getattr(answer, "status", None) or getattr(answer, "status_code", None)
            statuses.add(status)
            if status == 503:
                assert answer.headers["Retry-After"]
        return statuses, rounds

    for number, (statuses, rounds) in enumerate(race([partial(loop, step) for step in steps])):
        assert statuses <= {None, 200, 201, 204, 302, 403, 404, 409, 503}, (number, statuses)
        assert rounds > 1, number
    assert count_deadlocks() == before
