"""Lists of the admin: no count, few queries, pages by key, and no row of another tenant."""

import re

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from audit.actors import SYSTEM
from audit.models import Event
from consent.models import ConsentEntry, ConsentState, Purpose, Restriction
from preferences.models import Definition, Preference
from privacy.models import Erasure
from tenants import admin_lists
from tenants.admin_base import TenantModelAdmin
from tenants.models import Subject, Tenant, Token
from tenants.roles import Role
from tenants.units import unit_of_work
from tests.admin.conftest import Operator, url
from tests.factories import events_of, make_persona, make_tenant
from tests.http.client import API

MOST_QUERIES = 15
LISTED = url(Preference, "changelist")


def insert(tenant, scope, count, **columns):
    """Put plain rows at one scope, quickly."""
    values = {
        "value": "'1'", "tags": "'{}'", "metadata": "'{}'", "source": "'system'",
        "actor": "'system'", "provenance": """'{"detail":null,"origin":{},"confidence":null}'""",
        "seen_count": "1", "created_at": "now()", "updated_at": "now()", **columns,
    }  # fmt: skip
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM), connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO consentful_preference (tenant_id, scope, key, {', '.join(values)})"
            f" SELECT %s, %s, 'k' || n, {', '.join(values.values())}"
            " FROM generate_series(1, %s) n",
            [tenant.pk, scope, count],
        )


def keys_on(answer):
    return re.findall(r'<th class="field-key"><a href="[^"]+">([^<]+)</a>', answer.text)


def way(answer, text):
    """Return the address behind one of the links between pages."""
    for address, title in re.findall(r'<a href="([^"]+)"(?: rel="\w+")?>([^<]+)</a>', answer.text):
        if text in title:
            return address.replace("&amp;", "&")
    return None


@pytest.fixture(scope="module")
def many(database):
    """A tenant whose rows no test changes."""
    tenant = make_tenant()
    insert(tenant, "project::atlas", 120)
    insert(tenant, "project::old", 3, expires_at="now() - interval '1 day'")
    insert(tenant, "repo::acme/checkout", 2, source="'operator'")
    return tenant


@pytest.fixture
def reader(many):
    return Operator(many, Role.OPERATOR)


def test_pages_by_key_there_and_back(reader):
    seen, address, pages = [], LISTED, 0
    while address is not None:
        answer = reader.get(LISTED + address if address.startswith("?") else address)
        seen += keys_on(answer)
        address, pages = way(answer, "Older"), pages + 1
        last = answer
    assert pages == 3
    assert seen == [f"k{n}" for n in (2, 1)] + [f"k{n}" for n in range(120, 0, -1)]
    middle = reader.get(LISTED + way(last, "Newer"))
    assert keys_on(middle) == [f"k{n}" for n in range(72, 22, -1)]
    first = reader.get(LISTED + way(middle, "Newer"))
    assert len(keys_on(first)) == 50
    assert way(middle, "Newest") == "?"
    assert way(first, "Newer") is None or keys_on(reader.get(LISTED + way(first, "Newer")))
    # A row that goes meanwhile moves no other one.
    assert keys_on(reader.get(LISTED, {"before": "junk"})) == keys_on(reader.get(LISTED))


