"""Staff who guess addresses, ids and parameters of a tenant that is not theirs, or hold too few rights."""

import json
import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.test import Client
from django.urls import reverse

from audit.actors import SYSTEM
from audit.sealing import seal
from consent.models import Purpose, Restriction
from preferences.models import Definition, Preference
from privacy.models import Erasure
from tenants.models import Subject, Tenant, TenantUserPermission, Token
from tenants.roles import Role
from tenants.units import unit_of_work
from tests.admin.conftest import PASSWORD, Operator, url
from tests.admin.records import WHY, fields_of, page, row_of, show
from tests.factories import (
    CATALOG,
    Persona,
    change_catalog,
    events_of,
    make_persona,
    make_tenant,
    unique,
)
from tests.http.client import API

MARK = "zzforeignzz"


@pytest.fixture(scope="module")
def foreign(database: str) -> Tenant:
    """A tenant in which everything bears a mark: name, persons, keys, values, texts, reasons."""
    tenant = make_tenant()
    Tenant.objects.filter(pk=tenant.pk).update(name=MARK)
    purpose = {
        "slug": MARK, "title": MARK, "lawful_basis": "consent",
        "notices": [{"version": 1, "locale": "en", "text": MARK}],
    }  # fmt: skip
    definition = {
        "key": MARK, "purpose": MARK, "scopes": ["user"], "writers": ["subject"],
        "description": MARK,
    }  # fmt: skip
    change_catalog(
        tenant,
        purposes=[*CATALOG["purposes"], purpose],
        definitions=[*CATALOG["definitions"], definition],
    )
    person = Persona(tenant, f"{MARK}-{unique('p')}", Role.MEMBER)
    api = API(tenant.slug, person.token)
    api.put(f"consents/me/{MARK}", {"decision": "given", "version": 1, "evidence": MARK})
    assert api.put(f"preferences/me/{MARK}", {"value": MARK}).status == 201
    Persona(tenant, f"{MARK}-{unique('a')}", Role.AGENT, purposes=(MARK,))
    seal(tenant.pk, using="default")
    return tenant


def rows_of(tenant: Tenant) -> dict[Any, int]:
    """Return the id of one row of every model with a page, where the tenant has one."""
    found = {}
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        for model in admin.site._registry:
            if not model._meta.app_label.startswith("consentful_"):
                continue
            names = {field.name for field in model._meta.concrete_fields}
            if model is Tenant:
                rows = model._default_manager.filter(pk=tenant.pk)
            elif "tenant" in names or "tenant_id" in names:
                rows = model._default_manager.filter(tenant_id=tenant.pk)
            elif "content_object" in names:
                path = "content_object" if "tenant" in model.__name__.lower() else None
                rows = model._default_manager.filter(
                    **{path or "content_object__tenant": tenant.pk}
                )
            else:
                continue
            row = rows.order_by("-pk").first()
            if row is not None:
                found[model] = row.pk
    return found


def intruders(tenant: Tenant) -> dict[str, Client]:
    everything = Operator(None)
    everything.user.user_permissions.set(Permission.objects.exclude(content_type__app_label="auth"))
    return {
        "owner": Operator(tenant, Role.OWNER),
        "operator": Operator(tenant, Role.OPERATOR),
        "boss in another tenant": Operator(tenant, is_superuser=True),
        "staff without a role": everything,
        "stranger": Client(),
    }


@pytest.mark.parametrize(
    "who",
    ["owner", "operator", "boss in another tenant", "staff without a role", "stranger"],
)
def test_no_address_shows_a_row_of_another_tenant(
    tenant: Tenant, foreign: Tenant, who: str
) -> None:
    client = intruders(tenant)[who]
    rows = rows_of(foreign)
    assert len(rows) >= 12
    seen = []
    for model, pk in rows.items():
        if model is Tenant and who.startswith("boss"):
            continue  # a superuser sees the list of all
        for verb in ("change", "delete", "history"):
            address = url(model, verb, pk)
            seen += [
                (one, client.get(one)) for one in (address, f"{address}?_popup=1&_to_field=id")
            ]
            body = {"post": "yes", "_save": "1", "_disclose": "1", "reason": WHY, "value": "1"}
            seen.append((address, client.post(address, body)))
        listed = url(model, "changelist")
        seen += [
            (query, client.get(listed + query))
            for query in (
                "?_popup=1", f"?q={MARK}", f"?purpose={rows[Purpose]}", f"?tenant={foreign.pk}",
                f"?record_id={pk}", f"?subject={rows[Subject]}", "?o=1.2.3&all=",
            )
        ]  # fmt: skip
        chosen = {"_selected_action": [pk], "index": 0, "reason": WHY}
        seen += [
            (action, client.post(listed, {**chosen, "action": action, **more}))
            for action in ("delete_selected", "revoke")
            for more in ({}, {"post": "yes"})
        ]
        seen.append(("add", client.get(url(model, "add") + f"?purpose={rows[Purpose]}")))
        seen.append(
            ("auto", client.get(
                reverse("admin:autocomplete"),
                {
                    "app_label": model._meta.app_label, "model_name": model._meta.model_name,
                    "field_name": "subject", "term": MARK,
                },
            ))
        )  # fmt: skip
    for where, answer in seen:
        assert answer.status_code < 500, where
        text = re.sub(r"(value|href|action)=\"[^\"]*\"|<title>.*?</title>", "", answer.text)
        text = text.replace(f"“{MARK}”", "").replace(f"{MARK} ", "")
        echo = MARK in str(answer.wsgi_request.GET.dict())
        assert echo or MARK not in text, where
    assert rows_of(foreign) == rows, "a row is gone"


