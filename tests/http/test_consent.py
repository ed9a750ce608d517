"""Decisions, the gate, and what stays possible without consent."""

from datetime import timedelta
from functools import partial
from itertools import pairwise

import pytest

from tenants.roles import Role
from tenants.services import grant_role
from tests.factories import CATALOG, change_catalog
from tests.http.client import delete, get, put, race

WHY = {"reason": "asked by phone"}


def raise_notice(world, *, material=True):
    support = {**CATALOG["purposes"][0]}
    support["notices"] = [
        *support["notices"], {"version": 2, "locale": "en", "text": "New.", "material": material},
    ]  # fmt: skip
    change_catalog(world.tenant, purposes=[support, *CATALOG["purposes"][1:]])


def test_purposes(world):
    for who in (world.alice, world.agent, world.operator, world.auditor, world.owner):
        answer = who.get("purposes")
        assert answer.status == 200
        assert answer.json["next"] is None
        assert answer.json["previous"] is None
        support, ads, service = answer.json["results"]
        assert (support["slug"], ads["slug"], service["slug"]) == ("support", "ads", "service")
        assert support["version"] == support["required_version"] == 1
        assert {one["locale"] for one in support["notices"]} == {"en", "de"}
        assert set(support["notices"][0]) == {"version", "locale", "text", "digest"}
        assert support["on_withdrawal"] == "keep"
        assert service["lawful_basis"] == "contract"


def test_definitions(world):
    for who in (world.alice, world.agent, world.auditor):
        found = {one["key"]: one for one in who.get("definitions").json["results"]}
        assert set(found) == {one["key"] for one in CATALOG["definitions"]}
        assert found["reply_style"] == {
            "key": "reply_style", "purpose": "support", "schema": {"enum": ["brief", "detailed"]},
            "default": None, "ttl_default": None, "ttl_max": 31536000, "scopes": ["user"],
            "writers": ["subject", "operator", "agent"],
            "transitions": None, "description": "How much detail a reply should hold",
        }  # fmt: skip
        assert found["theme"]["default"] == "light"


def test_whoami(world):
    slug = world.tenant.slug
    assert world.alice.get("whoami").json == {
        "tenant": slug, "user": "alice", "subject": "alice", "roles": ["member"], "purposes": [],
        "wards": [],
    }  # fmt: skip
    assert world.bound.get("whoami").json == {
        "tenant": slug, "user": "bound", "subject": "alice", "roles": ["agent"],
        "purposes": ["support", "service"], "wards": [],
    }  # fmt: skip
    assert world.agent.get("whoami").json["subject"] is None
    assert world.operator.get("whoami").json["subject"] is None


def test_life_of_a_consent(world):
    who = world.alice
    assert who.write("me", "reply_style", "brief").outcome == (403, "consent_required")
    assert who.write("me", "reply_style", "brief").json["purpose"] == "support"
    given = who.give("me", "support", locale="de", evidence="clicked")
    assert given.status == 200
    state = given.json
    assert set(state) == {"purpose", "status", "version", "since", "expires_at", "entry"}
    assert (state["purpose"], state["status"], state["version"]) == ("support", "given", 1)
    assert who.write("me", "reply_style", "brief").status == 201
    assert who.withdraw("me", "support").json["status"] == "withdrawn"
    for answer in (
        who.read("me", "reply_style"),
        who.read("me", "tone"),
        who.write("me", "tone", "x"),
        who.write("me", "reply_style", "brief", revision="0" * 32),
    ):
        assert answer.outcome == (403, "consent_required")
        assert answer.json["purpose"] == "support"
    entries = who.get("consents/me/support/history").json["results"]
    assert [one["decision"] for one in entries] == ["given", "withdrawn"]
    first = entries[0]
    assert set(first) >= {
        "decision", "version", "locale", "notice_digest", "actor", "method", "at", "expires_at",
    }  # fmt: skip
    assert (first["locale"], first["actor"], first["method"]) == ("de", "alice", "user_confirmed")
    notices = who.get("purposes").json["results"][0]["notices"]
    german = next(one for one in notices if one["locale"] == "de")
    assert first["notice_digest"] == german["digest"]
    assert who.give("me", "support").status == 200
    assert who.read("me", "reply_style").json["value"] == "brief"


