"""The bakery's own tests, with the fixtures that Consentful ships."""

import json
import re
from pathlib import Path
from urllib.parse import urljoin

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client

from audit.models import Event
from consent.selectors import list_states
from orders.models import Order
from preferences.models import Preference
from preferences.selectors import get_preference
from preferences.services import delete_preference, set_preference
from tenants.exceptions import ConsentRequired, NotFound, StaleRevision


@pytest.fixture
def consentful_catalog():
    """The bakery's own catalogue instead of the default one."""
    return json.loads(Path("catalog.json").read_text("utf-8"))


def remember(person, value, **more):
    return set_preference(
        caller=person.caller, scope=person.scope, key="slicing", value=value, **more
    ).record


def recall(person):
    return get_preference(caller=person.caller, scope=person.scope, key="slicing").value


def test_nothing_is_remembered_without_consent(consentful_person):
    with pytest.raises(ConsentRequired):
        remember(consentful_person, "thin")
    assert not Preference.objects.exists()


def test_the_life_of_a_preference(consentful_person, consentful_consent):
    first = remember(consentful_person, "thin")
    assert recall(consentful_person) == "thin"
    remember(consentful_person, "thick", revision=first.revision)
    with pytest.raises(StaleRevision):
        remember(consentful_person, "thin", revision=first.revision)
    consentful_person.withdraw("comfort")
    with pytest.raises(ConsentRequired):
        recall(consentful_person)
    caller, scope = consentful_person.caller, consentful_person.scope
    delete_preference(caller=caller, scope=scope, key="slicing")
    consentful_person.give("comfort")
    with pytest.raises(NotFound):
        recall(consentful_person)


def test_the_projects_rollback_takes_row_and_event_back(consentful_person, consentful_consent):
    before = Event.objects.count()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        Order.objects.create(customer="carl", slicing="thin")
        remember(consentful_person, "thin")
        assert recall(consentful_person) == "thin"
        raise ZeroDivisionError
    assert (Order.objects.count(), Preference.objects.count()) == (0, 0)
    assert Event.objects.count() == before


@pytest.mark.parametrize("turn", [1, 2])
@pytest.mark.django_db(transaction=True)
def test_the_database_is_emptied_between_tests_that_commit(
    consentful_person, consentful_consent, turn
):
    remember(consentful_person, "thin")
    assert Preference.objects.count() == 1
    call_command("verify_audit")


@pytest.mark.django_db(transaction=True)
def test_another_isolation_level_is_refused(consentful_person, consentful_consent):
    with pytest.raises(DatabaseError, match="READ COMMITTED"), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        remember(consentful_person, "thin")
    assert not Preference.objects.exists()


def test_the_http_api_knows_the_person(consentful_person, consentful_consent):
    answer = Client().put(
        f"/api/v1/tenants/{consentful_person.tenant.slug}/preferences/me/slicing",
        {"value": "thin"},
        content_type="application/json",
        headers={"Authorization": f"Bearer {consentful_person.token}"},
    )
    assert answer.status_code == 201
    assert recall(consentful_person) == "thin"


def test_consent_covers_every_purpose_that_rests_on_it(consentful_person, consentful_consent):
    tenant, subject = consentful_person.tenant.pk, consentful_person.caller.subject
    states = list_states(tenant_id=tenant, subject=subject)
    assert [(one.purpose, one.status) for one in states] == [("comfort", "given")]


def test_the_admin_loads_a_catalogue(admin_client, consentful_tenant):
    page = admin_client.get("/admin/consentful_preferences/definition/")
    assert (page.status_code, "slicing" in page.text) == (200, True)
    load = re.search(r'href="([^"]*load[^"]*)"', page.text)[1]
    assert (
        admin_client.get(urljoin("/admin/consentful_preferences/definition/", load)).status_code
        == 200
    )
