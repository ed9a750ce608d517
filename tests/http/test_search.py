"""Full-text search: what it finds, and that it finds nothing which the caller may not see."""

import pytest
from django.db import DatabaseError, connection, transaction

from audit.actors import SYSTEM
from tenants.units import unit_of_work
from tests.factories import make_tenant
from tests.http.client import API
from tests.rights.conftest import rich_catalog


def search(who, q, **query):
    return who.get("preferences/search", query={"q": q, **query})


def found(who, q, **query):
    answer = search(who, q, **query)
    assert answer.status == 200
    return [(one["scope"], one["key"]) for one in answer.json["results"]]


def keys(who, q, **query):
    return [key for _, key in found(who, q, **query)]


@pytest.fixture
def lessons(world):
    """Lessons of two repositories of one owner, one of another, and one that is Alice's."""
    for scope, key, value in [
        ("repo::acme/checkout", "deploy", "Never deploy on Friday; the queue is flaky."),
        ("repo::acme/billing", "deploy", {"rule": ["Deploy with two reviewers"], "retries": 3}),
        ("repo::acmeco/checkout", "deploy", "Deploy whenever you like."),
        ("branch::acme/checkout::main", "note", "This branch is where we deploy from."),
        ("project::atlas", "style", "Brief commits, please"),
        ("user::alice", "habit", "Likes to deploy in the morning"),
    ]:
        assert world.operator.write(scope, key, value).status == 201
    return world


def test_records_are_found_by_the_words_of_their_texts(lessons):
    answer = search(lessons.alice, "friday", scope="repo::acme/checkout")
    (hit,) = answer.json["results"]
    score = hit.pop("score")
    assert 0 < score <= 1
    assert hit == lessons.alice.read("repo::acme/checkout", "deploy").json
    assert answer.json["next"] is answer.json["previous"] is None
    assert answer.json["withheld"] == []


@pytest.mark.parametrize(
    ("q", "is_found"),
    [
        ("flaky", True), ("FLAKY", True), ("queue flaky", True), ("flaky missing", False),
        ('"never deploy"', True), ('"deploy never"', False), ("missing or flaky", True),
        ("queue -flaky", False), ("queue -missing", True), ("-missing", True), ("flak", False),
        ("...", False), ("the", True), ("' | 'x", False), ("!!&|()", False), ("a:* <-> b", False),
    ],
)  # fmt: skip
def test_how_words_are_put_together(lessons, q, is_found):
    assert keys(lessons.alice, q, scope="repo::acme/checkout") == ["deploy"] * is_found


def test_strings_are_found_wherever_they_stand_in_a_value(lessons):
    assert found(lessons.alice, "reviewers", scope="repo::acme/billing")
    assert not found(lessons.alice, "rule", scope="repo::acme/billing")  # a name, no text
    assert not found(lessons.alice, "3", scope="repo::acme/billing")
    lessons.operator.write("project::atlas", "port", 8080)
    assert not found(lessons.alice, "port", scope="project::atlas")


def test_a_key_has_words_too_and_they_weigh_more(world):
    for key, value in [
        ("other", "retry_budget and some words"), ("retry_budget.v2", "three and some words"),
    ]:  # fmt: skip
        world.operator.write("project::x", key, value)
    assert keys(world.alice, "retry budget", scope="project::x") == ["retry_budget.v2", "other"]
    assert keys(world.alice, "v2", scope="project::x") == ["retry_budget.v2"]


def test_letters_are_found_however_they_are_composed(world):
    world.alice.write("me", "one", "caf\u00e9 au lait")
    world.alice.write("me", "two", "cafe\u0301 noir")
    for text in ("CAF\u00c9", "cafe\u0301"):
        assert sorted(keys(world.alice, text)) == ["one", "two"]


def test_scopes_are_exact_and_may_repeat(lessons):
    alice = lessons.alice
    assert found(alice, "deploy", scope="repo::ACME/Checkout") == [
        ("repo::acme/checkout", "deploy")
    ]
    several = ["repo::acme/billing", "branch::acme/checkout::main", "project::atlas", "me"]
    assert sorted(scope for scope, _ in found(alice, "deploy", scope=several)) == [
        "branch::acme/checkout::main", "repo::acme/billing", "user::alice",
    ]  # fmt: skip


def test_without_a_scope_ones_own_and_all_that_is_shared(lessons):
    assert len(found(lessons.alice, "deploy")) == 5
    assert len(found(lessons.bob, "deploy")) == 4
    assert len(found(lessons.operator, "deploy")) == 4
    assert len(found(lessons.bound, "deploy")) == 5
    assert search(lessons.agent, "deploy").outcome == (400, "invalid_scope")


def test_an_owner_stands_for_its_repositories_alone(lessons):
    for text in ("repo::acme/*", "repo::Acme/*"):
        assert sorted(scope for scope, _ in found(lessons.alice, "deploy", scope=text)) == [
            "repo::acme/billing", "repo::acme/checkout",
        ]  # fmt: skip
    assert found(lessons.alice, "deploy", scope="repo::nobody/*") == []
    # In a search alone.
    assert lessons.alice.write("repo::acme/*", "k").outcome == (400, "invalid_scope")
    assert lessons.alice.listing(scope="repo::acme/*").outcome == (400, "invalid_scope")
    effective = lessons.alice.get("preferences/effective", query={"scope": "repo::acme/*"})
    assert effective.outcome == (400, "invalid_scope")