def test_states_list_consent_purposes_alone(world):
    answer = world.alice.get("consents/me")
    assert answer.json["next"] is None
    assert [(one["purpose"], one["status"]) for one in answer.json["results"]] == [
        ("support", "none"), ("ads", "none"),
    ]  # fmt: skip
    assert world.alice.give("me", "service").outcome == (400, "validation_error")
    assert world.alice.give("me", "nothing").outcome == (404, "not_found")
    assert world.alice.get("consents/me/nothing/history").outcome == (404, "not_found")


def test_unknown_persons_are_known_with_nothing(world):
    states = world.operator.get("consents/nobody", query=WHY).json["results"]
    assert {one["status"] for one in states} == {"none"}
    data = world.operator.get("subjects/nobody/data", query=WHY).json
    assert data["subject"] == "nobody"
    assert data["preferences"] == []
    history = world.operator.get("consents/nobody/support/history", query=WHY)
    assert history.json["results"] == []


@pytest.mark.parametrize(
    "body",
    [
        {}, {"decision": "maybe"}, {"decision": None}, {"decision": "given"},
        {"decision": "given", "version": 9}, {"decision": "given", "version": "1"},
        {"decision": "given", "version": True}, {"decision": "given", "version": 0},
        {"decision": "given", "version": 1.0}, {"decision": "given", "version": 2**40},
        {"decision": "given", "version": 1, "locale": "fr"},
        {"decision": "given", "version": 1, "locale": 1},
        {"decision": "given", "version": 1, "expires_at": "2020-01-01T00:00:00Z"},
        {"decision": "given", "version": 1, "expires_at": "soon"},
        {"decision": "given", "version": 1, "expires_at": 5},
        {"decision": "given", "version": 1, "evidence": "x" * 2049},
        {"decision": "given", "version": 1, "at": "2020-01-01T00:00:00Z"},
        {"decision": "expired"},
    ],
)  # fmt: skip
def test_refused_decisions(world, body):
    answer = world.alice.put("consents/me/support", body)
    assert answer.outcome == (400, "validation_error")
    assert world.alice.status_of("me", "support") == "none"


def test_C043_every_decision_is_an_entry(world, frozen):
    who = world.alice
    for _ in range(2):
        assert who.give("me", "support").json["status"] == "given"
        assert who.withdraw("me", "support").json["status"] == "withdrawn"
    entries = who.get("consents/me/support/history").json["results"]
    assert [one["decision"] for one in entries] == ["given", "withdrawn"] * 2
    assert len({one["at"] for one in entries}) == 1
    assert len({one["entry"] for one in entries}) == 4
    assert who.status_of("me", "support") == "withdrawn"
    for method in ("POST", "PATCH", "DELETE"):
        path = "consents/me/support/history"
        assert who.request(method, path, {}).outcome == (405, "method_not_allowed")
    for method in ("POST", "PATCH", "DELETE", "GET"):
        assert who.request(method, "consents/me/support").outcome == (405, "method_not_allowed")
    assert who.get("consents/me/support/history").json["results"] == entries


def test_C044_withdrawing_twice_at_once(world):
    world.alice.give("me", "support")
    answers = race([partial(world.alice.withdraw, "me", "support")] * 2)
    assert [answer.status for answer in answers] == [200, 200]
    assert {answer.json["status"] for answer in answers} == {"withdrawn"}
    assert len(world.events("consent.withdrawn")) == 1


