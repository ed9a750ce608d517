"""Task states: only the declared steps are taken, each by one worker alone."""

import pytest

from preferences.catalog import load_catalog
from tests.factories import CATALOG, EVERYONE, KINDS
from tests.http.client import put, race

STEPS = {
    "queued": ["running", "cancelled"],
    "running": ["running", "done", "failed"],
    "failed": ["queued"],
}
#: All are led to: one may begin in any.
ROUND = {"red": ["green"], "green": ["red"]}


def define(key, transitions, **more):
    return {
        "key": key, "purpose": "service", "scopes": KINDS, "writers": EVERYONE,
        "transitions": transitions, **more,
    }  # fmt: skip


def catalog(*definitions):
    return {**CATALOG, "definitions": [*CATALOG["definitions"], *definitions]}


@pytest.fixture
def world(make_world):
    return make_world(catalog(define("task", STEPS), define("light", ROUND)))


def step(who, status, key="task", scope="project::x", **more):
    more.setdefault("query", {"mode": "upsert"})
    return who.write(scope, key, {"status": status, "by": "w1"}, **more)


def test_the_declared_steps_are_taken(world):
    # `failed` leads back to `queued`, so nothing here is a first state: any may be.
    for status in ("queued", "running", "running", "failed", "queued", "running", "done"):
        assert step(world.agent, status).status in (200, 201), status
    assert world.alice.read("project::x", "task").json["seen_count"] == 7


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("queued", "done"), ("queued", "queued"), ("running", "queued"), ("done", "done"),
        ("done", "queued"), ("cancelled", "running"), ("failed", "running"),
    ],
)  # fmt: skip
def test_a_forbidden_step_is_refused_by_name(world, was, becomes):
    written = step(world.agent, was)
    assert written.status == 201
    for more in ({}, {"query": {}, "revision": written.revision}):
        refused = step(world.agent, becomes, **more)
        assert refused.outcome == (409, "invalid_transition")
        assert (refused.json["from"], refused.json["to"]) == (was, becomes)
        assert was in refused.json["detail"]
        assert becomes in refused.json["detail"]
        assert refused.json["current"]["revision"] == written.revision
    assert world.agent.read("project::x", "task").json == written.json
    assert len(world.events("preference.created", "preference.replaced")) == 1


def test_a_value_begins_where_nothing_leads(make_world):
    world = make_world(catalog(define("task", {"queued": ["running"], "running": ["done"]})))
    for status in ("running", "done"):
        refused = step(world.agent, status)
        assert refused.outcome == (409, "invalid_transition")
        assert (refused.json["from"], refused.json["to"]) == (None, status)
        assert refused.json["current"] is None
    assert step(world.agent, "queued").status == 201
    assert step(world.agent, "running").status == 200
    # What is deleted or expired is gone: the next one begins anew.
    assert world.agent.forget("project::x", "task").status == 204
    assert step(world.agent, "running").status == 409
    assert step(world.agent, "queued").status == 201


def test_staying_is_no_way_to_lead_there(make_world):
    world = make_world(catalog(define("task", {"queued": ["queued", "running"]})))
    assert step(world.agent, "running").status == 409
    assert step(world.agent, "queued").status == 201
    assert step(world.agent, "queued").status == 200


def test_one_begins_anywhere_on_a_round(world):
    assert step(world.agent, "green", "light").status == 201
    assert step(world.agent, "red", "light").status == 200
    assert step(world.agent, "red", "light").json["from"] == "red"


def test_an_expired_task_begins_anew(make_world, frozen):
    world = make_world(catalog(define("task", {"queued": ["running"]})))
    assert step(world.agent, "queued", ttl_seconds=60).status == 201
    frozen.move(60)
    assert step(world.agent, "running").outcome == (409, "invalid_transition")
    assert step(world.agent, "queued").status == 201


@pytest.mark.parametrize(
    "value",
    ["queued", None, 1, [], {}, {"status": None}, {"status": "lost"}, {"status": ["queued"]}],
)
def test_a_value_without_a_declared_state_is_no_value(world, value):
    refused = world.agent.write("project::x", "task", value)
    assert refused.outcome == (400, "invalid_value")
    assert refused.json["errors"][0]["pointer"] == "/value/status"


def test_other_conflicts_come_first(world):
    written = step(world.agent, "queued")
    assert step(world.agent, "done", query={}).outcome == (409, "already_exists")
    stale = step(world.agent, "done", query={}, revision="0" * 32)
    assert stale.outcome == (409, "stale_revision")
    body = {"scope": "project::x", "key": "task", "revision": written.revision}
    archived = world.agent.post("preferences/archive", body)
    assert archived.status == 200
    assert step(world.agent, "running").outcome == (409, "already_exists")
    body["revision"] = archived.revision
    assert world.agent.post("preferences/restore", body).status == 200
    assert step(world.agent, "running").status == 200


def test_a_batch_takes_steps_by_the_same_rules(world):
    step(world.agent, "queued")
    refused = put("project::x", "task", {"status": "done"}, mode="upsert")
    other = put("project::x", "light", {"status": "red"})
    assert world.agent.batch(refused, other).outcome == (409, "invalid_transition")
    assert world.agent.read("project::x", "light").status == 404
    first, second = world.agent.batch(refused, other, atomic=False).json["results"]
    assert (first["status"], first["body"]["from"], second["status"]) == (409, "queued", 201)
    assert world.agent.read("project::x", "task").json["value"]["status"] == "queued"


def test_of_many_workers_one_claims_the_task(make_world):
    """Without a revision, too: who comes second finds the step taken."""
    world = make_world(catalog(define("task", {"queued": ["running"], "running": ["queued"]})))
    assert step(world.agent, "queued").status == 201
    for _ in range(5):
        outcomes = race([lambda: step(world.agent, "running").outcome] * 8)
        assert sorted(outcomes) == [(200, None)] + [(409, "invalid_transition")] * 7
        assert step(world.agent, "queued").status == 200
    assert len(world.events("preference.replaced")) == 10


def test_of_many_workers_one_creates_the_task(make_world):
    world = make_world(catalog(define("task", {"queued": ["running"]})))
    outcomes = race([lambda: step(world.agent, "queued").outcome] * 8)
    assert sorted(outcomes) == [(201, None)] + [(409, "invalid_transition")] * 7


def test_a_new_catalogue_counts_at_once(world):
    assert step(world.agent, "queued").status == 201
    load_catalog(tenant=world.tenant, catalog=catalog(define("task", {"open": ["closed"]})))
    assert step(world.agent, "running").outcome == (400, "invalid_value")
    # What stands in no declared state is where nothing has begun.
    assert step(world.agent, "closed").outcome == (409, "invalid_transition")
    assert step(world.agent, "open").status == 200
    load_catalog(tenant=world.tenant, catalog=catalog(define("task", None)))
    assert step(world.agent, "anything").status == 200


def test_the_definitions_tell_the_steps(world):
    found = {one["key"]: one for one in world.alice.get("definitions").json["results"]}
    assert found["task"]["transitions"] == STEPS
    assert found["theme"]["transitions"] is None
