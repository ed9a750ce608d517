"""Who gives and takes rights in the admin: owners alone, and nobody above himself."""

import logging
import re

from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.urls import reverse

from audit.actors import SYSTEM
from consent.models import Purpose, PurposeGroupPermission, PurposeUserPermission
from tenants.models import Subject, Tenant, TenantGroupPermission, TenantUserPermission, Token
from tenants.roles import Role
from tenants.tokens import digest_of
from tenants.units import unit_of_work
from tests.admin.conftest import Operator, url
from tests.factories import events_of, make_persona, make_tenant, make_user, unique
from tests.http.client import API


def test_an_operator_gives_and_takes_no_rights(tenant, operator, owner):
    """Django's own permissions alone would let an operator make itself an owner."""
    group = Group.objects.create(name=unique("g"))
    operator.user.groups.add(group)
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        purpose = Purpose.objects.filter(tenant=tenant).first()
    name = operator.user.username
    before = len(events_of(tenant, "access.denied"))
    for model, body in (
        (TenantUserPermission, {"user": name, "role": "owner"}),
        (TenantGroupPermission, {"group": group.name, "role": "owner"}),
        (Token, {"user": name, "days": 1}),
        (PurposeUserPermission, {"user": name, "content_object": purpose.pk}),
        (PurposeGroupPermission, {"group": group.name, "content_object": purpose.pk}),
    ):
        assert operator.get(url(model, "add")).status_code == 403
        assert operator.post(url(model, "add"), body).status_code == 403
    role = TenantUserPermission.objects.get(user=owner.user, content_object=tenant)
    taken = {"post": "yes"}
    assert operator.post(url(TenantUserPermission, "delete", role.pk), taken).status_code == 403
    many = {"action": "delete_selected", "_selected_action": role.pk, "post": "yes"}
    assert operator.post(url(TenantUserPermission, "changelist"), many).status_code == 403
    assert operator.post(url(Tenant, "change", tenant.pk), {"slug": "mine"}).status_code == 403
    assert operator.post(url(Tenant, "add"), {"slug": "mine"}).status_code == 403
    assert TenantUserPermission.objects.filter(pk=role.pk).exists()
    assert len(events_of(tenant, "access.denied")) == before + 14


def test_an_owner_gives_and_takes_roles(tenant, owner):
    user = make_user(unique("u"))
    body = {"user": user.username, "role": "member", "subject": ""}
    assert owner.post(url(TenantUserPermission, "add"), body).status_code == 302
    assert Subject.objects.filter(tenant=tenant, user=user, external_id=user.username).exists()
    role = TenantUserPermission.objects.get(user=user, content_object=tenant)
    taken = {"action": "delete_selected", "_selected_action": role.pk, "post": "yes"}
    assert owner.post(url(TenantUserPermission, "changelist"), taken).status_code == 302
    assert not TenantUserPermission.objects.filter(pk=role.pk).exists()
    assert events_of(tenant, "role.deleted")[-1].actor == owner.user.username
    group = Group.objects.create(name=unique("g"))
    body = {"group": group.name, "role": "auditor"}
    assert owner.post(url(TenantGroupPermission, "add"), body).status_code == 302


def test_a_refused_form_keeps_what_was_typed(tenant, owner):
    answer = owner.post(
        url(TenantUserPermission, "add"),
        {"user": "nobody-of-this-name", "role": "agent", "subject": "kept"},
    )
    assert "There is no login of this name." in answer.text
    assert 'value="nobody-of-this-name"' in answer.text
    assert 'value="kept"' in answer.text
    assert '<option value="agent" selected>' in answer.text
    taken = make_persona(tenant, "alice").user
    other = make_user(unique("u"))
    body = {"user": other.username, "role": "member", "subject": taken.username}
    answer = owner.post(url(TenantUserPermission, "add"), body)
    assert "has another login" in answer.text
    assert list(answer.context["adminform"].form.errors) == ["subject"]
    answer = owner.post(url(Subject, "add"), {"external_id": "a/b", "user": ""})
    assert "holds no slash" in answer.text
    assert list(answer.context["adminform"].form.errors) == ["external_id"]