@pytest.mark.parametrize("start", ["none", "given"])
def test_C044_many_decisions_at_once(world, start):
    """Whatever comes first, the ledger is a strict sequence, and the state is its last entry."""
    if start == "given":
        world.alice.give("me", "support")
    jobs = [partial(world.alice.decide, "me", "support", one) for one in ("refused", "withdrawn")]
    answers = race([*jobs * 3, *[partial(world.alice.give, "me", "support")] * 3])
    assert {answer.status for answer in answers} == {200}
    entries = world.alice.get("consents/me/support/history").json["results"]
    decisions = [one["decision"] for one in entries]
    assert decisions.count("given") == 3 + (start == "given")
    # Each no stands after a yes, or at the very beginning, and never after another no.
    for before, after in pairwise(["none" if start == "none" else "", *decisions]):
        expected = {"none": "refused", "given": "withdrawn"}.get(before)
        assert after in ("given", expected), decisions
    state = world.alice.get("consents/me").json["results"][0]
    assert (state["status"], state["entry"]) == (decisions[-1], entries[-1]["entry"])
    given = [one["entry"] for one in entries]
    assert len(set(given)) == len(given)
    # Of several that saw the same entry, one decides.
    seen = partial(world.alice.give, "me", "support", entry=given[-1])
    assert sorted(answer.status for answer in race([seen] * 4)) == [200, 409, 409, 409]


@pytest.mark.parametrize("decision", ["refused", "withdrawn"])
def test_C044_from_none_both_are_refused(world, decision):
    answer = world.alice.decide("me", "support", decision)
    assert (answer.status, answer.json["status"]) == (200, "refused")
    again = world.alice.decide("me", "support", "withdrawn")
    assert again.json == answer.json
    assert len(world.alice.get("consents/me/support/history").json["results"]) == 1


@pytest.mark.parametrize("decision", ["refused", "withdrawn"])
@pytest.mark.parametrize("before", ["given", "expired", "outdated"])
def test_C044_from_given_both_are_withdrawn(world, frozen, before, decision):
    until = (frozen.now + timedelta(seconds=60)).strftime("%Y-%m-%dT%H:%M:%SZ")
    more = {"expires_at": until} if before == "expired" else {}
    assert world.alice.give("me", "support", **more).json["status"] == "given"
    if before == "expired":
        frozen.move(60)
    if before == "outdated":
        raise_notice(world)
    assert world.alice.status_of("me", "support") == before
    if before != "given":
        assert world.alice.read("me", "tone").outcome == (403, "consent_required")
    answer = world.alice.decide("me", "support", decision)
    assert (answer.status, answer.json["status"]) == (200, "withdrawn")
    again = world.alice.decide("me", "support", decision)
    assert again.json == answer.json


def test_giving_again_is_a_renewal(world):
    first = world.alice.give("me", "support").json
    second = world.alice.give("me", "support").json
    assert second["entry"] != first["entry"]
    assert len(world.alice.get("consents/me/support/history").json["results"]) == 2


def test_consent_ends_at_its_deadline(world, frozen):
    until = (frozen.now + timedelta(seconds=60)).strftime("%Y-%m-%dT%H:%M:%SZ")
    world.alice.give("me", "support", expires_at=until)
    assert world.alice.write("me", "tone", 1).status == 201
    frozen.move(59.999)
    assert world.alice.read("me", "tone").status == 200
    frozen.move(0.001)
    assert world.alice.read("me", "tone").outcome == (403, "consent_required")
    assert world.alice.listing().json["withheld"] == [
        {"purpose": "support", "reason": "consent_required"}
    ]


def test_material_notice_outdates(world):
    world.alice.give("me", "support")
    raise_notice(world)
    assert world.alice.write("me", "tone", 1).outcome == (403, "consent_required")
    old = world.alice.give("me", "support", 1)
    assert old.outcome == (409, "stale_revision")
    assert set(old.json["current"]) == {"version", "entry"}
    assert old.json["current"]["version"] == 2
    assert world.alice.give("me", "support", 2).json["status"] == "given"
    assert world.alice.write("me", "tone", 1).status == 201


def test_minor_notice_outdates_nobody(world):
    world.alice.give("me", "support")
    raise_notice(world, material=False)
    assert world.alice.status_of("me", "support") == "given"
    assert world.alice.give("me", "support", 1).status == 200


def test_entry_is_the_newest_one_seen(world):
    first = world.alice.give("me", "support").json["entry"]
    second = world.alice.give("me", "support", entry=first)
    assert second.status == 200
    for decision, more in (("withdrawn", {}), ("given", {"version": 1})):
        answer = world.alice.decide("me", "support", decision, entry=first, **more)
        assert answer.outcome == (409, "stale_revision")
        assert answer.json["current"] == {"version": 1, "entry": second.json["entry"]}
    assert world.alice.give("me", "ads", entry="0" * 32).outcome == (409, "stale_revision")


