"""What operators do about a person's rights in the admin: holds, restrictions, objections, guardians."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.actors import SYSTEM
from consent.models import ConsentEntry, Restriction
from preferences.models import Preference
from tenants.models import Guardianship, Subject, Tenant
from tenants.roles import Role
from tenants.times import format_time
from tenants.units import unit_of_work
from tests.admin.conftest import Operator, url
from tests.admin.records import row_of
from tests.factories import events_of, make_persona, make_tenant
from tests.http.client import API
from tests.rights.conftest import rich_catalog

WHY = "Ticket 42"
HELD = f"{url(Preference, 'changelist')}?state=held"
#: How a list shows whose record it is; the help of its search names persons, too.
ALICES = '<td class="field-scope">user::alice</td>'


@pytest.fixture
def tenant(database: str) -> Tenant:
    return make_tenant(rich_catalog())


def person(tenant: Tenant, name: str = "alice") -> Subject:
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        return Subject.objects.get(tenant=tenant, external_id=name)


def logged(client: Operator) -> list[str]:
    return list(
        LogEntry.objects.filter(user=client.user)
        .order_by("pk")
        .values_list("object_repr", flat=True)
    )


def test_a_record_is_held_and_released(tenant: Tenant, alice: API, operator: Operator) -> None:
    assert alice.write("me", "theme", "dark").status == 201
    row = row_of(tenant, "user::alice", "theme")
    hold = url(Preference, "hold", row.pk)
    assert hold in operator.get(url(Preference, "change", row.pk)).text
    for typed, words in (
        ({"reason": ""}, "This field is required"),
        ({"reason": WHY, "until": "soon"}, "Nothing was done"),
        ({"reason": WHY, "until": "2001-01-01T00:00:00Z"}, "must lie in the future"),
    ):
        assert words in operator.post(hold, typed).text
    assert ALICES not in operator.get(HELD).text
    answer = operator.post(hold, {"reason": "Case 12", "until": "2990-01-01T00:00:00Z"})
    assert (answer.status_code, answer["Location"]) == (302, HELD)
    listed = operator.get(HELD).text
    assert ALICES in listed
    assert "held</span>" in listed
    shown = operator.get(url(Preference, "change", row.pk)).text
    assert "Case 12" in shown
    assert "until 2990-01-01 00:00:00 UTC" in shown
    assert alice.forget("me", "theme").outcome == (403, "restricted")
    assert [one.reason for one in events_of(tenant, "preference.held")] == ["Case 12"]

    assert "End the hold" in operator.get(hold).text
    assert operator.post(hold, {"reason": "Closed"}).status_code == 302
    assert alice.forget("me", "theme").status == 204
    [event] = events_of(tenant, "preference.released")
    assert (event.reason, event.actor) == ("Closed", operator.user.username)
    assert logged(operator) == [f"preference {row.pk}"] * 2


def test_a_hold_that_ended_by_itself_is_not_listed(
    tenant: Tenant, alice: API, operator: Operator, frozen: Any
) -> None:
    assert alice.write("me", "theme", "dark").status == 201
    hold = url(Preference, "hold", row_of(tenant, "user::alice", "theme").pk)
    until = format_time(frozen.now + timedelta(seconds=60))
    assert operator.post(hold, {"reason": WHY, "until": until}).status_code == 302
    assert ALICES in operator.get(HELD).text
    frozen.move(120)
    assert ALICES not in operator.get(HELD).text


def test_only_a_persons_record_is_held(tenant: Tenant, staff: API, operator: Operator) -> None:
    assert staff.write("project::atlas", "theme", "dark").status == 201
    row = row_of(tenant, "project::atlas", "theme")
    hold = url(Preference, "hold", row.pk)
    assert hold not in operator.get(url(Preference, "change", row.pk)).text
    assert operator.get(hold).status_code == 404
    operator.post(hold, {"reason": WHY})
    assert not events_of(tenant, "preference.held")


def test_restricting_and_lifting(tenant: Tenant, alice: API, operator: Operator) -> None:
    assert alice.write("me", "theme", "dark").status == 201
    page = url(Restriction, "restrict") + "?subject=alice"
    assert page in operator.get(url(Subject, "change", person(tenant).pk)).text
    assert "This field is required" in operator.post(page, {"evidence": ""}).text
    answer = operator.post(page, {"key": "", "evidence": "Letter"})
    assert answer.status_code == 302
    assert alice.read("me", "theme").outcome == (403, "restricted")
    shown = operator.get(answer["Location"]).text
    assert "Letter" in shown
    lift = re.search(r'href="([^"]+/lift/)"', shown)[1]
    listed = operator.get(f"{url(Restriction, 'changelist')}?subject={person(tenant).pk}").text
    assert "everything" in listed
    assert "This field is required" in operator.post(lift, {"reason": ""}).text
    assert operator.post(lift, {"reason": "Corrected"}).status_code == 302
    assert alice.read("me", "theme").status == 200
    [entry] = alice.get("subjects/me/restrictions").json["results"]
    assert (entry["lifted_by"], entry["reason"]) == (operator.user.username, "Corrected")
    assert lift not in operator.get(answer["Location"]).text
    assert operator.get(lift).status_code == 404
    number = int(re.search(r"/(\d+)/change/", answer["Location"])[1])
    assert logged(operator) == [f"restriction {number}"] * 2


def test_restricting_one_key(tenant: Tenant, alice: API, operator: Operator) -> None:
    page = url(Restriction, "restrict") + "?subject=alice"
    assert "Nothing was done" in operator.post(page, {"key": "a/b", "evidence": "Letter"}).text
    assert operator.post(page, {"key": "theme", "evidence": "Letter"}).status_code == 302
    assert alice.write("me", "theme", "dark").outcome == (403, "restricted")
    assert alice.write("me", "nickname", "Al").status == 201


def test_objecting_and_lifting(tenant: Tenant, alice: API, operator: Operator) -> None:
    assert alice.write("me", "news", 1).status == 201
    page = url(ConsentEntry, "objections") + "?subject=alice"
    assert page in operator.get(url(Subject, "change", person(tenant).pk)).text
    shown = operator.get(page).text
    assert '<th scope="row">news</th>' in shown
    assert "act-form" not in shown  # a purpose is chosen first
    one = f"{page}&purpose=news"
    assert "Record the objection to news" in operator.get(one).text
    assert operator.post(one, {"evidence": "Call of Monday"}).status_code == 302
    assert alice.read("me", "news").outcome == (403, "objected")
    assert "Lift the objection to news" in operator.get(one).text
    assert operator.post(one, {"evidence": "Taken back"}).status_code == 302
    assert alice.read("me", "news").status == 200
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        entries = list(ConsentEntry.objects.filter(tenant=tenant).order_by("pk"))
    assert [(one.decision, one.evidence) for one in entries] == [
        ("objected", "Call of Monday"), ("objection_lifted", "Taken back"),
    ]  # fmt: skip
    assert logged(operator) == [f"consent entry {entry.pk}" for entry in entries]
    before = len(events_of(tenant))
    answer = operator.post(f"{page}&purpose=support", {"evidence": "no right"})
    assert "act-form" not in answer.text  # against consent there is no such right
    assert len(events_of(tenant)) == before


def test_guardians_are_appointed_and_ended(tenant: Tenant, alice: API, operator: Operator) -> None:
    assert alice.write("me", "theme", "dark").status == 201
    make_persona(tenant, "bob")
    add = url(Guardianship, "add") + "?subject=alice"
    shown = operator.get(url(Subject, "change", person(tenant).pk)).text
    assert add in shown
    assert 'value="alice"' in operator.get(add).text
    body = {"user": "bob", "subject": "alice", "evidence": "Court paper", "expires_at": ""}
    assert "no login of this name" in operator.post(add, {**body, "user": "nobody"}).text
    assert operator.post(add, {**body, "expires_at": "soon"}).status_code == 200
    assert operator.post(add, body).status_code == 302
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        row = Guardianship.objects.get(tenant=tenant)
    listed = operator.get(f"{url(Guardianship, 'changelist')}?subject={person(tenant).pk}").text
    assert url(Guardianship, "change", row.pk) in listed
    assert "Court paper" not in listed
    assert operator.post(url(Guardianship, "delete", row.pk), {"post": "yes"}).status_code == 302
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        assert not Guardianship.objects.filter(tenant=tenant).exists()
    [event] = events_of(tenant, "guardianship.deleted")
    assert event.actor == operator.user.username
    assert logged(operator) == [f"guardianship {row.pk}"] * 2


def deeds(tenant: Tenant, staff: API) -> list[tuple[str, dict[str, str]]]:
    """Every page that does something about alice, with what would be sent there."""
    assert staff.write("user::alice", "theme", "dark").status == 201
    why = {"evidence": "Letter"}
    assert staff.put("subjects/alice/restrictions/nickname", why).status == 200
    make_persona(tenant, "bob")
    assert staff.put("subjects/alice/guardians/bob", why).status in (200, 201)
    row = row_of(tenant, "user::alice", "theme")
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        restriction = Restriction.objects.get(tenant=tenant)
        guardianship = Guardianship.objects.get(tenant=tenant)
    return [
        (url(Preference, "hold", row.pk), {"reason": WHY}),
        (url(Restriction, "restrict") + "?subject=alice", why),
        (url(Restriction, "lift", restriction.pk), {"reason": WHY}),
        (url(ConsentEntry, "objections") + "?subject=alice&purpose=news", why),
        (url(Guardianship, "delete", guardianship.pk), {"post": "yes"}),
    ]


def changes(tenant: Tenant) -> int:
    return len([one for one in events_of(tenant) if one.action != "access.denied"])


def test_readers_do_nothing_and_leave_a_refusal(tenant: Tenant, staff: API) -> None:
    pages = deeds(tenant, staff)
    reader = Operator(tenant, Role.OPERATOR)
    views = [one for one in reader.user.user_permissions.all() if "view_" in one.codename]
    reader.user.user_permissions.set(views)
    before, denied = changes(tenant), len(events_of(tenant, "access.denied"))
    for address, body in pages:
        assert reader.get(address).status_code == 403, address
        assert reader.post(address, body).status_code == 403, address
    assert changes(tenant) == before
    assert len(events_of(tenant, "access.denied")) == denied + 2 * len(pages)
    assert reader.get(HELD).status_code == 200


def test_staff_of_another_tenant_do_nothing(tenant: Tenant, staff: API) -> None:
    pages = deeds(tenant, staff)
    stranger = Operator(make_tenant(), Role.OWNER)
    before = changes(tenant)
    for address, body in pages:
        text = stranger.get(address).text
        assert "theme<" not in text
        assert "Letter" not in text
        stranger.post(address, body)
    assert changes(tenant) == before


def test_each_page_takes_few_queries(tenant: Tenant, staff: API, operator: Operator) -> None:
    addresses = [address for address, _ in deeds(tenant, staff)]
    addresses += [
        url(Subject, "change", person(tenant).pk),
        f"{url(Restriction, 'changelist')}?subject={person(tenant).pk}",
        f"{url(Guardianship, 'changelist')}?subject={person(tenant).pk}",
    ]
    for address in addresses:
        with CaptureQueriesContext(connection) as captured:
            assert operator.get(address).status_code == 200, address
        assert len(captured) <= 15, (address, [one["sql"] for one in captured])
