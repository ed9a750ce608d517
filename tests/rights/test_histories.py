"""How long each decision stood: expiry and a material notice show, although nobody decided."""

from datetime import timedelta
from typing import Any

from tenants.times import format_time
from tests.factories import change_catalog
from tests.http.conftest import Clock, World
from tests.rights.conftest import rich_catalog


def ends(world: World) -> list[Any]:
    rows = world.alice.get("consents/me/support/history").json["results"]
    return [(row["ended_at"], row["ended_by"]) for row in rows]


def test_by_the_next_decision(world: World, frozen: Clock) -> None:
    assert ends(world) == []
    world.alice.give("me", "support")
    assert ends(world) == [(None, None)]
    frozen.move(1)
    world.alice.give("me", "support")
    renewed = format_time(frozen.now)
    frozen.move(1)
    world.alice.withdraw("me", "support")
    assert ends(world) == [
        (renewed, "given"), (format_time(frozen.now), "withdrawn"), (None, None),
    ]  # fmt: skip


def test_by_its_deadline(world: World, frozen: Clock) -> None:
    until = frozen.now + timedelta(seconds=60)
    world.alice.give("me", "support", expires_at=format_time(until))
    frozen.move(59)
    assert ends(world) == [(None, None)]
    frozen.move(1)
    assert ends(world) == [(format_time(until), "expired")]
    frozen.move(10)
    world.alice.withdraw("me", "support")
    assert ends(world)[0] == (format_time(until), "expired")


def test_by_a_material_notice(world: World, frozen: Clock) -> None:
    world.alice.give("me", "support")
    catalog = rich_catalog()
    (support,) = [one for one in catalog["purposes"] if one["slug"] == "support"]
    support["notices"] += [{"version": 2, "locale": "en", "text": "More.", "material": True}]
    frozen.move(5)
    change_catalog(world.tenant, **catalog)
    raised = format_time(frozen.now)
    frozen.move(5)
    assert ends(world) == [(raised, "outdated")]
    world.alice.give("me", "support", version=2)
    assert ends(world) == [(raised, "outdated"), (None, None)]
