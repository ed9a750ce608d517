"""Showing what is stored about another person: a reason, an event, and never a way to write."""

from dataclasses import replace

import pytest

from preferences.disclosures import disclose, read_disclosure, sign_disclosure
from tenants.callers import find_caller
from tenants.exceptions import ConsentRequired, NotFound, ValidationError
from tenants.scopes import Scope
from tenants.units import unit_of_work
from tests.factories import events_of, make_persona, make_tenant
from tests.http.client import API

ALICE = Scope.of_subject("alice")


@pytest.fixture
def tenant(database):
    return make_tenant()


@pytest.fixture
def alice(tenant):
    api = API(tenant.slug, make_persona(tenant, "alice").token)
    assert api.give("me", "support").status == 200
    assert api.write("me", "tone", "brief").status == 201
    return api


@pytest.fixture
def show(tenant):
    user = make_persona(tenant, "operator").user
    caller = find_caller(tenant=tenant.slug, user_id=str(user.pk))

    def show(reason, key="tone", **more):
        with unit_of_work(tenant_id=tenant.pk, actor=caller.actor):
            return disclose(caller=replace(caller, reason=reason), scope=ALICE, key=key, **more)

    return show


def test_a_reason_and_an_event(tenant, alice, show):
    for reason in (None, "", "  ", "x" * 501):
        with pytest.raises(ValidationError):
            show(reason)
    assert not events_of(tenant, "data.disclosed")
    assert show("why").value == "brief"
    [event] = events_of(tenant, "data.disclosed")
    assert (event.actor, event.reason, event.key, event.purpose) == (
        "operator", "why", "tone", "support",
    )  # fmt: skip


def test_what_no_consent_covers_needs_more_than_a_reason(tenant, alice, show):
    assert alice.withdraw("me", "support").status == 200
    with pytest.raises(ConsentRequired):
        show("why")
    assert not events_of(tenant, "data.disclosed")
    assert show("why", may_see_withheld=True).value == "brief"
    assert len(events_of(tenant, "data.disclosed")) == 1
    with pytest.raises(NotFound):
        show("why", key="reply_style", may_see_withheld=True)


def test_a_proof_is_one_users_and_one_rows():
    proof = sign_disclosure(user_id="1", row_id=2, reason="why")
    assert read_disclosure(proof, user_id="1", row_id=2) == "why"
    assert read_disclosure(proof, user_id="2", row_id=2) is None
    assert read_disclosure(proof, user_id="1", row_id=3) is None
    assert read_disclosure(proof[:-1], user_id="1", row_id=2) is None
    assert read_disclosure("", user_id="1", row_id=2) is None
