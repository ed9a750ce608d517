"""The trail over HTTP: who reads it, what it shows, how it is narrowed and paged."""

import time
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils.timezone import now

from audit.actors import Actor
from audit.sealing import seal
from preferences.models import Preference
from tenants.models import Tenant
from tenants.roles import Role
from tenants.services import create_tenant, grant_role
from tenants.times import format_time
from tenants.tokens import issue_token
from tenants.units import unit_of_work

MEMBERS = [
    "id", "at", "action", "actor", "on_behalf_of", "subject", "target", "purpose",
    "revision_before", "revision_after", "changed", "outcome", "reason", "request_id", "sequence",
]  # fmt: skip

type Get = Callable[..., Any]


@pytest.fixture
def tenant() -> Tenant:
    return create_tenant(slug=f"t{uuid.uuid4().hex[:20]}")


def token_of(tenant: Tenant, *roles: Role, subject: str | None = None) -> str:
    user = get_user_model()._default_manager.create_user(f"u{uuid.uuid4().hex}")
    for role in roles:
        grant_role(tenant=tenant, user=user, role=role, subject=subject)
    return issue_token(user=user)[0]


@pytest.fixture
def get(tenant: Tenant) -> Get:
    """Ask for the trail as an auditor, unless another token is given."""
    auditor = token_of(tenant, Role.AUDITOR)

    def ask(token: str = auditor, method: str = "get", **query: object) -> Any:
        path = f"/api/v1/tenants/{tenant.slug}/audit"
        send = getattr(Client(), method)
        return send(f"{path}?{urlencode(query)}", headers={"Authorization": f"Bearer {token}"})

    return ask


def write(tenant: Tenant, *keys: str, actor: str = "ann", scope: str = "repo::acme/shop") -> None:
    moment = now()
    with unit_of_work(
        tenant_id=tenant.pk,
        actor=Actor(label=actor, id="7", reason="asked", request_id="req-1", on_behalf_of="zoë"),
    ):
        for key in keys:
            Preference.objects.create(
                tenant=tenant, scope=scope, key=key, value='"secret"', source="operator",
                actor=actor, provenance="{}", created_at=moment, updated_at=moment,
            )  # fmt: skip