def test_no_page_counts_and_none_takes_many_queries(many, reader):
    addresses = [
        url(model, "changelist") for model in admin.site._registry
        if model.__module__.split(".")[0]
        in ("audit", "tenants", "consent", "preferences", "privacy")
    ]  # fmt: skip
    addresses += [
        f"{LISTED}?q=project::atlas", f"{LISTED}?q=project::atlas/k7", f"{LISTED}?kind=repo",
        f"{LISTED}?source=operator", f"{LISTED}?state=expired", f"{LISTED}?purpose=1",
        f"{LISTED}?before=50", f"{LISTED}?after=5", f"{LISTED}?_facets=True", f"{LISTED}?all=",
        url(Preference, "add"), f"{LISTED}?state=held", f"{LISTED}?state=archived", url(Erasure, "dashboard"),
        f"{url(Erasure, 'changelist')}?q=alice", f"{url(Erasure, 'changelist')}?state=open",
        f"{url(Erasure, 'erase')}?subject=alice", f"{url(Restriction, 'restrict')}?subject=alice",
        f"{url(ConsentEntry, 'objections')}?subject=alice",
    ]  # fmt: skip
    boss = Operator(many, Role.OWNER, is_superuser=True)
    for client in (reader, boss):
        for address in addresses:
            with CaptureQueriesContext(
                connection,
            ) as captured:
                answer = client.get(address)
            assert answer.status_code in (200, 403), address
            statements = [one["sql"] for one in captured]
            assert len(statements) <= MOST_QUERIES, (address, len(statements), statements)
            # The dashboard counts what a bounded question found, which it makes sure of itself.
            if address != url(Erasure, "dashboard"):
                assert not [one for one in statements if "COUNT(" in one.upper()], address
            for one in statements:
                if 'FROM "consentful_preference"' in one:
                    assert "LIMIT" in one, one


def test_a_records_page_takes_few_queries(many, reader):
    with unit_of_work(tenant_id=many.pk, actor=SYSTEM):
        row = Preference.objects.filter(tenant=many, scope="project::atlas").first()
    for verb in ("change", "delete"):
        with CaptureQueriesContext(connection) as captured:
            assert reader.get(url(Preference, verb, row.pk)).status_code == 200
        assert len(captured) <= MOST_QUERIES


def test_search_is_by_exact_address(tenant, operator):
    insert(tenant, "project::atlas", 60)
    insert(tenant, "repo::acme/checkout", 2)
    reader = operator

    def found(text):
        return keys_on(reader.get(LISTED, {"q": text}))

    assert len(found("project::atlas")) == 50
    assert found("project::ATLAS/k7") == ["k7"]
    assert found("repo::acme/checkout") == ["k2", "k1"]
    assert found("repo::acme/checkout/k1") == ["k1"]
    assert found("project::atla") == []
    insert(tenant, "branch::acme/checkout::main/x", 1)
    insert(tenant, "branch::acme/checkout::main", 1)
    assert found("branch::acme/checkout::main/x") == ["k1"]
    assert found("branch::acme/checkout::main/k1") == ["k1"]
    for nonsense in ("nothing", "user::", "x::y", "me", "user::a\x00b"):
        answer = reader.get(LISTED, {"q": nonsense})
        assert answer.status_code == 200
        assert keys_on(answer) in ([], keys_on(reader.get(LISTED)))
    assert "exact scope" in reader.get(LISTED, {"q": "nothing"}).text


def test_filters(many, reader):
    def found(**query):
        return set(re.findall(r'field-scope">([^<]+)<', reader.get(LISTED, query).text))

    assert found(kind="repo") == {"repo::acme/checkout"}
    assert found(source="operator") == {"repo::acme/checkout"}
    assert found(state="expired") == {"project::old"}
    assert "project::old" not in found()
    assert found(kind="user") == set()
    assert found(kind="%") == set()


def test_other_lookups_are_refused(many, reader):
    for lookup in ("value__contains", "salt__gte", "key__startswith", "scope__regex", "tags__len"):
        assert reader.get(LISTED, {lookup: "a"}).status_code == 400
    boss = Operator(many, is_superuser=True)
    assert boss.get(url(Event, "changelist"), {"reason__contains": "a"}).status_code == 400


def test_a_filter_without_an_index_looks_at_a_bounded_number(many, reader, monkeypatch):
    monkeypatch.setattr(admin_lists, "MOST_SCANNED", 40)
    seen, address, pages = [], "?source=system&state=expired", 0
    while address is not None:
        answer = reader.get(LISTED + address)
        if not keys_on(answer) and pages < 2:
            assert "None of the rows that this page looked at matches." in answer.text
        seen += keys_on(answer)
        address, pages = way(answer, "Go on") or way(answer, "Older"), pages + 1
    assert seen == ["k3", "k2", "k1"]
    assert pages >= 2


