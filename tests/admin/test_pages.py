"""Every table has a plain page in the admin, inside one tenant, without values."""

import json

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.test import Client

from audit.actors import SYSTEM
from audit.models import Event, Seal
from audit.sealing import seal
from consent.models import (
    ConsentEntry,
    ConsentState,
    Purpose,
    PurposeGroupPermission,
    PurposeUserPermission,
    Restriction,
)
from preferences.models import Definition, Preference
from privacy.models import Erasure
from tenants.admin_base import TenantModelAdmin
from tenants.guardians import grant_guardianship
from tenants.models import Subject, Tenant, TenantGroupPermission, TenantUserPermission, Token
from tenants.roles import Role
from tenants.services import grant_role
from tenants.units import unit_of_work
from tests.admin.conftest import url
from tests.factories import CATALOG, events_of, make_persona, make_tenant, make_user, unique
from tests.http.client import API

PAGES = {
    model: page
    for model, page in admin.site._registry.items()
    if isinstance(page, TenantModelAdmin)
}
APPEND_ONLY = [ConsentEntry, ConsentState, Event, Seal, Restriction, Erasure]


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
    assert api.give("me", "support", locale="en").status in (200, 201)
    assert api.write("user::alice", "nickname", "value-nobody-sees").status == 201
    assert agent.token
    assert api.put("subjects/me/restrictions/other", {}).status == 200
    grant_guardianship(
        tenant_id=tenant.pk, username="alice", subject="kim", evidence="a paper", actor=SYSTEM
    )
    staff = API(tenant.slug, make_persona(tenant, "operator").token)
    erased = staff.post("subjects/bob/erasures", {"keys": ["theme"]}, query={"reason": "asked"})
    assert erased.status == 201
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
    seal(tenant.pk, using="default")
    return tenant


@pytest.fixture(scope="module")
def tenant(database):
    return fill(make_tenant())


@pytest.fixture(scope="module")
def other(database):
    return fill(make_tenant())


@pytest.fixture
def boss(tenant):
    return signed_in("boss", tenant, is_superuser=True)


def test_the_pages_that_exist():
    ours = {"audit", "tenants", "consent", "preferences", "privacy"}
    assert {model.__name__ for model in PAGES if model.__module__.split(".")[0] in ours} == {
        "Tenant", "Subject", "TenantUserPermission", "TenantGroupPermission", "Token", "Purpose",
        "Notice", "Definition", "UndeclaredRule", "PurposeUserPermission",
        "PurposeGroupPermission", "Preference", "ConsentEntry", "ConsentState", "Event", "Seal",
        "Restriction", "Guardianship", "Erasure",
    }  # fmt: skip


@pytest.mark.parametrize("model", PAGES, ids=lambda model: model.__name__)
def test_pages_show_rows_and_no_secret(boss, tenant, model):
    row = first(model, tenant)
    assert row is not None
    for address in (
        url(model, "changelist"), url(model, "change", row.pk), url(model, "history", row.pk),
    ):  # fmt: skip
        answer = boss.get(address)
        assert answer.status_code == 200
        assert tenant.slug in answer.text
        for name in PAGES[model].hidden:
            secret = getattr(row, name, None)
            assert not (isinstance(secret, str) and len(secret) > 5 and secret in answer.text)
    for name in PAGES[model].hidden:
        if hasattr(row, name):
            assert boss.get(url(model, "changelist"), {f"{name}__gte": "a"}).status_code == 400
    if PAGES[model].can_add:
        assert boss.get(url(model, "add")).status_code == 200


@pytest.mark.parametrize("model", APPEND_ONLY, ids=lambda model: model.__name__)
def test_what_is_append_only_takes_no_post(boss, tenant, model):
    row = first(model, tenant)
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        before = model.objects.filter(pk=row.pk).values().get()
    for verb, args in (
        ("add", ()), ("change", (row.pk,)), ("delete", (row.pk,)), ("changelist", ()),
    ):  # fmt: skip
        body = {"action": "delete_selected", "_selected_action": row.pk, "post": "yes"}
        assert boss.post(url(model, verb, *args), body).status_code == 403
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        assert model.objects.filter(pk=row.pk).values().get() == before
    denied = events_of(tenant, "access.denied")[-4:]
    assert {event.actor for event in denied} == {boss.user.username}


@pytest.mark.parametrize(
    "model", [model for model in PAGES if model is not Tenant], ids=lambda model: model.__name__
)
def test_rows_of_another_tenant_stay_out(boss, tenant, other, model):
    row = first(model, other)
    assert url(model, "change", row.pk) not in boss.get(url(model, "changelist")).text
    assert boss.get(url(model, "change", row.pk)).status_code == 302
    if PAGES[model].can_delete:
        assert boss.post(url(model, "delete", row.pk), {"post": "yes"}).status_code == 302
        assert first(model, other) == row


def test_without_a_choice_the_list_of_tenants(tenant, other):
    client = signed_in("boss", is_superuser=True)
    answer = client.get(url(Preference, "changelist"), follow=True)
    assert answer.redirect_chain == [(url(Tenant, "changelist"), 302)]
    assert "Choose a tenant first." in answer.text
    assert client.get(url(Tenant, "enter", tenant.pk)).status_code == 405


