"""Restriction (GDPR article 18): kept, shown to the person, and not used by anybody."""

import psycopg
import pytest

from audit.actors import SYSTEM
from consent.verification import check_consent
from tenants.units import unit_of_work
from tests.http.client import get, put, race
from tests.http.conftest import World

WHY = {"reason": "asked by phone"}
MINE = "subjects/me/restriction"


def of(subject: str, key: str | None = None) -> str:
    return f"subjects/{subject}/restriction" + (f"s/{key}" if key else "")


@pytest.fixture
def filled(world: World) -> World:
    """Alice consented to `support`, and two records serve it."""
    world.alice.give("me", "support")
    assert world.alice.write("me", "reply_style", "brief").status == 201
    assert world.alice.write("me", "tone", "warm").status == 201
    return world


def test_nobody_uses_what_a_person_restricted(filled: World) -> None:
    assert filled.alice.put(MINE, {}).json["key"] is None
    for caller in (filled.alice, filled.agent, filled.bound, filled.operator, filled.owner):
        scope = "me" if caller in (filled.alice, filled.bound) else "user::alice"
        with filled.denied(2):
            read = caller.read(scope, "tone", query=WHY)
            written = caller.write(scope, "tone", "cool", query={"mode": "upsert"})
        assert read.outcome == written.outcome == (403, "restricted")
        assert read.json["purpose"] == written.json["purpose"] == "support"
    # Also what rests on a contract, and what is not there yet.
    assert filled.alice.write("me", "limited", 1).outcome == (403, "restricted")
    assert filled.alice.read("me", "limited").outcome == (403, "restricted")


def test_lists_and_batches_withhold_it(filled: World) -> None:
    filled.alice.put(MINE, {})
    answer = filled.alice.listing(scope="me").json
    assert answer["results"] == []
    assert answer["withheld"] == [{"purpose": "support", "reason": "restricted"}]
    effective = filled.alice.get("preferences/effective", query={"scope": "me", "key": "tone"}).json
    assert (effective["results"], effective["withheld"]) == (
        [], [{"purpose": "support", "reason": "restricted"}],
    )  # fmt: skip
    batch = filled.alice.batch(
        get("me", "tone"), put("me", "reply_style", "brief", mode="upsert"), atomic=False
    )
    assert [one["body"]["code"] for one in batch.json["results"]] == ["restricted", "restricted"]
    assert filled.alice.batch(get("me", "tone")).outcome == (403, "restricted")


def test_storage_access_deletion_and_decisions_stay(filled: World) -> None:
    filled.alice.put(MINE, {})
    data = filled.alice.get("subjects/me/data").json
    assert {one["key"]: one["value"] for one in data["preferences"]} == {
        "reply_style": "brief", "tone": "warm",
    }  # fmt: skip
    assert filled.alice.withdraw("me", "support").json["status"] == "withdrawn"
    # What is shut for two reasons names the one that was there without the restriction.
    assert filled.alice.read("me", "tone").outcome == (403, "consent_required")
    assert filled.alice.give("me", "support").json["status"] == "given"
    assert (
        filled.alice.get("consents/me/support/history").json["results"][-1]["decision"] == "given"
    )
    assert filled.alice.forget("me", "tone").status == 204


def test_lifting_opens_it_again_as_it_was(filled: World) -> None:
    filled.alice.put(MINE, {})
    assert filled.alice.delete(MINE).status == 204
    assert filled.alice.read("me", "tone").json["value"] == "warm"
    assert filled.alice.delete(MINE).outcome == (404, "not_found")
    assert (
        len(filled.events("restriction.created")) == len(filled.events("restriction.lifted")) == 1
    )


def test_restricting_again_adds_nothing(filled: World) -> None:
    first = filled.alice.put(MINE, {}).json
    assert filled.alice.put(MINE, {}).json == first
    answers = race([lambda: filled.alice.put(of("me", "tone"), {}) for _ in range(4)])
    assert {answer.status for answer in answers} == {200}
    rows = filled.alice.get("subjects/me/restrictions").json["results"]
    assert [row["key"] for row in rows] == [None, "tone"]


def test_one_record_alone(filled: World) -> None:
    assert filled.alice.put(of("me", "tone"), {}).json["key"] == "tone"
    assert filled.alice.read("me", "tone").outcome == (403, "restricted")
    assert filled.agent.read("user::alice", "tone").outcome == (403, "restricted")
    assert filled.alice.write("me", "tone", 1, query={"mode": "upsert"}).outcome == (
        403, "restricted",
    )  # fmt: skip
    assert filled.alice.read("me", "reply_style").status == 200
    listed = filled.alice.listing(scope="me").json
    assert [one["key"] for one in listed["results"]] == ["reply_style"]
    assert listed["withheld"] == [{"purpose": "support", "reason": "restricted"}]
    # A filter that leaves it out has nothing to withhold.
    assert filled.alice.listing(scope="me", key_prefix="reply").json["withheld"] == []
    assert filled.alice.delete(of("me", "tone")).status == 204
    assert filled.alice.read("me", "tone").json["value"] == "warm"


