"""Double opt-in: asked for, and given by whoever brings the token; nothing is given in between."""

from typing import Any

import psycopg
import pytest

from consent.confirmations import ConfirmationRequest
from tests.factories import change_catalog
from tests.http.client import race
from tests.http.conftest import Clock, World
from tests.rights.conftest import rich_catalog

CONFIRM = "consents/me/letters/confirmation"
sent: list[ConfirmationRequest] = []


def keep(request: ConfirmationRequest) -> None:
    """The host's sender of these tests."""
    sent.append(request)


@pytest.fixture(autouse=True)
def sender(settings: Any) -> None:
    settings.CONSENTFUL_CONFIRMATION_SENDER = f"{__name__}.keep"
    sent.clear()


def ask(world: World, **members: Any) -> str:
    answer = world.alice.give("me", "letters", **members)
    assert answer.status == 202
    assert answer.json["confirmation"]["token"] is None
    return sent[-1].token


def confirm(world: World, token: str) -> Any:
    return world.alice.post(CONFIRM, {"token": token})


def test_nothing_is_given_before_the_token_is_brought(world: World) -> None:
    token = ask(world)
    assert world.alice.status_of("me", "letters") == "none"
    assert world.alice.write("me", "letters", 1).outcome == (403, "consent_required")
    assert world.alice.get("consents/me/letters/history").json["results"] == []
    answer = confirm(world, token)
    assert (answer.status, answer.json["status"], answer.json["version"]) == (200, "given", 1)
    assert world.alice.write("me", "letters", 1).status == 201
    (entry,) = world.alice.get("consents/me/letters/history").json["results"]
    assert entry["method"] == "double_opt_in"


def test_what_the_host_is_given(world: World) -> None:
    token = ask(world)
    (request,) = sent
    assert (request.tenant, request.subject, request.purpose, request.locale, request.version) == (
        world.tenant.slug, "alice", "letters", "en", 1,
    )  # fmt: skip
    assert len(token) >= 43


def test_a_token_is_good_once(world: World) -> None:
    token = ask(world)
    assert sorted(one.status for one in race([lambda: confirm(world, token)] * 4)) == [
        200, 404, 404, 404,
    ]  # fmt: skip
    assert len(world.alice.get("consents/me/letters/history").json["results"]) == 1


def test_a_later_request_replaces_it(world: World) -> None:
    first, second = ask(world), ask(world)
    assert confirm(world, first).outcome == (404, "not_found")
    assert confirm(world, second).json["status"] == "given"


@pytest.mark.parametrize("decision", ["refused", "withdrawn"])
def test_a_no_makes_it_worthless(world: World, decision: str) -> None:
    world.alice.decide("me", "letters", "refused")
    token = ask(world)
    # The status is a no already, so nothing is added to the ledger: the token goes all the same.
    world.alice.decide("me", "letters", decision)
    assert confirm(world, token).outcome == (404, "not_found")
    assert world.alice.status_of("me", "letters") == "refused"


def test_it_expires(world: World, frozen: Clock) -> None:
    token = ask(world)
    frozen.move(72 * 3600 - 1)
    world.alice.post(CONFIRM, {"token": "another"})
    frozen.move(1)
    assert confirm(world, token).outcome == (404, "not_found")
    assert world.alice.status_of("me", "letters") == "none"


def test_a_deadline_and_a_material_notice(world: World) -> None:
    token = ask(world, expires_at="2090-01-01T00:00:00Z")
    assert confirm(world, token).json["expires_at"] == "2090-01-01T00:00:00.000000Z"
    token = ask(world)
    catalog = rich_catalog()
    (letters,) = [one for one in catalog["purposes"] if one["slug"] == "letters"]
    letters["notices"] += [{"version": 2, "locale": "en", "text": "New.", "material": True}]
    change_catalog(world.tenant, **catalog)
    assert confirm(world, token).outcome == (409, "stale_revision")
    assert world.alice.status_of("me", "letters") == "outdated"


def test_asking_again_leaves_what_was_given(world: World) -> None:
    confirm(world, ask(world))
    ask(world)
    assert world.alice.status_of("me", "letters") == "given"


def test_only_its_digest_is_stored(world: World, superuser: psycopg.Connection[Any]) -> None:
    token = ask(world)
    rows = superuser.execute(
        "SELECT to_json(c)::text FROM consentful_confirmation c WHERE tenant_id = %s",
        [world.tenant.pk],
    ).fetchall()
    assert len(rows) == 1
    assert token not in rows[0][0]
    assert all(token not in str(vars(one)) for one in world.events())


def test_without_a_sender_an_operator_alone_gets_it(world: World, settings: Any) -> None:
    settings.CONSENTFUL_CONFIRMATION_SENDER = None
    assert world.alice.give("me", "letters").outcome == (400, "validation_error")
    answer = world.operator.give("alice", "letters", evidence="form on the desk")
    assert answer.status == 202
    assert confirm(world, answer.json["confirmation"]["token"]).json["status"] == "given"


def test_a_repeated_request_repeats_its_answer_without_the_token(
    world: World, settings: Any
) -> None:
    settings.CONSENTFUL_CONFIRMATION_SENDER = None
    headers = {"Idempotency-Key": "once"}
    members = {"evidence": "form", "headers": headers}
    first = world.operator.give("alice", "letters", **members)
    again = world.operator.give("alice", "letters", **members)
    assert again.status == 202
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json["confirmation"] == {**first.json["confirmation"], "token": None}


def fail(request: ConfirmationRequest) -> None:
    sent.append(request)
    raise OSError(f"no route to {request.subject}")


def test_a_message_that_cannot_be_sent_leaves_nothing_pending(
    world: World, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.CONSENTFUL_CONFIRMATION_SENDER = f"{__name__}.fail"
    headers = {"Idempotency-Key": "once"}
    answer = world.alice.give("me", "letters", headers=headers)
    assert answer.outcome == (503, "store_unavailable")
    assert "could not be sent" in answer.json["detail"]
    assert int(answer.headers["Retry-After"]) >= 1
    assert confirm(world, sent[-1].token).outcome == (404, "not_found")
    assert world.alice.get("subjects/me/data").json["confirmations"] == []
    assert "OSError" in caplog.text
    assert "alice" not in caplog.text
    # The same request is a fresh one, not the answer that was never true.
    settings.CONSENTFUL_CONFIRMATION_SENDER = f"{__name__}.keep"
    again = world.alice.give("me", "letters", headers=headers)
    assert (again.status, "Idempotency-Replayed" in again.headers) == (202, False)
    assert confirm(world, sent[-1].token).status == 200


@pytest.mark.parametrize("name", ["bob", "agent", "bound", "auditor"])
def test_the_token_alone_is_no_credential(world: World, name: str) -> None:
    token = ask(world)
    answer = getattr(world, name).post("consents/alice/letters/confirmation", {"token": token})
    assert answer.outcome == (403, "permission_denied")
    assert confirm(world, token).status == 200


def test_nobody_is_told_where_the_host_rolls_back(world: World) -> None:
    world.alice.give("me", "letters", version=9)
    assert sent == []
    assert confirm(world, "x").outcome == (404, "not_found")
    assert world.alice.post(CONFIRM, {}).outcome == (400, "validation_error")


def test_only_consent_is_confirmed(world: World) -> None:
    from tenants.exceptions import ValidationError

    with pytest.raises(ValidationError, match="Only consent is confirmed"):
        change_catalog(
            world.tenant,
            purposes=[{"slug": "odd", "lawful_basis": "contract", "double_opt_in": True}],
            definitions=[], undeclared={},
        )  # fmt: skip