def test_staff_enter_where_they_are_owner_or_operator(tenant, other):
    client = signed_in("staff")
    client.user.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    assert enter(client, tenant).status_code == 404
    grant_role(tenant=tenant, user=client.user, role=Role.AUDITOR)
    assert enter(client, tenant).status_code == 404
    grant_role(tenant=tenant, user=client.user, role=Role.OPERATOR)
    assert enter(client, tenant).status_code == 302
    assert enter(client, other).status_code == 404
    assert client.get(url(Preference, "changelist")).status_code == 200
    listed = client.get(url(Tenant, "changelist")).text
    assert tenant.slug in listed
    assert other.slug not in listed
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        TenantUserPermission.objects.filter(user=client.user).delete()
    assert client.get(url(Preference, "changelist")).status_code == 302


def test_deleting_values_leaves_events_and_no_person_in_the_log():
    tenant = fill(make_tenant())
    boss = signed_in("boss", tenant, is_superuser=True)
    api = API(tenant.slug, make_persona(tenant, "alice").token)
    assert api.write("user::alice", "second").status == 201
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        one, two = Preference.objects.filter(tenant=tenant).values_list("pk", flat=True)
    asked = boss.get(url(Preference, "delete", one))
    assert asked.status_code == 200
    assert "value-nobody-sees" not in asked.text
    refused = boss.post(url(Preference, "delete", one), {"post": "yes"}, follow=True)
    assert "Say why" in refused.text
    why = {"post": "yes", "reason": "asked by letter"}
    assert boss.post(url(Preference, "delete", one), why).status_code == 302
    body = {"action": "delete_selected", "_selected_action": two}
    assert boss.post(url(Preference, "changelist"), body).status_code == 200
    boss.post(url(Preference, "changelist"), {**body, **why})
    events = events_of(tenant, "preference.deleted")
    assert {event.actor for event in events} == {boss.user.username}
    assert {event.reason for event in events} == {"asked by letter"}
    assert [event.record_id for event in events] == [one, two]
    entries = LogEntry.objects.filter(user=boss.user).order_by("pk")
    assert [(entry.object_repr, entry.change_message) for entry in entries] == [
        (f"preference {one}", ""),
        (f"preference {two}", ""),
    ]


def test_people_roles_and_grants(boss, tenant):
    user = make_user(unique("u"))
    name = user.username
    body = {"external_id": unique("p"), "user": name}
    for _ in range(2):
        assert boss.post(url(Subject, "add"), body).status_code == 302
    assert Subject.objects.filter(tenant=tenant, user=user).count() == 1
    for _ in range(2):
        body = {"user": name, "role": "agent"}
        assert boss.post(url(TenantUserPermission, "add"), body).status_code == 302
    granted = TenantUserPermission.objects.get(user=user, content_object=tenant)
    purpose = first(Purpose, tenant)
    body = {"user": name, "content_object": purpose.pk}
    assert boss.post(url(PurposeUserPermission, "add"), body).status_code == 302
    served = PurposeUserPermission.objects.get(user=user)
    assert served.tenant_id == tenant.pk
    for row in (served, granted):
        assert boss.post(url(type(row), "delete", row.pk), {"post": "yes"}).status_code == 302
    for action in ("subject", "role", "purpose_grant"):
        event = events_of(tenant, f"{action}.created")[-1]
        assert (event.actor, event.actor_id) == (boss.user.username, str(boss.user.pk))
    assert not LogEntry.objects.filter(user=boss.user).exclude(change_message="").exists()


def test_a_purpose_of_another_tenant_is_not_granted(boss, other):
    user = make_user(unique("u"))
    body = {"user": user.username, "content_object": first(Purpose, other).pk}
    assert boss.post(url(PurposeUserPermission, "add"), body).status_code == 200
    assert not PurposeUserPermission.objects.filter(user=user).exists()


def test_tenants_are_made_and_changed(boss):
    slug = unique("made")
    assert boss.post(url(Tenant, "add"), {"slug": slug, "name": "One"}).status_code == 302
    made = Tenant.objects.get(slug=slug)
    body = {"slug": slug, "name": "Two", "revision": made.revision}
    assert boss.post(url(Tenant, "change", made.pk), body).status_code == 302
    assert boss.post(url(Tenant, "delete", made.pk), {"post": "yes"}).status_code == 403
    made.refresh_from_db()
    assert (made.name, made.external_id) == ("Two", None)
    assert [event.actor for event in events_of(made)] == [boss.user.username] * 2


def test_tokens_are_revoked(boss, tenant):
    token = first(Token, tenant)
    body = {"action": "revoke", "_selected_action": token.pk}
    answer = boss.post(url(Token, "changelist"), body, follow=True)
    assert "Revoked: 1." in answer.text
    token.refresh_from_db()
    assert token.revoked_at is not None
    assert events_of(tenant, "token.changed")[-1].actor == boss.user.username


def test_a_catalogue_is_loaded():
    tenant = make_tenant({})
    boss = signed_in("boss", tenant, is_superuser=True)
    page = url(Definition, "load")
    assert page in boss.get(url(Definition, "changelist")).text
    assert boss.get(page).status_code == 200
    body = {"catalog": json.dumps(CATALOG)}
    assert "Add definition theme" in boss.post(page, {**body, "is_dry_run": "on"}).text
    assert first(Definition, tenant) is None
    assert "The body is not JSON" in boss.post(page, {"catalog": "{"}).text
    assert "Add definition theme" in boss.post(page, body).text
    assert first(Definition, tenant) is not None
    assert events_of(tenant, "definition.created")[-1].actor == boss.user.username