def test_a_restricted_key_tells_nothing_without_consent(filled: World) -> None:
    """Whether something was there to be restricted is nobody's business."""
    filled.alice.put(of("me", "tone"), {})
    filled.alice.withdraw("me", "support")
    assert filled.alice.read("me", "tone").outcome == (403, "consent_required")
    assert filled.alice.listing(scope="me").json["withheld"] == [
        {"purpose": "support", "reason": "consent_required"}
    ]


def test_an_agent_learns_first_that_it_may_not(filled: World) -> None:
    filled.alice.put(MINE, {})
    assert filled.agent.read("user::alice", "banner").outcome == (403, "purpose_not_allowed")


def test_an_operator_says_how_it_knows_and_why_it_lifts(filled: World) -> None:
    operator = filled.operator
    assert operator.put(of("alice"), {}).outcome == (400, "validation_error")
    assert operator.put(of("alice"), {"evidence": "letter of 3 May"}).json["method"] == "operator"
    assert filled.alice.read("me", "tone").outcome == (403, "restricted")
    assert operator.delete(of("alice")).outcome == (400, "validation_error")
    assert operator.delete(of("alice"), query={"reason": "the value was corrected"}).status == 204
    # The notice: who lifted it, when and why.
    (row,) = filled.alice.get("subjects/me/restrictions").json["results"]
    assert (row["lifted_by"], row["reason"]) == ("operator", "the value was corrected")
    assert row["lifted_at"] > row["at"]
    (event,) = filled.events("restriction.lifted")
    assert (event.actor, event.subject, event.reason) == (
        "operator", "alice", "the value was corrected",
    )  # fmt: skip
    assert set(event.changed) == {"lifted_at", "lifted_by", "lifted_because"}


@pytest.mark.parametrize("name", ["bob", "agent", "bound", "auditor"])
def test_nobody_else_restricts(filled: World, name: str) -> None:
    caller = getattr(filled, name)
    with filled.denied(3):
        assert caller.put(of("alice"), {"evidence": "x"}).outcome == (403, "permission_denied")
        assert caller.delete(of("alice"), query=WHY).outcome == (403, "permission_denied")
        assert caller.get("subjects/alice/restrictions", query=WHY).outcome == (
            403, "permission_denied",
        )  # fmt: skip
    assert filled.alice.read("me", "tone").status == 200


def test_a_person_who_is_not_known_yet(world: World) -> None:
    world.operator.put(of("carol"), {"evidence": "mail"})
    assert world.operator.write("user::carol", "limited", 1).outcome == (403, "restricted")
    assert world.operator.write("user::dave", "limited", 1).status == 201


def test_another_tenant_is_not_concerned(filled: World) -> None:
    other = World()
    filled.alice.put(MINE, {})
    assert other.alice.write("me", "limited", 1).status == 201


def test_a_restriction_waits_for_writes_in_flight(filled: World, owner_does) -> None:
    """Whatever was written stands before it; once it has been answered, nothing lands."""
    for _ in range(5):
        writers = [
            (lambda n=n: filled.agent.write("user::alice", "tone", n, query={"mode": "upsert"}))
            for n in range(4)
        ]
        *written, restricted = race([*writers, lambda: filled.alice.put(MINE, {})])
        assert restricted.status == 200
        (row,) = [
            row
            for row in filled.alice.get("subjects/me/restrictions").json["results"]
            if row["lifted_at"] is None
        ]
        for answer in written:
            assert answer.outcome in ((200, None), (403, "restricted"))
            if answer.status == 200:
                assert answer.json["updated_at"] < row["at"]
        filled.alice.delete(MINE)


def test_plain_sql_waits_too_and_is_seen(filled: World, superuser: psycopg.Connection) -> None:
    superuser.execute(
        "INSERT INTO consentful_restriction (tenant_id, subject_id, actor, method)"
        " SELECT tenant_id, id, 'psql', 'operator' FROM consentful_subject"
        " WHERE tenant_id = %s AND external_id = 'alice'",
        [filled.tenant.pk],
    )
    assert filled.alice.read("me", "tone").outcome == (403, "restricted")
    superuser.execute("DELETE FROM consentful_restriction WHERE tenant_id = %s", [filled.tenant.pk])
    assert filled.alice.read("me", "tone").status == 200


def test_a_key_that_is_none(world: World) -> None:
    assert world.alice.put(of("me", "%20x"), {}).outcome == (400, "invalid_key")
    assert world.alice.put(MINE, {"evidense": "x"}).outcome == (400, "validation_error")


def test_a_gate_that_was_opened_by_hand_is_found(
    filled: World, superuser: psycopg.Connection
) -> None:
    filled.alice.put(MINE, {})
    assert verify_consent(filled) == []
    for table, condition in (
        ("consentful_subject", "external_id = 'alice'"),
        ("consentful_consent_state", "true"),
    ):
        superuser.execute(
            f"UPDATE {table} SET restricted = NULL WHERE tenant_id = %s AND {condition}",
            [filled.tenant.pk],
        )
        assert verify_consent(filled) == ["restriction_differs"]
        superuser.execute(
            f"UPDATE {table} SET restricted = 'all' WHERE tenant_id = %s AND {condition}",
            [filled.tenant.pk],
        )
    assert verify_consent(filled) == []


def verify_consent(world: World) -> list[str]:
    with unit_of_work(tenant_id=world.tenant.pk, actor=SYSTEM):
        return [one.code for one in check_consent(world.tenant.pk, "default")]
