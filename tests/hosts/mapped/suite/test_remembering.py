"""The studio's own tests: the default catalogue, and users made from an e-mail address."""

import pytest
from django.contrib import admin
from django.contrib.admin.templatetags.admin_urls import admin_urlname
from django.db import connections, router, transaction
from django.urls import resolve, reverse

from accounts.mapping import person_of_user
from briefs.models import Brief
from preferences.models import Preference
from preferences.selectors import get_preference
from preferences.services import set_preference
from tenants.exceptions import ConsentRequired
from tenants.scopes import Scope

# Where people stand in a database of their own, `db` alone opens the other one.
pytestmark = pytest.mark.django_db(databases="__all__")


def test_a_person_is_called_what_the_project_says(consentful_person):
    assert consentful_person.user.email.endswith("@example.com")
    expected = person_of_user(str(consentful_person.user.pk), "")
    assert consentful_person.caller.subject == expected


def test_any_key_goes_with_consent_alone(consentful_person):
    caller, scope = consentful_person.caller, consentful_person.scope
    with pytest.raises(ConsentRequired):
        set_preference(caller=caller, scope=scope, key="paper", value="rough")
    consentful_person.give("support")
    set_preference(caller=caller, scope=scope, key="paper", value={"weight": 90})
    record = get_preference(caller=caller, scope=scope, key="paper")
    assert record.value == {"weight": 90}


def test_the_projects_rollback_takes_the_preference_back(consentful_person, consentful_consent):
    caller, scope = consentful_person.caller, consentful_person.scope
    # The same transaction, or the one of the people's own database inside the product's.
    store = transaction.atomic(using=router.db_for_write(Preference))
    with pytest.raises(ZeroDivisionError), transaction.atomic(), store:
        Brief.objects.create(author="quin", text="never mind")
        set_preference(caller=caller, scope=scope, key="paper", value="smooth")
        raise ZeroDivisionError
    assert not Brief.objects.exists()
    set_preference(caller=caller, scope=scope, key="paper", value="created, not replaced")


def test_the_admin_shows_every_table(admin_client, consentful_person, consentful_consent):
    caller, scope = consentful_person.caller, consentful_person.scope
    set_preference(caller=caller, scope=scope, key="paper", value="rough")
    models = [
        model for model in admin.site._registry if model._meta.app_label.startswith("consentful_")
    ]
    assert Preference in models
    for model in models:
        answer = admin_client.get(reverse(admin_urlname(model._meta, "changelist")))
        assert answer.status_code == 200, model


def test_the_api_runs_outside_the_requests_transaction_on_every_alias(consentful_tenant):
    view = resolve(f"/remembered/tenants/{consentful_tenant.slug}/whoami").func
    assert view._non_atomic_requests == set(connections)


def test_a_kind_of_scope_of_the_projects_own(consentful_person):
    assert str(Scope.parse("client::acme")) == "client::acme"
