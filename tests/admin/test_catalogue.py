"""Purposes, notices and definitions in the admin, by the rules of the catalogue."""

import re
from html import unescape

from audit.actors import SYSTEM
from consent.models import Notice, Purpose
from preferences.models import Definition
from tenants.roles import Role
from tenants.units import unit_of_work
from tests.admin.conftest import Operator, url
from tests.factories import events_of, make_persona
from tests.http.client import API


def one(tenant, model, **columns):
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        return model.objects.filter(tenant=tenant, **columns).first()


def body_of(tenant, key="reply_style", **change):
    row = one(tenant, Definition, key=key)
    body = {
        "purpose": "support", "schema": row.schema, "default": row.default or "",
        "ttl_default": row.ttl_default or "", "ttl_max": row.ttl_max or "", "scopes": row.scopes,
        "writers": row.writers, "description": row.description, "revision": row.revision,
    }  # fmt: skip
    return row, {**body, **change}


def test_a_definition_is_changed_by_the_catalogues_rules(tenant, owner):
    row, body = body_of(tenant)
    page = url(Definition, "change", row.pk)
    assert owner.get(page).status_code == 200
    assert "Nothing changed." in owner.post(page, body, follow=True).text
    assert not events_of(tenant, "definition.changed")
    for change, field, words in (
        ({"schema": '{"pattern": "("}'}, "schema", ""),
        ({"schema": "{"}, "schema", "JSON"),
        ({"schema": '{"$ref": "http://x.test/"}'}, "schema", ""),
        ({"default": '"blue"'}, "default", ""),
        ({"ttl_default": "99", "ttl_max": "9"}, "ttl_default", "beyond"),
        ({"scopes": []}, "scopes", "required"),
        ({"purpose": "nowhere"}, "purpose", ""),
    ):
        answer = owner.post(page, {**body, **change})
        assert answer.status_code == 200, change
        form = answer.context["adminform"].form
        assert list(form.errors) == [field], (change, form.errors)
        assert words in str(form.errors)
    assert one(tenant, Definition, key="reply_style").revision == row.revision
    wider = {**body, "schema": '{"enum":["brief","detailed","none"]}', "default": '"brief"'}
    assert owner.post(page, wider).status_code == 302
    assert events_of(tenant, "definition.changed")[-1].actor == owner.user.username
    alice = API(tenant.slug, make_persona(tenant, "alice").token)
    assert alice.give("me", "support").status == 200
    assert alice.write("me", "reply_style", "none").status == 201


def test_a_definition_changed_meanwhile_is_not_overwritten(tenant, owner):
    row, body = body_of(tenant)
    page = url(Definition, "change", row.pk)
    other = Operator(tenant, Role.OWNER)
    assert other.post(page, {**body, "description": "theirs"}).status_code == 302
    answer = owner.post(page, {**body, "description": "mine"})
    text = unescape(answer.text)
    assert "What changed meanwhile" in text
    assert other.user.username in text
    assert "<pre>mine</pre>" in text
    assert "<pre>theirs</pre>" in text
    assert text.count("<pre>") == 2
    assert one(tenant, Definition, key="reply_style").description == "theirs"
    [revision] = re.findall(r'name="revision" value="(\w+)"', answer.text)
    again = {**body, "description": "mine", "revision": revision}
    assert owner.post(page, again).status_code == 302
    assert one(tenant, Definition, key="reply_style").description == "mine"