def keys(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [event["target"]["key"] for event in answer.json()["results"]]


def test_an_event_has_the_members_of_the_contract_and_no_value(tenant: Tenant, get: Get) -> None:
    write(tenant, "style")
    answer = get(limit=1)
    (event,) = answer.json()["results"]
    assert list(event) == MEMBERS
    assert event["action"] == "preference.created"
    assert event["target"] == {"scope": "repo::acme/shop", "key": "style"}
    assert (event["actor"], event["on_behalf_of"]) == ("ann", "zoë")
    assert (event["reason"], event["request_id"], event["outcome"]) == ("asked", "req-1", "done")
    assert event["revision_before"] is None
    assert len(event["revision_after"]) == 32
    assert event["at"].endswith("Z")
    assert "secret" not in answer.content.decode()


def test_the_sequence_is_null_until_the_event_is_sealed(tenant: Tenant, get: Get) -> None:
    write(tenant, "style")
    assert get(limit=1).json()["results"][0]["sequence"] is None
    sealed, deadline = 0, time.monotonic() + 20
    while get(limit=1).json()["results"][0]["sequence"] is None:  # autovacuum can delay it
        assert time.monotonic() < deadline
        sealed += seal(tenant.pk, using="default")
    assert get(limit=1).json()["results"][0]["sequence"] == sealed


def test_newest_first_page_by_page(tenant: Tenant, get: Get) -> None:
    write(tenant, *(f"k{number}" for number in range(7)))
    first = get(limit=3, action="preference.created")
    assert keys(first) == ["k6", "k5", "k4"]
    write(tenant, "new")  # a page never moves under the reader
    client = Client(headers={"Authorization": f"Bearer {token_of(tenant, Role.OWNER)}"})
    seen = []
    following = first.json()["next"]
    while following:
        parts = urlsplit(following)
        answer = client.get(f"{parts.path}?{parts.query}")
        seen.append(keys(answer))
        following = answer.json()["next"]
    assert seen == [["k3", "k2", "k1"], ["k0"]]


def test_filters_narrow_and_add_up(tenant: Tenant, get: Get) -> None:
    write(tenant, "a", "b")
    write(tenant, "a", scope="global", actor="bob")
    assert keys(get(key="a")) == ["a", "a"]
    assert keys(get(scope="repo::ACME/Shop")) == ["b", "a"]  # as the writer's parser folds it
    assert keys(get(key="a", scope="global")) == ["a"]
    assert keys(get(actor="bob")) == ["a"]
    assert keys(get(action="preference.deleted")) == []


def test_since_counts_and_until_does_not(tenant: Tenant, get: Get) -> None:
    write(tenant, "a")
    write(tenant, "b")
    at = get(key="b").json()["results"][0]["at"]
    assert keys(get(since=at, action="preference.created")) == ["b"]
    assert keys(get(until=at, action="preference.created")) == ["a"]
    assert keys(get(since=format_time(now()))) == []


def test_me_is_the_auditors_own_scope(tenant: Tenant, get: Get) -> None:
    token = token_of(tenant, Role.AUDITOR, subject="carol")
    assert keys(get(token, scope="me")) == []
    assert get(scope="me").status_code == 403


@pytest.mark.parametrize(
    ("query", "code", "pointer"),
    [
        ({"since": "yesterday"}, "validation_error", "/query/since"),
        ({"until": "2030-01-01"}, "validation_error", "/query/until"),
        ({"since": ""}, "validation_error", "/query/since"),
        ({"limit": "0"}, "validation_error", "/query/limit"),
        ({"cursor": "x"}, "validation_error", "/query/cursor"),
        ({"subject": "x"}, "validation_error", "/query/subject"),
        ({"scope": "nowhere::x"}, "invalid_scope", None),
        ({"key": "a/b"}, "invalid_key", None),
    ],
)
def test_what_cannot_be_read_is_named(get: Get, query: Any, code: str, pointer: str | None) -> None:
    answer = get(**query)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    if pointer is not None:
        assert answer.json()["errors"][0]["pointer"] == pointer


def test_a_cursor_of_other_filters_is_refused(tenant: Tenant, get: Get) -> None:
    write(tenant, "a", "b")
    following = urlsplit(get(limit=1).json()["next"])
    cursor = following.query.split("cursor=")[1]
    assert get(limit=1, key="a", cursor=cursor).status_code == 400


@pytest.mark.parametrize("role", [Role.AUDITOR, Role.OWNER])
def test_auditor_and_owner_read_it(tenant: Tenant, get: Get, role: Role) -> None:
    assert get(token_of(tenant, role)).status_code == 200
    assert get(token_of(tenant, role), method="head").status_code == 200


@pytest.mark.parametrize(
    "roles",
    [[Role.MEMBER], [Role.OPERATOR], [Role.AGENT], [Role.AGENT, Role.AUDITOR]],
)
def test_nobody_else_does_and_the_refusal_is_an_event(
    tenant: Tenant, get: Get, roles: list[Role]
) -> None:
    answer = get(token_of(tenant, *roles))
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
    (event,) = get(action="access.denied").json()["results"]
    assert event["outcome"] == "denied"
    assert event["request_id"] == answer.headers["X-Request-ID"]


def test_another_tenants_trail_is_out_of_sight(tenant: Tenant, get: Get) -> None:
    other = create_tenant(slug=f"t{uuid.uuid4().hex[:20]}")
    write(other, "theirs")
    assert keys(get(key="theirs")) == []
    assert get(token_of(other, Role.OWNER)).status_code == 404


def test_the_trail_cannot_be_written(get: Get) -> None:
    for method in ("post", "put", "delete", "patch"):
        answer = get(method=method)
        assert answer.status_code == 405
        assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