def test_no_search_leaves_its_tenant(lessons, make_world):
    other = make_world()
    for scope in ("repo::acme/checkout", "user::alice", "project::atlas", "global"):
        other.operator.write(scope, "foreign", "Never deploy on Friday")
    for query in ({}, {"scope": "repo::acme/*"}, {"scope": ["me", "global", "project::atlas"]}):
        assert "foreign" not in keys(lessons.alice, "deploy", **query)
        assert set(keys(other.alice, "deploy", **query)) == {"foreign"}
    nobody = API(other.tenant.slug, lessons.alice.token)
    assert search(nobody, "deploy", scope="repo::acme/*").outcome == (404, "not_found")


def test_the_function_refuses_another_tenant(lessons):
    stranger = make_tenant()
    with (
        pytest.raises(DatabaseError, match="works for another tenant"),
        unit_of_work(tenant_id=stranger.pk, actor=SYSTEM),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(
            "SELECT * FROM consentful_search(%s, NULL, '{*}', '{deploy}', 9)", [lessons.tenant.pk]
        )
    with unit_of_work(tenant_id=stranger.pk, actor=SYSTEM), connection.cursor() as cursor:
        # A forged mark of another tenant leads to its words, and no further.
        cursor.execute(
            "SELECT * FROM consentful_search(%s, NULL, '{*}', '{deploy}', 9)", [stranger.pk]
        )
        assert cursor.fetchall() == []


def test_a_wrong_mark_leads_nowhere(world, make_world, superuser):
    """Should two places ever have one mark: the row itself says where it stands."""
    other = make_world()
    world.alice.write("me", "own", "friendly")
    world.bob.write("me", "foreign", "friendly")
    other.alice.write("me", "foreign", "friendly")
    superuser.execute(
        "UPDATE consentful_preference_words SET words = (SELECT w.words"
        " FROM consentful_preference_words w JOIN consentful_preference p ON p.id = w.preference_id"
        " WHERE p.tenant_id = %s AND p.key = 'own') WHERE tenant_id IN (%s, %s)",
        [world.tenant.pk, world.tenant.pk, other.tenant.pk],
    )
    assert keys(world.alice, "friendly") == ["own"]


@pytest.mark.parametrize("who", ["bob", "operator", "owner"])
def test_nobody_searches_another_persons(lessons, who):
    """A steward reads another person's data with a reason, one scope at a time: not here."""
    api = getattr(lessons, who)
    assert found(api, "deploy", scope="user::alice") == []
    both = found(api, "deploy", scope=["user::alice", "repo::acme/checkout"])
    assert both == [("repo::acme/checkout", "deploy")]


def test_consent_decides_in_the_search(world):
    alice, agent = world.alice, world.agent
    alice.give("me", "support")
    alice.give("me", "ads")
    alice.write("me", "tone", "brief and friendly")
    alice.write("me", "banner", "friendly colours")
    alice.write("me", "habit", "friendly mornings")
    assert sorted(keys(alice, "friendly")) == ["banner", "habit", "tone"]
    # The agent was not given the purpose of the banner.
    answer = search(agent, "friendly", scope="user::alice")
    assert sorted(answer.keys) == ["habit", "tone"]
    assert answer.json["withheld"] == [{"purpose": "ads", "reason": "purpose_not_allowed"}]
    alice.withdraw("me", "support")
    answer = search(alice, "friendly")
    assert sorted(answer.keys) == ["banner", "habit"]
    assert answer.json["withheld"] == [{"purpose": "support", "reason": "consent_required"}]
    assert search(agent, "friendly", scope="user::alice").keys == ["habit"]
    alice.give("me", "support")
    assert sorted(keys(alice, "friendly")) == ["banner", "habit", "tone"]


def test_what_is_withheld_does_not_depend_on_the_words(world):
    """Else one could guess a value word by word."""
    world.alice.give("me", "support")
    world.alice.write("me", "tone", "secretive")
    world.alice.withdraw("me", "support")
    right, wrong = (search(world.alice, q).json for q in ("secretive", "talkative"))
    assert right == wrong
    assert right["results"] == []
    assert [one["purpose"] for one in right["withheld"]] == ["support"]


def test_a_restriction_decides_in_the_search(world):
    world.alice.write("me", "one", "friendly")
    world.alice.write("me", "two", "friendly")
    assert world.alice.put("subjects/me/restrictions/one", {}).status == 200
    answer = search(world.alice, "friendly")
    assert answer.keys == ["two"]
    assert answer.json["withheld"] == [{"purpose": "service", "reason": "restricted"}]
    assert world.alice.put("subjects/me/restriction", {}).status == 200
    assert keys(world.alice, "friendly") == []


def test_an_objection_decides_in_the_search(make_world):
    world = make_world(rich_catalog())
    world.alice.write("me", "news", "friendly")
    world.alice.write("me", "resale", "friendly")
    assert world.alice.put("subjects/me/objections/news", {}).status == 200
    answer = search(world.alice, "friendly")
    assert answer.keys == ["resale"]
    assert answer.json["withheld"] == [{"purpose": "news", "reason": "objected"}]


def test_C033_expired_rows_are_gone_at_their_moment(world, frozen):
    world.alice.write("me", "k", "friendly", ttl_seconds=60)
    frozen.move(59.999)
    assert keys(world.alice, "friendly") == ["k"]
    frozen.move(0.001)
    assert keys(world.alice, "friendly") == []
    assert world.alice.write("me", "k", "grim").status == 201
    assert keys(world.alice, "friendly") == []
    assert keys(world.alice, "grim") == ["k"]


def words_of(world):
    """Everything that can be found in the world's tenant, as the index has it."""
    with unit_of_work(tenant_id=world.tenant.pk, actor=SYSTEM), connection.cursor() as cursor:
        cursor.execute(
            "SELECT words::text FROM consentful_preference_words WHERE tenant_id = %s"
            " ORDER BY preference_id",
            [world.tenant.pk],
        )
        return [words for (words,) in cursor.fetchall()]


def test_what_changes_is_found_as_it_is_now(world):
    written = world.alice.write("me", "k", "friendly")
    written = world.alice.write("me", "k", {"a": ["grim"]}, revision=written.revision)
    assert keys(world.alice, "friendly") == []
    assert keys(world.alice, "grim") == ["k"]
    body = {"scope": "me", "key": "k", "revision": written.revision}
    archived = world.alice.post("preferences/archive", body)
    assert keys(world.alice, "grim") == []
    assert words_of(world) == []
    body["revision"] = archived.revision
    written = world.alice.post("preferences/restore", body)
    assert keys(world.alice, "grim") == ["k"]
    for value in (7, None, {"a": [1]}, "x" * 9000):
        assert len(words_of(world)) == 1
        written = world.alice.write("me", "k", value, revision=written.revision)
        assert words_of(world) == []
        written = world.alice.write("me", "k", "grim again", revision=written.revision)
    assert world.alice.write("me", "k", None, revision=written.revision).status == 200
    assert world.alice.forget("me", "k").status == 204


def test_nothing_is_left_of_what_is_forgotten(world):
    world.alice.write("me", "k", "canary-one two", tags=["t"])
    world.operator.write("project::x", "k", "canary-two")
    (own, shared) = words_of(world)
    assert "canary" in own
    assert "alice" not in own + shared  # whose it is stands as a digest
    assert world.alice.forget("me", "k").status == 204
    assert words_of(world) == [shared]
    world.alice.write("me", "k", "canary-three")
    answer = world.operator.post("subjects/alice/erasures", {}, query={"reason": "asked"})
    assert answer.status == 201
    assert words_of(world) == [shared]
    assert keys(world.bob, "canary") == ["k"]


def test_the_best_comes_first_and_a_limit_keeps_it(world):
    for key, value in [
        ("c", "a long text about many other things, and once about a queue"),
        ("a", "queue"), ("b", "the queue of queues, a queue"),
    ]:  # fmt: skip
        world.operator.write("project::x", key, value)
    ranked = search(world.alice, "queue", scope="project::x").json["results"]
    scores = [one["score"] for one in ranked]
    assert scores == sorted(scores, reverse=True)
    assert ranked[-1]["key"] == "c"
    (best,) = search(world.alice, "queue", scope="project::x", limit=1).json["results"]
    assert best == ranked[0]


@pytest.mark.parametrize(
    ("query", "outcome"),
    [
        ({}, (400, "validation_error")),
        ({"q": ""}, (400, "validation_error")),
        ({"q": "  "}, (400, "validation_error")),
        ({"q": "\x01"}, (400, "validation_error")),
        ({"q": "x" * 201}, (400, "validation_error")),
        ({"q": "a\nb"}, (400, "validation_error")),
        ({"q": "a\0b"}, (400, "validation_error")),
        ({"q": "a", "limit": "0"}, (400, "validation_error")),
        ({"q": "a", "cursor": "x"}, (400, "validation_error")),
        ({"q": ["a", "b"]}, (400, "validation_error")),
        ({"q": "a", "scope": ""}, (400, "invalid_scope")),
        ({"q": "a", "scope": "repo::*/*"}, (400, "invalid_scope")),
        ({"q": "a", "scope": "repo::acme/check*"}, (400, "invalid_scope")),
        ({"q": "a", "scope": "repo::/*"}, (400, "invalid_scope")),
        ({"q": "a", "scope": "user::*"}, (200, None)),
        ({"q": "a", "scope": "*"}, (400, "invalid_scope")),
        ({"q": "x" * 200}, (200, None)),
    ],
)
def test_what_is_malformed(world, query, outcome):
    assert world.alice.get("preferences/search", query=query).outcome == outcome