def test_a_definition_is_added_retired_and_brought_back(tenant, owner):
    _, body = body_of(tenant)
    body = {**body, "key": "greeting", "schema": '{"type":"string"}', "ttl_max": "", "revision": ""}
    assert owner.post(url(Definition, "add"), body).status_code == 302
    again = owner.post(url(Definition, "add"), body)
    assert list(again.context["adminform"].form.errors) == ["key"]
    row, body = body_of(tenant, "greeting")
    page = url(Definition, "change", row.pk)
    assert owner.post(page, {**body, "is_retired": "on"}).status_code == 302
    row, body = body_of(tenant, "greeting")
    assert row.retired_at is not None
    assert "Nothing changed." in owner.post(page, {**body, "is_retired": "on"}, follow=True).text
    alice = API(tenant.slug, make_persona(tenant, "alice").token)
    assert alice.write("me", "greeting", "x").code == "undeclared_key"
    assert owner.post(page, body).status_code == 302
    assert one(tenant, Definition, key="greeting").retired_at is None


def test_a_purpose_and_its_notices(tenant, owner):
    add = url(Purpose, "add")
    body = {
        "slug": "letters", "title": "Letters", "lawful_basis": "consent", "on_withdrawal": "keep",
        "version": "1", "locale": "en", "text": "",
    }  # fmt: skip
    answer = owner.post(add, body)
    assert list(answer.context["adminform"].form.errors) == ["text"]
    assert 'value="Letters"' in answer.text
    assert owner.post(add, {**body, "text": "We write letters."}).status_code == 302
    purpose = one(tenant, Purpose, slug="letters")
    assert purpose.required_version == 1
    assert "already" in owner.post(add, {**body, "text": "Other."}).text

    page = url(Purpose, "change", purpose.pk)
    same = {
        "title": "Letters", "lawful_basis": "consent", "on_withdrawal": "keep",
        "revision": purpose.revision,
    }  # fmt: skip
    assert "Nothing changed." in owner.post(page, same, follow=True).text
    assert owner.post(page, {**same, "title": "Post"}).status_code == 302
    answer = owner.post(page, {**same, "title": "Mail"})
    assert "Somebody changed this" in answer.text
    assert 'value="Mail"' in answer.text
    assert one(tenant, Purpose, slug="letters").title == "Post"

    alice = API(tenant.slug, make_persona(tenant, "alice").token)
    assert alice.give("me", "letters").status == 200
    notice = {"purpose": purpose.pk, "version": "2", "locale": "en", "text": "We write a lot."}
    assert owner.get(url(Notice, "add"), {"purpose": purpose.pk}).status_code == 200
    assert owner.post(url(Notice, "add"), {**notice, "material": "on"}).status_code == 302
    assert alice.status_of("me", "letters") == "outdated"
    for change in ({"text": "Another."}, {}):
        answer = owner.post(url(Notice, "add"), {**notice, **change})
        assert answer.status_code == 200
        assert answer.context["adminform"].form.errors
    assert one(tenant, Notice, version=2).text == "We write a lot."
    row = one(tenant, Notice, version=2)
    assert owner.post(url(Notice, "change", row.pk), {"text": "x"}).status_code == 403

    purpose = one(tenant, Purpose, slug="letters")
    retire = {**same, "title": "Post", "revision": purpose.revision, "is_retired": "on"}
    assert owner.post(page, retire).status_code == 302
    assert one(tenant, Purpose, slug="letters").retired_at is not None
    assert alice.give("me", "letters", version=2).status == 400


def test_operators_see_the_catalogue_and_change_nothing(tenant, operator):
    row, body = body_of(tenant)
    page = url(Definition, "change", row.pk)
    assert "enum" in operator.get(page).text
    assert operator.post(page, {**body, "description": "x"}).status_code == 403
    assert operator.get(url(Definition, "add")).status_code == 403
    assert operator.get(url(Definition, "load")).status_code == 403
    assert operator.post(url(Definition, "load"), {"catalog": "{}"}).status_code == 403
    assert one(tenant, Definition, key="reply_style").revision == row.revision


def test_a_refused_catalogue_stays_in_the_form(tenant, owner):
    text = '{"purposes": [], "definitions": [{"key": "a/b"}]}'
    answer = owner.post(url(Definition, "load"), {"catalog": text})
    assert "slash" in answer.text
    assert text in unescape(answer.text)
