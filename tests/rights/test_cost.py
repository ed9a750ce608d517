"""Nobody who restricts nothing pays for those who do: no further row is looked at."""

from typing import Any

import pytest
from django.db import connection

from audit.actors import SYSTEM
from preferences.selectors import get_preference
from preferences.services import set_preference
from tenants.callers import Caller, find_caller
from tenants.scopes import Scope
from tenants.tokens import digest_of
from tenants.units import unit_of_work
from tests.http.conftest import World

ALICE = Scope.of_subject("alice")


@pytest.fixture
def alice(world: World) -> Caller:
    world.alice.give("me", "support")
    world.alice.write("me", "tone", "warm")
    world.alice.write("me", "limited", 1)
    caller = find_caller(tenant=world.tenant.slug, digest=digest_of(world.alice.token or ""))
    assert caller is not None
    return caller


def looked_at(caller: Caller, deed: Any) -> dict[str, int]:
    """How often each table was searched, by a scan or by an index, while `deed` was done."""
    tables = ("consentful_subject", "consentful_restriction", "consentful_consent_state")
    statement = (
        "SELECT relname, coalesce(seq_scan, 0) + coalesce(idx_scan, 0)"
        " FROM pg_stat_xact_user_tables WHERE relname = ANY (%s)"
    )
    with (
        unit_of_work(tenant_id=caller.tenant_id, actor=SYSTEM, subjects=["alice"]),
        connection.cursor() as cursor,
    ):
        # What is looked up once for a session has been looked up; and the first five times a
        # statement is planned anew, for which the planner searches as well.
        for _ in range(7):
            deed()
        cursor.execute(statement, [list(tables)])
        before = dict(cursor.fetchall())
        deed()
        cursor.execute(statement, [list(tables)])
        return {name: count - before.get(name, 0) for name, count in cursor.fetchall()}


def read(caller: Caller, key: str) -> Any:
    return lambda: get_preference(caller=caller, scope=ALICE, key=key)


def test_a_read_looks_at_the_consent_and_at_no_person(alice: Caller) -> None:
    found = looked_at(alice, read(alice, "tone"))
    assert found.get("consentful_subject", 0) == found.get("consentful_restriction", 0) == 0
    assert found["consentful_consent_state"] == 1


def test_what_rests_on_a_contract_costs_one_look_at_the_person(alice: Caller) -> None:
    found = looked_at(alice, read(alice, "limited"))
    assert found["consentful_subject"] == 1
    assert found.get("consentful_restriction", 0) == 0


def test_whoever_restricts_something_is_looked_at(world: World, alice: Caller) -> None:
    world.alice.put("subjects/me/restrictions/reply_style", {})
    found = looked_at(alice, read(alice, "tone"))
    assert (found["consentful_subject"], found["consentful_restriction"]) == (1, 1)


def test_a_write_looks_at_no_restriction(alice: Caller) -> None:
    def write() -> None:
        set_preference(caller=alice, scope=ALICE, key="tone", value="warm", upsert=True)

    assert looked_at(alice, write).get("consentful_restriction", 0) == 0