def test_empty_lists_say_what_to_do():
    tenant = make_tenant({})
    client = Operator(tenant, Role.OWNER)
    for model, words in (
        (Preference, "Values come from the API"),
        (Purpose, "load a whole catalogue"),
        (Definition, "load a whole catalogue"),
        (ConsentState, "Nobody has decided"),
        (Subject, "Nobody is known yet"),
        (Token, "No token was issued"),
    ):
        assert words in client.get(url(model, "changelist")).text
    assert "Nothing matches." in client.get(LISTED, {"q": "user::nobody"}).text


def test_tenant_staff_see_their_tenant_alone(many):
    other = make_tenant()
    alice = API(other.slug, make_persona(other, "alice").token)
    assert alice.give("me", "support").status == 200
    assert alice.write("me", "tone", "foreign").status == 201
    client = Operator(many, Role.OWNER)
    assert client.enter(other).status_code == 404
    with unit_of_work(tenant_id=other.pk, actor=SYSTEM):
        rows = [
            model.objects.filter(**{page.tenant_column: other.pk}).first()
            for model, page in admin.site._registry.items()
            if isinstance(page, TenantModelAdmin) and model is not Tenant
        ]
    rows = [row for row in rows if row is not None]
    assert len(rows) > 8
    for row in rows:
        for popup in ({}, {"_popup": "1"}, {"_to_field": "id"}):
            answer = client.get(url(type(row), "changelist"), popup)
            assert f"/{row.pk}/change/" not in answer.text
        for verb in ("change", "delete", "history"):
            answer = client.get(url(type(row), verb, row.pk))
            assert answer.status_code in (302, 403), (row, verb)
        answer = client.post(url(type(row), "change", row.pk), {"value": "1"})
        assert answer.status_code in (302, 403)
    assert url(Tenant, "change", other.pk) not in client.get(url(Tenant, "changelist")).text
    assert client.get(url(Tenant, "change", other.pk)).status_code == 302
    decide = reverse("admin:consentful_consent_consententry_decide")
    assert "given" not in client.get(decide, {"subject": "alice"}).text.partition("<tbody>")[2]


def test_autocompletion_lists_nothing(many, reader):
    for model, field in (("preference", "subject"), ("definition", "purpose")):
        query = {"app_label": "consentful_preferences", "model_name": model, "field_name": field}
        assert reader.get(reverse("admin:autocomplete"), {**query, "term": ""}).status_code in (
            403,
            404,
        )
    query = {
        "app_label": "consentful_consent",
        "model_name": "consententry",
        "field_name": "subject",
    }
    assert reader.get(reverse("admin:autocomplete"), query).status_code in (403, 404)


def test_C073_nothing_is_edited_in_a_list(many, reader):
    assert not [page for page in admin.site._registry.values() if page.list_editable]
    with unit_of_work(tenant_id=many.pk, actor=SYSTEM):
        row = Preference.objects.filter(tenant=many, scope="project::atlas").first()
    body = {
        "form-TOTAL_FORMS": "1", "form-INITIAL_FORMS": "1", "form-0-id": row.pk,
        "form-0-value": "2", "form-0-key": "moved", "_save": "Save",
    }  # fmt: skip
    before = len(events_of(many))
    reader.post(LISTED, body)
    assert len(events_of(many)) == before
    with unit_of_work(tenant_id=many.pk, actor=SYSTEM):
        assert Preference.objects.get(pk=row.pk).revision == row.revision


def test_C076_no_page_offers_a_spreadsheet(many):
    """If one ever does, its text cells must be neutralised: this test then names the place."""
    boss = Operator(many, is_superuser=True)
    for model, page in admin.site._registry.items():
        if isinstance(page, TenantModelAdmin):
            assert set(page.actions or ()) <= {"delete_selected", "revoke"}
            text = boss.get(url(model, "changelist")).text.lower()
            # The tokens of its forms are random letters, which may spell anything.
            text = re.sub(r'(name="csrfmiddlewaretoken" value)="\w+"', r"\1", text)
            assert "csv" not in text
            assert "export" not in text


