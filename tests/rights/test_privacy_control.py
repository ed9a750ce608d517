"""Sec-GPC: 1 says no to what shares data, once; what a person decides afterwards stands."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from consent import privacy_control
from tests.factories import change_catalog
from tests.http.client import race
from tests.http.conftest import World
from tests.rights.conftest import rich_catalog

GPC = {"Sec-GPC": "1"}


@pytest.fixture(autouse=True)
def unsettled() -> None:
    """Each test begins in a process that has heard nothing yet."""
    privacy_control._settled.clear()


def hear(world: World) -> None:
    privacy_control._settled.clear()
    world.alice.get("whoami", headers=GPC)


def methods(world: World, purpose: str) -> list[tuple[str, str]]:
    rows = world.alice.get(f"consents/me/{purpose}/history").json["results"]
    return [(row["decision"], row["method"]) for row in rows]


def test_it_is_recorded_for_sharing_purposes_alone(world: World) -> None:
    hear(world)
    assert methods(world, "partners") == [("refused", "gpc")]
    assert methods(world, "resale") == [("objected", "gpc")]
    assert methods(world, "support") == methods(world, "news") == []
    assert world.alice.write("me", "resale", 1).outcome == (403, "objected")


def test_consent_from_before_the_signal_is_withdrawn(world: World) -> None:
    world.alice.give("me", "partners")
    hear(world)
    assert methods(world, "partners")[-1] == ("withdrawn", "gpc")
    assert world.alice.status_of("me", "partners") == "withdrawn"


def test_a_later_choice_stands_however_often_it_is_heard(world: World) -> None:
    hear(world)
    assert world.alice.give("me", "partners", headers=GPC).json["status"] == "given"
    world.alice.delete("subjects/me/objections/resale", headers=GPC)
    for _ in range(3):
        hear(world)
    assert world.alice.status_of("me", "partners") == "given"
    assert world.alice.write("me", "resale", 1).status == 201


def test_the_very_request_that_gives_is_the_later_word(world: World) -> None:
    assert world.alice.give("me", "partners", headers=GPC).json["status"] == "given"
    assert methods(world, "partners") == [("refused", "gpc"), ("given", "user_confirmed")]


def test_a_no_that_stood_is_left_and_a_yes_after_it_counts(world: World) -> None:
    world.alice.decide("me", "partners", "refused")
    hear(world)
    assert methods(world, "partners") == [("refused", "user_confirmed")]
    world.alice.give("me", "partners")
    hear(world)
    assert world.alice.status_of("me", "partners") == "given"


def test_a_purpose_that_comes_to_share_is_covered(world: World) -> None:
    hear(world)
    catalog = rich_catalog()
    (news,) = [one for one in catalog["purposes"] if one["slug"] == "news"]
    news["sharing"] = True
    change_catalog(world.tenant, **catalog)
    hear(world)
    assert methods(world, "news") == [("objected", "gpc")]


@pytest.mark.parametrize("value", ["0", "", "true", "1, 1"])
def test_nothing_else_is_a_signal(world: World, value: str) -> None:
    world.alice.get("whoami", headers={"Sec-GPC": value})
    assert methods(world, "partners") == []


def test_an_agent_or_an_operator_says_nothing_for_a_person(world: World) -> None:
    world.bound.get("whoami", headers=GPC)
    world.operator.get("consents/alice", query={"reason": "asked"}, headers=GPC)
    assert methods(world, "partners") == []


def test_nothing_is_written_or_asked_again(world: World) -> None:
    world.alice.write("me", "limited", 1)
    hear(world)
    before = len(world.events())
    world.alice.read("me", "limited")
    with CaptureQueriesContext(connection) as plain:
        world.alice.read("me", "limited")
    with CaptureQueriesContext(connection) as signalled:
        world.alice.read("me", "limited", headers=GPC)
    assert len(signalled) == len(plain)
    assert len(world.events()) == before


def test_where_nothing_is_shared_nobody_is_marked() -> None:
    world = World()
    hear(world)
    world.alice.get("whoami", headers=GPC)
    assert world.events("consent.refused") == []
    assert not any("gpc_at" in event.changed for event in world.events("subject.changed"))


def test_twins_record_it_once(world: World) -> None:
    race([lambda: world.alice.get("whoami", headers=GPC)] * 4)
    assert methods(world, "partners") == [("refused", "gpc")]