def test_operators_need_evidence(world):
    answer = world.operator.give("alice", "support")
    assert answer.outcome == (400, "validation_error")
    assert answer.json["errors"][0]["pointer"] == "/evidence"
    assert world.operator.decide("alice", "support", "refused").status == 400
    assert world.operator.give("alice", "support", evidence="letter of 3 May").status == 200
    (entry,) = world.alice.get("consents/me/support/history").json["results"]
    assert (entry["actor"], entry["method"]) == ("operator", "operator")
    assert "letter" not in world.alice.get("consents/me/support/history").content.decode()
    assert world.owner.decide("alice", "support", "withdrawn", evidence="call").status == 200


def test_order_of_refusals_of_a_decision(world):
    first = world.alice.give("me", "support").json["entry"]
    world.alice.give("me", "support")
    # 400 comes before 404, and both before 409.
    assert world.operator.give("alice", "nothing").status == 400
    assert world.alice.decide("me", "nothing", "given").status == 400
    for members in (
        {"version": 9}, {"version": 1, "locale": "fr"},
        {"version": 1, "expires_at": "2020-01-01T00:00:00Z"},
    ):  # fmt: skip
        answer = world.alice.decide("me", "support", "given", entry=first, **members)
        assert answer.outcome == (400, "validation_error"), members


def test_C106_the_fence_comes_first(world):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    world.alice.give("me", "support")
    world.alice.write("me", "tone", 1)
    for send in (
        partial(world.alice.withdraw, "me", "support"),
        partial(world.alice.give, "me", "support"),
        partial(world.alice.write, "me", "k", 1, headers={"Idempotency-Key": "x"}),
        partial(world.alice.batch, put("me", "a"), delete("me", "tone")),
    ):
        with CaptureQueriesContext(connection) as queries:
            assert send().status in (200, 201)
        asked = [
            one["sql"] for one in queries if one["sql"].startswith(("SELECT", "INSERT", "DEL"))
        ]
        asked = [one for one in asked if "consentful_caller" not in one]
        assert "consentful_enter" in asked[0], asked[:3]
    # A single write is one call of one function, which takes the fence before it reads.
    world.alice.write("me", "k", 2, query={"mode": "upsert"})
    with CaptureQueriesContext(connection) as queries:
        assert world.alice.write("me", "k", 3, query={"mode": "upsert"}).status == 200
    asked = [one["sql"] for one in queries if "consentful_caller" not in one["sql"]]
    assert len(asked) == 1
    assert "consentful_preference_put" in asked[0]


def test_who_may_decide(world):
    for who, subject in (
        (world.agent, "alice"), (world.bound, "me"), (world.bob, "alice"), (world.auditor, "alice"),
        (world.operator, "me"),
    ):  # fmt: skip
        with world.denied(1):
            answer = who.give(subject, "support", evidence="x")
            assert answer.outcome == (403, "permission_denied")
    assert world.alice.status_of("me", "support") == "none"


def test_agents_see_the_state_of_their_purposes(world):
    for who, subject in ((world.bound, "me"), (world.agent, "alice")):
        states = who.get(f"consents/{subject}").json["results"]
        assert [one["purpose"] for one in states] == ["support"]
        history = who.get(f"consents/{subject}/support/history")
        assert history.outcome == (403, "permission_denied")
    assert world.bound.get("consents/bob").outcome == (403, "permission_denied")


def test_gate_for_agents(world):
    world.alice.give("me", "support")
    world.alice.give("me", "ads")
    assert world.alice.write("me", "banner", 1).status == 201
    assert world.alice.write("me", "tone", 1).status == 201
    for who, scope in ((world.bound, "me"), (world.agent, "user::alice")):
        for answer in (
            who.read(scope, "banner"), who.write(scope, "banner", 2), who.forget(scope, "banner"),
        ):  # fmt: skip
            assert answer.outcome == (403, "purpose_not_allowed")
            assert answer.json["purpose"] == "ads"
        assert who.read(scope, "tone").status == 200
        listed = who.listing(scope=scope).json
        assert [one["key"] for one in listed["results"]] == ["tone"]
        assert listed["withheld"] == [{"purpose": "ads", "reason": "purpose_not_allowed"}]
    world.alice.withdraw("me", "support")
    assert world.bound.read("me", "tone").outcome == (403, "consent_required")
    assert world.bound.forget("me", "tone").status == 204


