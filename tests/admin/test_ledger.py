"""Recording a person's decision in the admin: with evidence, by the consent service alone."""

import re
from html import unescape

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse

from audit.actors import SYSTEM
from consent.models import ConsentEntry, ConsentState, Notice
from tenants.models import Subject
from tenants.units import unit_of_work
from tests.admin.conftest import url
from tests.factories import events_of

PAGE = "admin:consentful_consent_consententry_decide"


@pytest.fixture
def page():
    return f"{reverse(PAGE)}?subject=alice&purpose=support"


@pytest.fixture
def notice(tenant):
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        return Notice.objects.get(tenant=tenant, purpose__slug="support", locale="en")


def test_a_decision_with_evidence(tenant, operator, alice, page, notice):
    body = {"decision": "given", "notice": notice.pk, "evidence": "", "expires_at": ""}
    for change, field, words in (
        ({}, "evidence", "Say how you know"),
        ({"evidence": "A letter", "notice": ""}, "notice", "version that was shown"),
        ({"evidence": "A letter", "expires_at": "soon"}, "expires_at", "RFC 3339"),
        ({"evidence": "A letter", "expires_at": "2001-01-01T00:00:00Z"}, "expires_at", "future"),
        ({"evidence": "A letter", "decision": "perhaps"}, "decision", ""),
    ):
        answer = operator.post(page, {**body, **change})
        form = answer.context["form"]
        assert list(form.errors) == [field], (change, form.errors)
        assert words in unescape(str(form.errors))
        assert form.data["evidence"] == {**body, **change}["evidence"]
    assert not events_of(tenant, "consent.given")
    assert operator.post(page, {**body, "evidence": "A letter of May"}).status_code == 302
    assert alice.status_of("me", "support") == "given"
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        entry = ConsentEntry.objects.get(tenant=tenant)
    assert (entry.method, entry.actor, entry.evidence) == (
        "operator", operator.user.username, "A letter of May",
    )  # fmt: skip
    logged = LogEntry.objects.get(user=operator.user)
    assert (logged.object_repr, logged.change_message) == (f"consent entry {entry.pk}", "")
    assert events_of(tenant, "consent.given")[-1].actor == operator.user.username


def test_a_decision_made_meanwhile_is_not_overwritten(tenant, operator, alice, page, notice):
    assert alice.give("me", "support").status == 200
    [entry] = re.findall(r'name="entry" value="(\w+)"', operator.get(page).text)
    assert alice.withdraw("me", "support").status == 200
    body = {"decision": "given", "notice": notice.pk, "evidence": "A letter", "entry": entry}
    answer = operator.post(page, body)
    assert "decided anew" in answer.text
    assert "A letter" in answer.text
    assert 'consentful-badge withdrawn">withdrawn' in answer.text
    assert alice.status_of("me", "support") == "withdrawn"
    [newer] = re.findall(r'name="entry" value="(\w+)"', answer.text)
    assert newer != entry
    assert operator.post(page, {**body, "entry": newer}).status_code == 302
    assert alice.status_of("me", "support") == "given"


def test_a_withdrawal_is_as_easy(tenant, operator, alice, page):
    assert alice.give("me", "support").status == 200
    body = {"decision": "withdrawn", "evidence": "She called"}
    assert operator.post(page, body).status_code == 302
    assert alice.status_of("me", "support") == "withdrawn"


def test_who_may_not_decide(tenant, operator, page):
    operator.user.user_permissions.clear()
    before = len(events_of(tenant, "access.denied"))
    assert operator.get(page).status_code == 403
    body = {"decision": "refused", "evidence": "x"}
    assert operator.post(page, body).status_code == 403
    assert len(events_of(tenant, "access.denied")) == before + 2
    assert not events_of(tenant, "consent.refused")


def test_pages_lead_to_each_other(tenant, owner, alice):
    assert alice.give("me", "support").status == 200
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        person = Subject.objects.get(tenant=tenant, external_id="alice")
        entry = ConsentEntry.objects.get(tenant=tenant)
        state = ConsentState.objects.get(tenant=tenant)
    text = unescape(owner.get(url(Subject, "change", person.pk)).text)
    assert f"{reverse(PAGE)}?subject=alice" in text
    for way in (
        "consentstate/?q=alice", "consententry/?q=alice", "preference/?q=user%3A%3Aalice",
        "preference/add/?scope=user%3A%3Aalice", "event/?address=user%3A%3Aalice",
    ):  # fmt: skip
        assert way in text
        address = re.search(f'href="([^"]*{re.escape(way)}[^"]*)"', text)[1]
        assert owner.get(address).status_code == 200
    for row in (entry, state):
        text = unescape(owner.get(url(type(row), "change", row.pk)).text)
        assert url(Subject, "change", person.pk) in text
    listed = owner.get(url(ConsentState, "changelist"), {"q": "alice"}).text
    assert 'consentful-badge given">given' in listed
    assert url(ConsentState, "change", state.pk) in listed
    nobody = owner.get(url(ConsentState, "changelist"), {"q": "nobody"}).text
    assert "Nothing matches." in nobody
    assert "Nothing matches." in owner.get(url(Subject, "changelist"), {"q": "nobody"}).text
    assert owner.get(reverse(PAGE)).status_code == 200
    assert owner.get(reverse(PAGE), {"subject": "a/b"}).status_code == 200
