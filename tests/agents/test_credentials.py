"""What an agent is kept from remembering, and what it is not kept from."""

import json
import time

import pytest

from agents.credentials import FORMS, find_credential

# Put together here, so that no scanner takes this file for a leak.
A, B = "abcdefghijklmnopqrstuvwxyz0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

CREDENTIALS = {
    "private key": [
        "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE", "-----BEGIN " + "PRIVATE KEY-----",
        "-----BEGIN OPENSSH " + "PRIVATE KEY-----", "-----BEGIN EC " + "PRIVATE KEY-----",
        "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----", "-----BEGIN ENCRYPTED " + "PRIVATE KEY-----",
        "PuTTY-User-Key-" + "File-3: ssh-ed25519", "AGE-SECRET-" + "KEY-1" + B,
    ],
    "bearer token of this service": ["cst_" + (A + B)[:43]],
    "JSON web token": ["eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0." + A[:20]],
    "AWS access key": ["AKIA" + "IOSFODNN7EXAMPLE", "ASIA" + "IOSFODNN7EXAMPLE"],
    "GitHub token": ["ghp_" + A, "gho_" + A, "ghs_" + A, "github_pat_" + A[:22] + "_" + A],
    "GitLab token": ["glpat-" + A[:20], "gldt-" + A[:20]],
    "Slack token": ["xoxb-" + "123456789012-123456789012-" + A[:24], "xapp-1-" + A[:20],
                    "https://hooks.slack.com/" + "services/T01234567/B01234567/" + A[:24]],
    "Stripe key": ["sk_live_" + A[:24], "rk_test_" + A[:24], "whsec_" + A[:32]],
    "Google API key": ["AIza" + (B + A)[:35], "ya29." + A[:30], "GOCSPX-" + A[:24]],
    "API key of a model provider": ["sk-ant-api03-" + A, "sk-proj-" + A, "sk-" + (A + B)[:48],
                                    "hf_" + (A + B)[:34]],
    "package registry token": ["npm_" + A, "pypi-AgE" + (A + B)[:50], "rubygems_" + "0a" * 20],
    "SendGrid key": ["SG." + A[:22] + "." + A],
    "DigitalOcean token": ["dop_v1_" + "0a" * 32],
    "bot token": ["123456789:AA" + (A + B)[:33]],
    "Authorization header": ["Authorization: Bearer " + A, "authorization=Basic " + "dXNlcjpwYXNz"],
    "password in an address": ["postgres://user:" + "secretpw@db.example/x",
                               "redis://:" + "secretpw@10.0.0.1:6379", "https://a:" + "bcd@x.example"],
    "named secret": ["password = hunter2", "Password: 'correct horse'", "my password is hunter2",
                     "api_key=" + A[:10], "API-Key: " + A[:10], '{"client_secret": "' + A[:12] + '"}',
                     "the passphrase was tr0ub4dor&3", "PGPASSWORD=hunter22"],
}  # fmt: skip

HARMLESS = [
    "brief", "Uses tabs, releases from main on Fridays", "https://github.com/acme/checkout/pull/12",
    "4f0c91ab4f0c91ab4f0c91ab4f0c91ab", "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "The password is kept in the vault", "asks for a password: ", "never store an API key here",
    "password managers: prefers the browser's", "skip the tests", "risk-averse, likes sk-learn",
    "postgres://db.example/x", "http://localhost:8000/a@b", "mail alice@example.com",
    "-----BEGIN CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5",
    "set DATABASE_PASSWORD=${VAULT_PASSWORD}", "password=<ask the operator>", "token_budget: 4000",
    "550e8400-e29b-41d4-a716-446655440000", "12:30:45 meeting", "Basic English", "", "ключ: значение",
]  # fmt: skip


def test_every_form_has_its_examples():
    assert set(CREDENTIALS) == set(FORMS)


@pytest.mark.parametrize(("kind", "texts"), CREDENTIALS.items(), ids=list(CREDENTIALS))
def test_credentials_are_found_wherever_they_stand(kind, texts):
    for text in texts:
        for value in (text, f"note: {text}\nand more", [1, [text]], {"a": {"b": text}}, {text: 1}):
            assert find_credential(value) == kind, (value, find_credential(value))


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_notes_are_none(text):
    for value in (text, [text], {"note": text}, {text: True}):
        assert find_credential(value) is None, (value, find_credential(value))


def test_the_name_tells_too():
    for name in ("password", "API-Key", "api_key", "ClientSecret", "access token", "pass\uff57ord"):
        assert find_credential("swordfish", name=name) == "named secret"
        assert find_credential({"list": [{name: ["swordfish"]}]}) == "named secret"
        assert find_credential({name: ""}) is None
        assert find_credential({name: True}) is None
    for name in ("password_manager", "secretary", "tokens", "key", "passwords_seen"):
        assert find_credential("swordfish", name=name) is None


def test_disguised_letters_are_read():
    assert (
        find_credential("\uff30\uff21\uff33\uff33\uff37\uff2f\uff32\uff24: swordfish")
        == "named secret"
    )


def test_long_text_takes_no_long_time():
    for piece in ("a", "-----BEGIN ", "eyJ", "xoxb-1", "password ", "a://b:", "https://a:b", "sk-", "1:AA",
                  "eyJaaaaaaaaaa.", "eyJ-", "authorization: ", " \t", "M", "api_key=", "SG.aaaaaaaaaaaaaaaa."):  # fmt: skip
        text = piece * (64 * 1024 // len(piece))
        started = time.perf_counter()
        find_credential(text)
        assert time.perf_counter() - started < 0.4, piece


def test_credentials_are_refused_and_not_echoed(world, connect):
    agent = connect("bound")
    secret = "ghp_" + A
    for arguments in (
        {"key": "k", "value": secret},
        {"key": "k", "value": {"deep": [f"my token: {secret}"]}},
        {"key": "k", "value": 1, "tags": [secret]},
        {"key": "k", "value": 1, "detail": f"alice said {secret}"},
        {"key": secret, "value": 1},
        {"key": "k", "value": 1, "scope": f"project::{secret}"},
    ):
        reply = agent.call("set_memory", **arguments)
        assert reply.code == "invalid_value"
        assert reply.refusal["rule"] == "GitHub token"
        assert secret not in reply.content.decode()
        assert reply.refusal["errors"][0]["pointer"].lstrip("/") in arguments
    refused = agent.call("set_memory", key="password", value="swordfish").refusal
    assert (refused["code"], refused["rule"]) == ("invalid_value", "named secret")
    assert "swordfish" not in json.dumps(refused)
    assert world.alice.listing().json["results"] == []
    assert agent.call("set_memory", key="k", value="4f0c91ab4f0c91ab4f0c91ab4f0c91ab").given