def test_numbers_that_no_table_holds_are_no_fault(owner: Operator) -> None:
    for model in admin.site._registry:
        if not model._meta.app_label.startswith("consentful_"):
            continue
        for pk in ("9" * 25, "9" * 5000, "٣"):
            for verb in ("change", "delete", "history"):
                answer = owner.get(url(model, verb, pk))
                assert answer.status_code < 500, (model, verb, pk)
                assert owner.post(url(model, verb, pk), {"post": "yes"}).status_code < 500
            query = f"?purpose={pk}&before={pk}&after={pk}&record_id={pk}&record=x"
            assert owner.get(url(model, "changelist") + query).status_code < 500
            chosen = {"action": "delete_selected", "_selected_action": [pk], "index": 0}
            answer = owner.post(url(model, "changelist"), chosen)
            assert answer.status_code < 500, (model, pk)


def test_the_way_to_a_row_by_its_type_does_not_exist(foreign: Tenant) -> None:
    """Django's own redirect to a row's page knows no unit of work."""
    staff = Operator(None)
    for model, pk in rows_of(foreign).items():
        kind = ContentType.objects.get_for_model(model)
        answer = staff.get(reverse("admin:view_on_site", args=[kind.pk, pk]))
        assert answer.status_code == 404, model


def test_a_login_that_is_no_superuser_makes_itself_no_owner(tenant: Tenant) -> None:
    """Whoever changes logins and groups could join a group that owns, or take an owner's password."""
    staff = Operator(None)
    staff.user.user_permissions.set(Permission.objects.all())
    group = Group.objects.create(name=unique("g"))
    users = get_user_model()
    mine = reverse("admin:auth_user_change", args=[staff.user.pk])
    body = {
        "username": staff.user.username, "is_superuser": "on", "is_staff": "on", "is_active": "on",
        "groups": [group.pk], "date_joined_0": "2020-01-01", "date_joined_1": "00:00:00",
    }  # fmt: skip
    staff.post(mine, body)
    fresh = users.objects.get(pk=staff.user.pk)
    assert not fresh.is_superuser
    assert not fresh.groups.exists()
    owner = Operator(tenant, Role.OWNER)
    password = {"password1": "another-pass-word", "password2": "another-pass-word"}
    staff.post(
        reverse("admin:auth_user_password_change", args=[owner.user.pk]),
        {**password, "usable_password": "true"},
    )
    assert users.objects.get(pk=owner.user.pk).check_password(PASSWORD)


def test_another_sites_form_changes_nothing(tenant: Tenant) -> None:
    owner = Operator(tenant, Role.OWNER)
    owner.handler.enforce_csrf_checks = True
    row = TenantUserPermission.objects.get(user=owner.user, content_object=tenant)
    for address, body in (
        (url(Tenant, "enter", tenant.pk), {}),
        (url(TenantUserPermission, "delete", row.pk), {"post": "yes"}),
        (url(Token, "add"), {"user": owner.user.username, "days": 1}),
        (reverse("admin:consentful_preferences_definition_load"), {"catalog": "{}"}),
        (reverse("admin:consentful_consent_consententry_decide"), {"decision": "given"}),
        (url(Restriction, "restrict") + "?subject=alice", {"evidence": "forged"}),
        (url(Erasure, "erase") + "?subject=alice", {"extent": "everything", "reason": "forged"}),
        (url(Erasure, "retry", 1), {}),
    ):
        assert owner.post(address, body).status_code == 403
    assert TenantUserPermission.objects.filter(pk=row.pk).exists()


def test_a_proof_of_disclosure_is_one_users_and_one_records(tenant: Tenant) -> None:
    api = API(tenant.slug, make_persona(tenant, "alice").token)
    for key in ("a", "b"):
        assert api.put(f"preferences/me/{key}", {"value": f"{MARK}-{key}"}).status == 201
    first, second = Operator(tenant, Role.OPERATOR), Operator(tenant, Role.OPERATOR)
    a, b = row_of(tenant, "user::alice", "a"), row_of(tenant, "user::alice", "b")
    sent = fields_of(show(first, a))
    before = len(events_of(tenant))
    for client, row, more in (
        (second, a, {}),
        (first, b, {"revision": b.revision}),
        (first, b, {"revision": "0" * 32}),
        (first, a, {"disclosure": sent["disclosure"][:-2] + "xx"}),
        (first, a, {"disclosure": ""}),
        (first, a, {"disclosure": '["1"]'}),
    ):
        answer = client.post(page(row), {**sent, **more, "value": '"forged"'})
        assert answer.status_code == 200
        assert f"{MARK}-b" not in answer.text
    assert len(events_of(tenant)) == before
    # Without or with an old revision: refused, and what is stored is shown with an event alone.
    for revision in ("", "0" * 32, "x"):
        answer = first.post(page(a), {**sent, "revision": revision, "value": '"forged"'})
        assert answer.status_code == 200
    assert row_of(tenant, "user::alice", "a").value == f'"{MARK}-a"'


