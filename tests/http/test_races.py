"""What threads do to each other: withdrawals against writers, batches against purges."""

import threading
import time
from functools import partial

from django.db import connection

from preferences.jobs import purge_all
from tests.http.client import delete, put, race

ROUNDS = 50


def test_C106_no_write_lands_after_a_withdrawal(world):
    who = world.alice
    for number in range(ROUNDS):
        who.give("me", "support")
        who.write("me", "tone", 0, query={"mode": "upsert"})
        done = threading.Event()

        def write(writer, done=done, number=number):
            answers = []
            for step in range(200):
                if done.is_set():
                    break
                value = f"{number}-{writer}-{step}"
                answers.append(who.write("me", "tone", value, query={"mode": "upsert"}))
            return answers

        def withdraw(done=done):
            answer = who.withdraw("me", "support")
            held = who.get("subjects/me/data").json["preferences"]
            done.set()
            return [answer, held[0]["revision"]]

        *written, (answer, revision) = race([partial(write, 1), partial(write, 2), withdraw])
        assert answer.status == 200
        outcomes = {one.outcome for answers in written for one in answers}
        assert outcomes <= {(201, None), (200, None), (403, "consent_required")}
        (held,) = who.get("subjects/me/data").json["preferences"]
        assert held["revision"] == revision
    withdrawn = [one.pk for one in world.events("consent.withdrawn")]
    given = [one.pk for one in world.events("consent.given")]
    assert len(withdrawn) == len(given) == ROUNDS
    # In the trail, too, no write stands between a withdrawal and the next grant.
    writes = [one.pk for one in world.events("preference.created", "preference.replaced")]
    for end, start in zip(withdrawn, [*given[1:], None], strict=True):
        assert not [pk for pk in writes if pk > end and (start is None or pk < start)]


def count_deadlocks():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return cursor.fetchone()[0]


def test_C102_overlapping_batches_never_deadlock(world):
    who, before = world.alice, count_deadlocks()
    names = ["a", "b", "c", "d"]
    until = time.monotonic() + 8

    def loop(step):
        outcomes = set()
        while time.monotonic() < until:
            result = step()
            if result is not None:
                outcomes.add(result.status)
        return outcomes

    def batch(order, scopes=("me",), **more):
        return who.batch(*(put(scope, name, 1, mode="upsert", **more)
                           for scope in scopes for name in order))  # fmt: skip

    def purge():
        purge_all()

    steps = [
        partial(batch, names),
        partial(batch, names[::-1], ttl_seconds=1),
        partial(batch, names[::-1], ("project::x", "me")),
        partial(who.batch, *(delete("me", name) for name in names[::-1]), atomic=False),
        partial(who.forget, "me", "b"),
        purge,
        partial(who.withdraw, "me", "support"),
    ]
    change = [partial(loop, step) for step in steps]
    for outcomes in race(change):
        assert outcomes <= {200, 201, 204, 403, 404, 409}, outcomes
    assert count_deadlocks() == before
