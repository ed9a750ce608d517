"""A host maps its own organisations and users with two settings."""

import json
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.http import HttpRequest
from django.test import Client

from tenants.callers import find_caller
from tenants.models import Subject, Tenant
from tenants.roles import Role
from tenants.services import create_tenant, grant_role
from tenants.tokens import issue_token


def tenant_of_organisation(request: HttpRequest, name: str) -> str:
    return name.removeprefix("org-")


def person_of_user(user_id: str, tenant: str) -> str:
    return f"person-{user_id}"


@pytest.fixture
def tenant() -> Tenant:
    return create_tenant(slug=f"h-{uuid4().hex[:12]}")


@pytest.fixture
def user(tenant: Tenant) -> Any:
    user = get_user_model()._default_manager.create_user(f"u-{uuid4().hex[:12]}")
    grant_role(tenant=tenant, user=user, role=Role.OPERATOR)
    return user


def test_an_organisation_becomes_a_tenant(tenant: Tenant, user: Any, settings: Any) -> None:
    settings.CONSENTFUL_TENANT_RESOLVER = f"{__name__}.tenant_of_organisation"
    token, _ = issue_token(user=user)
    client = Client()
    by_token = {"HTTP_AUTHORIZATION": f"Bearer {token}"}
    answer = client.get(f"/api/v1/tenants/org-{tenant.slug}/whoami", **by_token)
    assert (answer.status_code, json.loads(answer.content)["tenant"]) == (200, tenant.slug)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    assert client.get(f"/api/v1/tenants/org-{tenant.slug}/whoami").status_code == 200


def test_a_user_becomes_a_person(tenant: Tenant, user: Any, settings: Any) -> None:
    caller = find_caller(tenant=tenant.slug, user_id=str(user.pk))
    assert caller is not None
    assert caller.subject is None
    settings.CONSENTFUL_SUBJECT_RESOLVER = f"{__name__}.person_of_user"
    caller = find_caller(tenant=tenant.slug, user_id=str(user.pk))
    assert caller is not None
    assert caller.subject == f"person-{user.pk}"


def test_a_member_is_the_person_that_the_resolver_says(tenant: Tenant, settings: Any) -> None:
    """Otherwise a member's e-mail address, where that is the user name, would name its data."""
    settings.CONSENTFUL_SUBJECT_RESOLVER = f"{__name__}.person_of_user"
    user = get_user_model()._default_manager.create_user(f"u-{uuid4().hex[:12]}")
    grant_role(tenant=tenant, user=user, role=Role.MEMBER)
    assert Subject.objects.get(tenant=tenant, user=user).external_id == f"person-{user.pk}"


def test_a_name_with_nul_is_no_other_names_alias(tenant: Tenant, user: Any) -> None:
    caller = find_caller(tenant=f"{tenant.slug}\x00", user_id=str(user.pk))
    assert caller is not None
    assert caller.tenant_id == 0
    token, _ = issue_token(user=user)
    answer = Client().get(
        f"/api/v1/tenants/{tenant.slug}%00/whoami", headers={"Authorization": f"Bearer {token}"}
    )
    assert answer.status_code == 404
