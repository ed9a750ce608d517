"""The admin: flags of purposes, what is withheld and why, guardians."""

from typing import Any

import pytest

from audit.actors import SYSTEM
from consent.models import Purpose, Restriction
from preferences.models import Preference
from tenants.models import Guardianship
from tenants.roles import Role
from tenants.units import unit_of_work
from tests.admin.conftest import Operator, url
from tests.factories import events_of
from tests.http.conftest import World


@pytest.fixture
def owner(world: World) -> Operator:
    return Operator(world.tenant, Role.OWNER)


def row_of(world: World, model: Any, **where: Any) -> Any:
    with unit_of_work(tenant_id=world.tenant.pk, actor=SYSTEM):
        return model.objects.get(tenant=world.tenant, **where)


def test_a_restricted_record_is_withheld_and_says_so(world: World, owner: Operator) -> None:
    world.alice.write("me", "limited", "secret-words")
    world.alice.put("subjects/me/restriction", {})
    row = row_of(world, Preference, key="limited")
    page = owner.get(url(Preference, "change", row.pk))
    assert "The person restricted what is held" in page.text
    assert "secret-words" not in page.text
    listed = owner.get(url(Restriction, "changelist"))
    assert listed.status_code == 200
    assert "user_confirmed" in listed.text


def test_an_objection_says_so(world: World, owner: Operator) -> None:
    world.alice.write("me", "news", "secret-words")
    world.alice.put("subjects/me/objections/news", {})
    page = owner.get(url(Preference, "change", row_of(world, Preference, key="news").pk))
    assert "The person objected to the purpose" in page.text
    assert "secret-words" not in page.text


def test_a_held_record_is_not_deleted(world: World, owner: Operator) -> None:
    world.alice.write("me", "limited", 1)
    world.operator.put("subjects/alice/holds/limited", {"reason": "case 12"})
    row = row_of(world, Preference, key="limited")
    owner.post(url(Preference, "delete", row.pk), {"post": "yes", "reason": "asked"})
    assert row_of(world, Preference, key="limited").pk == row.pk


def test_the_flags_of_a_purpose(world: World, owner: Operator) -> None:
    purpose = row_of(world, Purpose, slug="support")
    body = {
        "title": "Support", "lawful_basis": "consent", "on_withdrawal": "erase", "sharing": "on",
        "double_opt_in": "on", "revision": purpose.revision,
    }  # fmt: skip
    owner.post(url(Purpose, "change", purpose.pk), body)
    (shown,) = [
        one for one in world.alice.get("purposes").json["results"] if one["slug"] == "support"
    ]
    assert (shown["on_withdrawal"], shown["sharing"], shown["double_opt_in"]) == (
        "erase", True, True,
    )  # fmt: skip
    # And off again: what is not said is not true.
    purpose = row_of(world, Purpose, slug="support")
    page = owner.get(url(Purpose, "change", purpose.pk))
    assert page.text.count("checked") >= 2
    body |= {"revision": purpose.revision}
    del body["sharing"], body["double_opt_in"]
    owner.post(url(Purpose, "change", purpose.pk), body)
    assert row_of(world, Purpose, slug="support").is_sharing is None


def test_a_guardian_is_appointed_and_dismissed(world: World) -> None:
    operator = Operator(world.tenant, Role.OPERATOR)
    world.alice.get("whoami")
    body = {"user": "alice", "subject": "kim", "evidence": "court order 5", "expires_at": ""}
    operator.post(url(Guardianship, "add"), body)
    assert world.alice.give("kim", "support").status == 200
    row = row_of(world, Guardianship)
    operator.post(url(Guardianship, "delete", row.pk), {"post": "yes"})
    assert world.alice.withdraw("kim", "support").status == 403
    events = events_of(world.tenant, "guardianship.created", "guardianship.deleted")
    assert [one.actor for one in events] == [operator.user.username] * 2
