"""Consent receipts after ISO/IEC TS 27560: verified with nothing but the published keys."""

import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.http.conftest import World

RECEIPT = "consents/me/support/receipt"


@pytest.fixture(autouse=True)
def key(settings: Any) -> None:
    settings.CONSENTFUL_SIGNING_KEY = (
        Ed25519PrivateKey.generate()
        .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        .decode()
    )
    settings.CONSENTFUL_SIGNING_KEY_FALLBACKS = None


def verified(world: World, answer: Any) -> dict[str, Any]:
    """What any JOSE library makes of the receipt, with the keys that everybody can fetch."""
    keys = world.stranger.get("/api/v1/keys").json["keys"]
    jws = answer.json["jws"]
    (public,) = [one for one in keys if one["kid"] == jwt.get_unverified_header(jws)["kid"]]
    assert public["kid"] == answer.json["key"]
    payload: dict[str, Any] = json.loads(
        jwt.api_jws.decode(jws, jwt.PyJWK(public).key, algorithms=["EdDSA"])
    )
    assert payload == answer.json["receipt"]
    return payload


def test_it_verifies_and_tells_the_decision(world: World) -> None:
    state = world.alice.give("me", "support", expires_at="2090-01-01T00:00:00Z").json
    receipt = verified(world, world.alice.get(RECEIPT))
    assert receipt["schema_version"] == "ISO/IEC TS 27560:2023"
    assert receipt["receipt_id"] == receipt["record_id"] == state["entry"]
    assert receipt["pii_principal_id"] == "alice"
    processing = receipt["pii_processing"]
    assert processing["language"] == "en"
    assert processing["privacy_notice"]["text"] == "We remember how you like our replies."
    (purpose,) = processing["purposes"]
    assert (purpose["purpose"], purpose["lawful_basis"]) == ("Support replies", "consent")
    assert purpose["withdrawal_method"].endswith(f"{world.tenant.slug}/consents/me/support")
    (event,) = receipt["event"]
    assert (event["event_time"], event["event_state"], event["entity_id"]) == (
        state["since"], "ConsentGiven", "alice",
    )  # fmt: skip
    assert (event["event_type"], event["expression_method"]) == ("explicit", "user_confirmed")
    assert event["validity_duration"].startswith("PT")
    assert event["notice_digest"] == processing["privacy_notice"]["digest"]
    (party,) = receipt["party_identification"]
    assert party["party_role"] == "controller"


def test_an_altered_receipt_does_not_verify(world: World) -> None:
    world.alice.give("me", "support")
    answer = world.alice.get(RECEIPT)
    head, body, signature = answer.json["jws"].split(".")
    keys = world.stranger.get("/api/v1/keys").json["keys"]
    with pytest.raises(jwt.InvalidSignatureError):
        jwt.api_jws.decode(
            f"{head}.{body[:-2]}{'AA' if body[-2:] != 'AA' else 'BB'}.{signature}",
            jwt.PyJWK(keys[0]).key, algorithms=["EdDSA"],
        )  # fmt: skip
    assert jwt.get_unverified_header(answer.json["jws"])["typ"] == "consentful-consent-receipt"


def test_the_newest_or_a_named_entry(world: World) -> None:
    first = world.alice.give("me", "support").json["entry"]
    world.alice.withdraw("me", "support")
    newest = verified(world, world.alice.get(RECEIPT))
    assert [one["event_state"] for one in newest["event"]] == ["ConsentGiven", "ConsentWithdrawn"]
    # The text behind a withdrawal is the one that was agreed to.
    assert newest["pii_processing"]["privacy_notice"]["version"] == 1
    named = world.alice.get(RECEIPT, query={"entry": first})
    assert verified(world, named)["receipt_id"] == first
    assert [one["event_state"] for one in named.json["receipt"]["event"]] == ["ConsentGiven"]
    # Asking again gives the same text.
    assert world.alice.get(RECEIPT, query={"entry": first}).json == named.json


def test_who_expressed_it_is_named(world: World) -> None:
    world.operator.give("alice", "support", evidence="letter")
    receipt = verified(world, world.alice.get(RECEIPT))
    assert receipt["event"][0]["entity_id"] == "operator"


def test_an_objection_has_one_too(world: World) -> None:
    world.alice.put("subjects/me/objections/news", {})
    receipt = verified(world, world.alice.get("consents/me/news/receipt"))
    assert receipt["pii_processing"]["purposes"][0]["lawful_basis"] == "legitimate_interest"


def test_there_is_none_of_nothing(world: World, settings: Any) -> None:
    assert world.alice.get(RECEIPT).outcome == (404, "not_found")
    world.alice.give("me", "support")
    assert world.alice.get(RECEIPT, query={"entry": "0" * 32}).outcome == (404, "not_found")
    assert world.alice.get("consents/me/nothing/receipt").outcome == (404, "not_found")
    settings.CONSENTFUL_SIGNING_KEY = None
    assert world.alice.get(RECEIPT).outcome == (404, "not_found")


def test_who_may_see_it(world: World) -> None:
    world.alice.give("me", "support")
    path, why = "consents/alice/support/receipt", {"reason": "asked by mail"}
    for name, status in (("bob", 403), ("agent", 403), ("auditor", 200), ("owner", 200)):
        assert getattr(world, name).get(path, query=why).status == status
    assert world.operator.get(path).outcome == (400, "validation_error")
    with world.denied(0):
        world.operator.get(path, query=why)
    assert world.events("data.disclosed")[-1].reason == "asked by mail"