def test_gate_comes_before_existence(world):
    present, absent = "tone", "reply_style"
    world.alice.give("me", "support")
    world.alice.write("me", present, 1)
    world.alice.withdraw("me", "support")
    answers = [world.alice.read("me", key).json for key in (present, absent)]
    for answer in answers:
        answer.pop("request_id")
    assert answers[0] == answers[1]
    assert answers[0]["code"] == "consent_required"


def test_a_key_that_nothing_governs(make_world):
    world = make_world({**CATALOG, "undeclared": {}})
    assert world.alice.read("me", "nothing").outcome == (404, "not_found")
    assert world.alice.write("me", "nothing").outcome == (400, "undeclared_key")
    assert world.operator.write("project::a", "nothing").outcome == (400, "undeclared_key")
    # Not for this kind of scope: undeclared there.
    assert world.operator.write("project::a", "tone").outcome == (400, "undeclared_key")


def test_C041_nothing_survives_withdrawal(world):
    world.alice.give("me", "support")
    etag = world.alice.write("me", "tone", "x").headers["ETag"]
    for number in range(3):
        world.alice.write("me", f"k{number}", number)
    page = world.bound.listing(scope="me", limit=1)
    assert page.keys == ["tone"]
    first = world.bound.listing(scope="me", limit=2).json
    assert world.bound.read("me", "tone", headers={"If-None-Match": etag}).status == 304
    world.alice.withdraw("me", "support")
    for who in (world.alice, world.bound, world.agent):
        answer = who.read("user::alice", "tone", headers={"If-None-Match": etag})
        assert answer.outcome == (403, "consent_required")
        assert b"ETag" not in answer.content
        assert "ETag" not in answer.headers
    rest = world.bound.get(page.json["next"].partition("testserver")[2]).json
    assert [one["key"] for one in rest["results"]] == ["k0", "k1", "k2"][: len(rest["results"])]
    rest = world.bound.get(first["next"].partition("testserver")[2]).json
    assert "tone" not in [one["key"] for one in rest["results"]]
    held = world.alice.get("subjects/me/data").json["preferences"]
    assert "tone" in [one["key"] for one in held]


def test_C047_consent_is_not_cached(world):
    world.alice.give("me", "support")
    world.alice.write("me", "tone", 1)
    for _ in range(3):
        assert race([partial(world.bound.read, "me", "tone")] * 3)[0].status == 200
        world.alice.withdraw("me", "support")
        answers = race([partial(world.bound.read, "me", "tone")] * 3)
        assert {answer.outcome for answer in answers} == {(403, "consent_required")}
        world.alice.give("me", "support")
        assert world.bound.read("me", "tone").status == 200


def test_C048_forgetting_needs_no_consent(world):
    who = world.alice
    who.give("me", "support")
    for key in ("tone", "reply_style"):
        assert who.write("me", key, "brief").status == 201
    who.withdraw("me", "support")
    data = who.get("subjects/me/data")
    assert data.status == 200
    assert [one["key"] for one in data.json["preferences"]] == ["tone", "reply_style"]
    assert who.get("consents/me/support/history").status == 200
    assert world.bound.read("me", "tone").outcome == (403, "consent_required")
    assert world.bound.write("me", "tone").outcome == (403, "consent_required")
    for path in ("subjects/me/data", "consents/me/support/history"):
        assert world.bound.get(path).outcome == (403, "permission_denied")
    assert world.bound.forget("me", "tone").status == 204
    revision = data.json["preferences"][1]["revision"]
    assert who.forget("me", "reply_style", query={"revision": revision}).status == 204
    assert who.get("subjects/me/data").json["preferences"] == []