def test_a_token_is_shown_once_and_logged_nowhere(tenant, owner, caplog):
    persona = make_persona(tenant, "agent")
    body = {"user": persona.user.username, "on_behalf_of": "alice", "days": 30}
    with caplog.at_level(logging.DEBUG):
        answer = owner.post(url(Token, "add"), body)
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    [credential] = set(re.findall(r"cst_[\w-]{43}", answer.text))
    token = Token.objects.get(digest=digest_of(credential))
    assert (token.tenant_id, token.on_behalf_of, token.user) == (tenant.pk, "alice", persona.user)
    assert API(tenant.slug, credential).get("whoami").status == 200
    for address in (
        url(Token, "changelist"),
        url(Token, "change", token.pk),
        reverse("admin:index"),
    ):
        text = owner.get(address).text
        assert credential not in text
        assert token.digest not in text
    assert credential not in caplog.text
    assert credential not in str(dict(owner.session))
    logged = LogEntry.objects.get(user=owner.user)
    assert (logged.object_repr, logged.change_message) == (f"token {token.pk}", "")
    assert events_of(tenant, "token.created")[-1].actor == owner.user.username


def test_tokens_are_for_those_who_have_a_role(tenant, owner):
    stranger = make_user(unique("u"))
    body = {"user": stranger.username, "on_behalf_of": "", "days": 30}
    answer = owner.post(url(Token, "add"), body)
    assert "has no role in this tenant" in answer.text
    body = {"user": owner.user.username, "on_behalf_of": "alice", "days": 30}
    assert "Only an agent" in owner.post(url(Token, "add"), body).text
    assert owner.post(url(Token, "add"), {**body, "days": 0}).status_code == 200
    assert not Token.objects.filter(user__in=[stranger, owner.user]).exists()


def test_a_login_with_grants_can_be_deleted(boss):
    """Roles, grants and tokens go along, each with an event that names who did it."""
    tenant = make_tenant()
    persona = make_persona(tenant, "agent")
    user = get_user_model().objects.create_user(username=unique("leaving"))
    owner = Operator(tenant, Role.OWNER)
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        purpose = Purpose.objects.filter(tenant=tenant).first()
    body = {"user": user.username, "role": "agent", "subject": user.username}
    assert owner.post(url(TenantUserPermission, "add"), body).status_code == 302
    body = {"user": user.username, "content_object": purpose.pk}
    assert owner.post(url(PurposeUserPermission, "add"), body).status_code == 302
    assert owner.post(url(Token, "add"), {"user": user.username, "days": 1}).status_code == 200
    page = reverse("admin:auth_user_delete", args=[user.pk])
    assert boss.get(page).status_code == 200
    assert boss.post(page, {"post": "yes"}).status_code == 302
    assert not get_user_model().objects.filter(pk=user.pk).exists()
    gone = events_of(tenant, "role.deleted", "purpose_grant.deleted", "token.deleted")
    assert len(gone) == 3
    assert {event.actor for event in gone} == {boss.user.username}
    # The person stays, without a login.
    assert Subject.objects.get(tenant=tenant, external_id=user.username).user is None
    logged = LogEntry.objects.filter(user=boss.user).latest("pk")
    assert logged.object_repr == f"user {user.pk}"
    # The same for several at once.
    other = get_user_model().objects.create_user(username=unique("leaving"))
    body = {"user": other.username, "role": "agent", "subject": ""}
    assert owner.post(url(TenantUserPermission, "add"), body).status_code == 302
    many = {"action": "delete_selected", "_selected_action": other.pk, "post": "yes"}
    assert boss.post(reverse("admin:auth_user_changelist"), many).status_code == 302
    assert events_of(tenant, "role.deleted")[-1].actor == boss.user.username
    assert persona.user.pk


def test_a_tenant_is_not_overwritten(boss):
    slug = unique("made")
    assert boss.post(url(Tenant, "add"), {"slug": slug, "name": "One"}).status_code == 302
    made = Tenant.objects.get(slug=slug)
    body = {"slug": slug, "name": "Two", "revision": made.revision}
    assert boss.post(url(Tenant, "change", made.pk), body).status_code == 302
    answer = boss.post(url(Tenant, "change", made.pk), {**body, "name": "Three"})
    assert "Somebody changed this tenant" in answer.text
    assert 'value="Three"' in answer.text
    made.refresh_from_db()
    assert made.name == "Two"
    same = {**body, "revision": made.revision}
    assert "Nothing changed." in boss.post(url(Tenant, "change", made.pk), same, follow=True).text
    assert len(events_of(made, "tenant.changed")) == 1