def test_C053_trail_and_ledger_take_no_change(tenant):
    boss = Operator(tenant, is_superuser=True)
    alice = API(tenant.slug, make_persona(tenant, "alice").token)
    assert alice.give("me", "support").status == 200
    for model in (Event, ConsentEntry, ConsentState):
        with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
            row = model.objects.filter(tenant_id=tenant.pk).order_by("-pk").first()
            before = model.objects.filter(pk=row.pk).values().get()
        listed = boss.get(url(model, "changelist")).text
        shown = boss.get(url(model, "change", row.pk)).text
        for text in (listed, shown):
            assert "addlink" not in text.partition('id="content"')[2]
            assert "deletelink" not in text
            assert 'name="_save"' not in text
            assert "delete_selected" not in text
        assert boss.get(url(model, "add")).status_code == 403
        for verb, args in (("add", ()), ("change", (row.pk,)), ("delete", (row.pk,)),
                           ("changelist", ())):  # fmt: skip
            body = {"action": "delete_selected", "_selected_action": row.pk, "post": "yes"}
            assert boss.post(url(model, verb, *args), body).status_code == 403
        with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
            assert model.objects.filter(pk=row.pk).values().get() == before
    # Nor by way of the tenant.
    assert boss.post(url(Tenant, "delete", tenant.pk), {"post": "yes"}).status_code == 403


def test_the_trail_is_filtered(tenant):
    boss = Operator(tenant, is_superuser=True)
    api = API(tenant.slug, make_persona(tenant, "operator").token)
    assert api.write("project::trail", "one", 1).status == 201
    assert api.write("project::trail", "two", 1).status == 201

    def found(**query):
        text = boss.get(url(Event, "changelist"), query).text
        return re.findall(r'field-target">([^<]+)<', text)

    assert found(address="project::trail") == ["project::trail/two", "project::trail/one"]
    assert found(address="project::trail/one") == ["project::trail/one"]
    assert found(address="project::trail", actor="operator", action="preference.created")
    assert found(address="project::trail", actor="nobody") == []
    assert found(address="project::trail", since="2001-01-01", until="2990-01-01T00:00:00Z")
    assert found(address="project::trail", since="2990-01-01") == []
    assert found(address="project::trail", until="2001-01-01") == []
    for query in ({"since": "soon"}, {"address": "nowhere"}):
        answer = boss.get(url(Event, "changelist"), query)
        assert answer.status_code == 200
        assert 'class="error"' in answer.text
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        row = Preference.objects.get(tenant=tenant, scope="project::trail", key="one")
    assert found(record="preference", record_id=row.pk) == ["project::trail/one"]
    page = boss.get(url(Preference, "change", row.pk)).text
    assert f"record=preference&amp;record_id={row.pk}" in page


def test_an_operator_does_not_read_the_trail(many, reader):
    before = len(events_of(many, "access.denied"))
    answer = reader.get(url(Event, "changelist"))
    assert answer.status_code == 403
    assert "You may not do this in this tenant." in answer.text
    [event] = events_of(many, "access.denied")[before:]
    assert (event.actor, event.outcome) == (reader.user.username, "denied")
    with unit_of_work(tenant_id=many.pk, actor=SYSTEM):
        row = Preference.objects.filter(tenant=many).first()
    assert "consentful_audit/event" not in reader.get(url(Preference, "change", row.pk)).text


def test_strangers_are_sent_to_the_login(many):
    assert Client().get(LISTED).status_code == 302
    plain = Operator(None)
    plain.user.is_staff = False
    plain.user.save()
    assert plain.get(LISTED).status_code == 302
    assert not LogEntry.objects.filter(user=plain.user).exists()


def test_the_start_page_leads(many, reader):
    text = reader.get(reverse("admin:index")).text
    assert f"You work in {many}" in text
    assert url(Preference, "changelist") in text
    nobody = Operator(None)
    assert "Choose a tenant first" in nobody.get(reverse("admin:index")).text