def test_changing_purpose_asks_for_both(world):
    world.alice.give("me", "support")
    world.alice.write("me", "tone", 1)
    definitions = [
        {**one, "purpose": "ads"} if one["key"] == "tone" else one for one in CATALOG["definitions"]
    ]
    change_catalog(world.tenant, definitions=definitions)
    # A read asks for the stored purpose; a write for the definition's and the stored one.
    assert world.alice.read("me", "tone").json["purpose"] == "support"
    revision = world.alice.read("me", "tone").etag
    refused = world.alice.write("me", "tone", 2, revision=revision)
    assert (refused.code, refused.json["purpose"]) == ("consent_required", "ads")
    world.alice.give("me", "ads")
    world.alice.withdraw("me", "support")
    refused = world.alice.write("me", "tone", 2, revision=revision)
    assert (refused.code, refused.json["purpose"]) == ("consent_required", "support")
    world.alice.give("me", "support")
    assert world.alice.write("me", "tone", 2, revision=revision).json["purpose"] == "ads"


def test_retired_definition(world):
    world.alice.give("me", "support")
    world.alice.write("me", "tone", 1)
    kept = [one for one in CATALOG["definitions"] if one["key"] != "tone"]
    change_catalog(world.tenant, definitions=kept)
    assert world.alice.read("me", "tone").status == 200
    assert "tone" in world.alice.listing().keys
    assert world.alice.write("me", "tone", 2).outcome == (400, "undeclared_key")
    assert "tone" not in world.alice.get("definitions").keys
    world.alice.withdraw("me", "support")
    assert world.alice.read("me", "tone").outcome == (403, "consent_required")
    assert world.alice.forget("me", "tone").status == 204


def test_writers(world):
    with world.denied(1):
        assert world.alice.write("me", "staff_note").outcome == (403, "permission_denied")
    assert world.bound.write("me", "staff_note").outcome == (403, "permission_denied")
    assert world.operator.write("user::alice", "staff_note", 1).status == 201
    assert world.alice.write("project::a", "policy").outcome == (403, "permission_denied")
    assert world.operator.write("project::a", "policy").status == 201
    assert world.alice.read("project::a", "policy").status == 200
    # Undeclared shared keys are not for members to write; those that name them are.
    assert world.alice.write("project::a", "other").outcome == (403, "permission_denied")
    assert world.alice.write("project::a", "theme", "dark").status == 201
    assert world.alice.forget("project::a", "policy").outcome == (403, "permission_denied")


def test_reasons_and_disclosures(world):
    world.alice.write("me", "k", 1)
    paths = ["preferences/user::alice/k", "subjects/alice/data", "consents/alice",
             "consents/alice/support/history", "preferences?scope=user::alice"]  # fmt: skip
    for who in (world.operator, world.owner):
        for path in paths:
            mark = "&" if "?" in path else "?"
            before = len(world.events("data.disclosed"))
            for reason in ("", "%20", "x" * 501):
                answer = who.get(f"{path}{mark}reason={reason}")
                assert answer.outcome == (400, "validation_error"), path
            assert who.get(path).outcome == (400, "validation_error"), path
            assert len(world.events("data.disclosed")) == before
            assert who.get(f"{path}{mark}reason={'x' * 500}").status == 200
            (event,) = world.events("data.disclosed")[before:]
            assert event.reason == "x" * 500
            assert event.subject == "alice"
            assert event.outcome == "done"
    assert world.operator.forget("user::alice", "k").outcome == (400, "validation_error")
    assert world.operator.forget("user::alice", "k", query=WHY).status == 204
    assert world.events("preference.deleted")[-1].reason == WHY["reason"]
    # Writing needs none.
    assert world.operator.write("user::alice", "k", 1).status == 201


def test_refused_disclosure_keeps_its_reason(world):
    answer = world.operator.read("user::alice", "tone", query=WHY)
    assert answer.outcome == (403, "consent_required")
    assert world.events("access.denied")[-1].reason == WHY["reason"]


