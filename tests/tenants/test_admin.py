"""Every table has a plain page in the admin, inside one tenant, without values."""

import json

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse

from audit.actors import SYSTEM
from audit.models import Event, Seal
from audit.sealing import seal_tenant
from consent.models import (
    ConsentEntry,
    ConsentState,
    Purpose,
    PurposeGroupPermission,
    PurposeUserPermission,
)
from preferences.models import Definition, Preference
from tenants.admin import TenantModelAdmin
from tenants.models import Subject, Tenant, TenantGroupPermission, TenantUserPermission, Token
from tenants.roles import Role
from tenants.services import grant_role
from tenants.units import unit_of_work
from tests.factories import CATALOG, events_of, make_persona, make_tenant, make_user, unique
from tests.http.client import API

PAGES = {
    model: page
    for model, page in admin.site._registry.items()
    if isinstance(page, TenantModelAdmin)
}
APPEND_ONLY = [ConsentEntry, ConsentState, Event, Seal]


def url(model, verb, *args):
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{verb}", args=args)


def enter(client, tenant):
    return client.post(url(Tenant, "enter", tenant.pk))


def signed_in(name, tenant=None, **flags):
    user = get_user_model().objects.create_user(username=unique(name), is_staff=True, **flags)
    client = Client()
    client.force_login(user)
    client.user = user
    if tenant is not None:
        assert enter(client, tenant).status_code == 302
    return client


def first(model, tenant):
    """Return the newest row of a model in a tenant."""
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        if model is Tenant:
            return tenant
        column = PAGES[model].tenant_column
        return model.objects.filter(**{column: tenant.pk}).order_by("-pk").first()


def fill(tenant):
    """Put a row into every table of a tenant."""
    alice = make_persona(tenant, "alice")
    agent = make_persona(tenant, "agent")
    api = API(tenant.slug, alice.token)
    body = {"decision": "given", "version": 1, "locale": "en"}
    assert api.post("consent/me/support/decisions", body).status in (200, 201), "consent"
    assert api.write("user::alice", "nickname", "value-nobody-sees").status == 201
    assert agent.token
    group = Group.objects.create(name=unique("group"))
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        TenantGroupPermission.objects.create(
            group=group,
            content_object=tenant,
            permission=Permission.objects.get(codename=Role.AUDITOR.codename),
        )
        PurposeGroupPermission.objects.create(
            group=group,
            content_object=Purpose.objects.get(tenant=tenant, slug="ads"),
            permission=Permission.objects.get(codename="serve_purpose"),
        )
    return tenant