@pytest.mark.parametrize(
    "text",
    [
        "1e22", "-0.0", "1.0", "12345678901234567890123", "0.1", "1e-7", "-0", "5e-324",
        '"\\u2028\\u2029\\u0085"', '"\u2028"', '"a\\r\\nb"', '" x "', '"</textarea><script>"',
        '"\\u00e9"', '"e\\u0301"', '{"b":1,"a":[1.0,-0.0,1e22]}', '"&lt;&amp;"', '"\\u000b"',
    ],
)  # fmt: skip
def test_odd_values_survive_an_unchanged_save(tenant: Tenant, text: str) -> None:
    owner = Operator(tenant, Role.OWNER)
    api = API(tenant.slug, make_persona(tenant, "operator").token)
    body = f'{{"value": {text}, "tags": [" a ", "b"], "metadata": {{"x": {text}}}}}'
    answer = api.request("PUT", "preferences/project::p/k", raw=body.encode())
    assert answer.status == 201, answer
    row = row_of(tenant, "project::p", "k")
    before = len(events_of(tenant))
    sent = fields_of(owner.get(page(row)))
    answer = owner.post(page(row), sent)
    assert answer.status_code == 302
    assert len(events_of(tenant)) == before
    assert row_of(tenant, "project::p", "k").revision == row.revision


@pytest.mark.parametrize("default", ["1e22", "-0.0", "1.0", "12345678901234567890123", '"\u2028"'])
def test_a_definition_saved_unchanged_leaves_no_event(tenant: Tenant, default: str) -> None:
    owner = Operator(tenant, Role.OWNER)
    body = {
        "key": "odd", "purpose": "service", "schema": f'{{"enum": [{default}, null]}}',
        "default": default, "scopes": ["project"], "writers": ["operator"],
    }  # fmt: skip
    assert owner.post(url(Definition, "add"), body).status_code == 302
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        row = Definition.objects.get(tenant=tenant, key="odd")
    answer = owner.get(url(Definition, "change", row.pk))
    sent = {**body, **fields_of(answer)}
    sent["description"] = sent.get("description", "")
    assert owner.post(url(Definition, "change", row.pk), sent).status_code == 302
    assert [one.action for one in events_of(tenant, "definition.changed")] == []


def test_texts_are_shown_as_texts(tenant: Tenant) -> None:
    evil = "<img src=x onerror=alert(1)>'\"&{{7*7}}"
    owner = Operator(tenant, Role.OWNER)
    Tenant.objects.filter(pk=tenant.pk).update(name=evil)
    for model, body in (
        (Subject, {"external_id": evil, "user": ""}),
        (Purpose, {
            "slug": "evil", "title": evil, "lawful_basis": "consent", "on_withdrawal": "keep",
            "version": 1, "locale": "en", "text": evil,
        }),
        (Preference, {"scope": "project::p", "key": evil, "value": json.dumps(evil),
                      "tags": evil[:60], "metadata": json.dumps({evil: evil})}),
    ):  # fmt: skip
        assert owner.post(url(model, "add"), body).status_code == 302, model
    owner.post(url(Definition, "add"), {
        "key": evil, "purpose": "evil", "schema": "true", "scopes": ["user"],
        "writers": ["subject"], "description": evil,
    })  # fmt: skip
    rows = rows_of(tenant)
    pages = [reverse("admin:index")]
    for model, pk in rows.items():
        pages += [url(model, "changelist"), url(model, "changelist") + "?q=" + evil]
        pages += [url(model, verb, pk) for verb in ("change", "delete", "history")]
    pages += [
        reverse("admin:consentful_consent_consententry_decide") + "?subject=" + evil,
        url(Preference, "add") + "?scope=" + evil,
        reverse("admin:consentful_consent_consententry_objections") + "?subject=" + evil,
        url(Restriction, "restrict") + "?subject=" + evil,
        url(Erasure, "erase") + "?subject=" + evil,
        url(Erasure, "dashboard"),
    ]
    for address in pages:
        answer = owner.get(address, follow=True)
        assert answer.status_code < 500, address
        assert "<img src=x" not in answer.text, address
    assert not LogEntry.objects.filter(user=owner.user, object_repr__contains="img").exists()
    assert "onerror" not in str(dict(owner.session))