def test_stewards_give_a_reason_in_batches_too(world):
    world.alice.write("me", "k", 1)
    for operation in (get("user::alice", "k"), delete("user::alice", "k")):
        for atomic in (True, False):
            answer = world.operator.batch(operation, atomic=atomic)
            status = answer.status if atomic else answer.json["results"][0]["status"]
            assert status == 400
    assert world.alice.read("me", "k").status == 200
    assert world.operator.batch(put("user::alice", "l", 1)).status == 200
    answer = world.operator.batch(get("user::alice", "k"), query=WHY)
    assert answer.json["results"][0]["body"]["value"] == 1
    (event,) = world.events("data.disclosed")
    assert (event.reason, event.scope, event.key) == (WHY["reason"], "user::alice", "k")


def test_auditor_sees_the_ledger_and_no_values(world):
    world.alice.give("me", "support")
    assert world.auditor.get("consents/alice").status == 200
    assert world.auditor.get("consents/alice/support/history").status == 200
    for reason in ("", "%20", "x" * 501):
        answer = world.auditor.get(f"consents/alice?reason={reason}")
        assert answer.outcome == (400, "validation_error")
    assert world.auditor.get("consents/alice?reason=asked").status == 200
    assert world.events("data.disclosed") == []
    for path in ("preferences/global/k", "preferences", "preferences/effective?scope=global",
                 "preferences/user::alice/k", "subjects/alice/data"):  # fmt: skip
        with world.denied(1):
            assert world.auditor.get(path).outcome == (403, "permission_denied")


def test_own_data(world):
    world.alice.give("me", "support")
    world.alice.write("me", "tone", 1, ttl_seconds=60)
    world.alice.write("me", "k", 2)
    world.bob.write("me", "k", 3)
    data = world.alice.get("subjects/me/data").json
    assert data["subject"] == "alice"
    tone, k = data["preferences"]
    assert (tone["key"], tone["purpose"], k["purpose"]) == ("tone", "support", "service")
    assert tone["provenance"]["actor"] == "alice"
    assert tone["retention"]["until"] == tone["expires_at"]
    assert k["retention"]["until"] is None
    support = next(one for one in data["consents"] if one["purpose"] == "support")
    assert [one["decision"] for one in support["history"]] == ["given"]
    assert world.alice.get("subjects/alice/data").json == data
    for who in (world.bob, world.agent, world.bound, world.auditor):
        with world.denied(1):
            assert who.get("subjects/alice/data").outcome == (403, "permission_denied")


def test_what_an_agent_was_not_given_comes_before_consent(world):
    world.alice.give("me", "ads")
    assert world.alice.write("me", "banner", 1).status == 201
    definitions = [
        {**one, "purpose": "support"} if one["key"] == "banner" else one
        for one in CATALOG["definitions"]
    ]
    change_catalog(world.tenant, definitions=definitions)
    # Stored for ads, which the agent does not serve; declared for support, without consent.
    refused = world.bound.write("me", "banner", 2, query={"mode": "upsert"})
    assert (refused.code, refused.json["purpose"]) == ("purpose_not_allowed", "ads")
    refused = world.alice.write("me", "banner", 2, query={"mode": "upsert"})
    assert (refused.code, refused.json["purpose"]) == ("consent_required", "support")


@pytest.mark.parametrize("evidence", [None, "", " ", "\t\n", "\u00a0"])
def test_blank_evidence_is_none(world, evidence):
    answer = world.operator.give("alice", "support", evidence=evidence)
    assert answer.outcome == (400, "validation_error")
    assert answer.json["errors"][0]["pointer"] == "/evidence"
    assert world.alice.status_of("me", "support") == "none"


def test_an_agent_that_is_auditor_too_stays_an_agent(world):
    world.bob.give("me", "support")
    for name in ("bound", "agent"):
        getattr(world, name)  # makes the persona
        grant_role(tenant=world.tenant, user=world.personas[name].user, role=Role.AUDITOR)
    for path in ("consents/bob", "consents/bob/support/history"):
        with world.denied(1):
            assert world.bound.get(path).outcome == (403, "permission_denied")
    assert [one["purpose"] for one in world.agent.get("consents/bob").json["results"]] == [
        "support"
    ]
    assert world.agent.get("consents/bob/support/history").status == 403
    assert world.agent.get("audit").status == 403
