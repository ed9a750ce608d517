"""One stored value in the admin: the gate, reasons, revisions and types are those of the API."""

from html import unescape

from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission

from audit.actors import SYSTEM
from consent.models import Purpose
from consent.services import grant_purposes
from preferences.models import Preference
from tenants.roles import Role
from tenants.scopes import Scope
from tenants.units import unit_of_work
from tests.admin.conftest import Operator, url
from tests.admin.records import WHY, errors_of, fields_of, page, row_of, show
from tests.factories import events_of


def test_a_shared_value_is_shown_and_changed(tenant, operator):
    created = operator.post(
        url(Preference, "add"), {"scope": "repo::Acme/Checkout", "key": "branch", "value": '"main"'}
    )
    assert created.status_code == 302
    row = row_of(tenant, "repo::acme/checkout", "branch")
    form = fields_of(operator.get(page(row)))
    assert form["value"] == '"main"'
    assert operator.post(page(row), {**form, "value": '"release"'}).status_code == 302
    changed = row_of(tenant, "repo::acme/checkout", "branch")
    assert (changed.value, changed.source, changed.seen_count) == ('"release"', "operator", 2)
    assert [event.action for event in events_of(tenant) if event.record == "preference"] == [
        "preference.created", "preference.replaced",
    ]  # fmt: skip
    assert not events_of(tenant, "data.disclosed")


VALUES = [
    "3.12", "null", "true", '{"a":1}', "  brief  ", "line\n", "\u200b", "<b>&amp;\"'", "\nfirst",
    "tab\t", "\u2028", 3.12, 1.0, -0.0, 1e22, 10**40, None, True, [], {"a": [1.0], "b": 1},
]  # fmt: skip


def test_C009_types_survive_an_unchanged_save(tenant, operator, staff):
    for number, value in enumerate(VALUES):
        scope, key = "repo::acme/checkout", f"k{number}"
        assert staff.write(scope, key, value, tags=["a b", " x"]).status == 201
        row = row_of(tenant, scope, key)
        form = fields_of(operator.get(page(row)))
        assert "Nothing changed." in operator.post(page(row), form, follow=True).text, value
        after = row_of(tenant, scope, key)
        assert (after.value, after.revision, after.seen_count) == (row.value, row.revision, 1)
    assert not events_of(tenant, "preference.replaced")
    assert not LogEntry.objects.filter(user=operator.user).exists()
    # The same through a change of another member: the value comes back bit for bit.
    for number, value in enumerate(VALUES):
        row = row_of(tenant, scope, f"k{number}")
        form = fields_of(operator.get(page(row)))
        assert operator.post(page(row), {**form, "tags": "new"}).status_code == 302
        read = staff.read(scope, f"k{number}")
        assert repr(read.json["value"]) == repr(value)
        assert read.json["tags"] == ["new"]


def test_C077_what_a_form_refuses(tenant, operator):
    add = url(Preference, "add")
    good = {"scope": "user::bob", "key": "note", "value": '"x"'}
    for change, field, words in (
        ({"key": "reply_style", "value": '"brief"'}, None, "has not consented"),
        ({"scope": "user::"}, "scope", "subject of a scope is empty"),
        ({"key": "a\n"}, "key", "control"),
        ({"key": "a/b"}, "key", "slash"),
        ({"expires_at": "2001-01-01T00:00:00Z"}, "expires_at", "future"),
        ({"expires_at": "tomorrow"}, "expires_at", "RFC 3339"),
        ({"value": "NaN"}, "value", "JSON"),
        ({"value": "1e400"}, "value", "number"),
        ({"value": "brief"}, "value", "double quotes"),
        ({"value": ""}, "value", "required"),
        ({"value": '{"a":1,"a":2}'}, "value", "twice"),
        ({"key": "theme", "value": '"blue"'}, "value", ""),
        ({"scope": "project::atlas", "key": "tone", "metadata": "[]"}, "metadata", "object"),
        ({"key": "limited", "expires_at": "2990-01-01T00:00:00Z"}, "expires_at", "allows"),
    ):
        answer = operator.post(add, {**good, **change})
        assert answer.status_code == 200, change
        assert words in errors_of(answer), (change, errors_of(answer))
        form = answer.context["adminform"].form
        assert list(form.errors) == [field or "__all__"], change
        # What was typed is still there.
        for name, typed in {**good, **change}.items():
            assert form.data[name] == typed
    assert row_of(tenant, "user::bob", "note") is None
    assert len(events_of(tenant, "access.denied")) == 1  # the refused consent
    assert not events_of(tenant, "preference.created")
    assert operator.post(add, {**good, "tenant": 1, "tenant_id": 1}).status_code == 302
    assert row_of(tenant, "user::bob", "note").tenant_id == tenant.pk


def test_a_persons_value_needs_a_reason(tenant, operator, alice):
    alice.write("user::alice", "nickname", "value-nobody-sees")
    row = row_of(tenant, "user::alice", "nickname")
    plain = operator.get(page(row))
    assert "value-nobody-sees" not in plain.text
    assert "needs a reason" in plain.text
    for reason in ("", "   ", "x" * 501):
        refused = show(operator, row, reason)
        assert "A reason has 1 to 500 characters." in refused.text
        assert "value-nobody-sees" not in refused.text
    assert not events_of(tenant, "data.disclosed")
    shown = show(operator, row)
    assert "value-nobody-sees" in shown.text
    assert "no-store" in shown["Cache-Control"]
    assert "value-nobody-sees" not in operator.get(page(row)).text  # this once
    [event] = events_of(tenant, "data.disclosed")
    assert (event.actor, event.scope, event.key, event.reason, event.purpose) == (
        operator.user.username, "user::alice", "nickname", WHY, "service",
    )  # fmt: skip


def test_a_write_without_a_disclosure_tells_nothing(tenant, operator, alice):
    """A guess that is stored would answer "Nothing changed"."""
    alice.write("user::alice", "nickname", "secret")
    row = row_of(tenant, "user::alice", "nickname")
    other = Operator(tenant, Role.OPERATOR)
    proof = fields_of(show(other, row))["disclosure"]
    for disclosure in ("", "forged", proof):
        body = {"value": '"secret"', "revision": row.revision, "disclosure": disclosure}
        answer = operator.post(page(row), body)
        assert answer.status_code == 200
        assert "takes no changes" in errors_of(answer)
        assert "secret" not in answer.text
    assert row_of(tenant, "user::alice", "nickname").revision == row.revision


def test_two_operators_cannot_overwrite_each_other(tenant, operator, alice):
    alice.write("user::alice", "nickname", "first")
    row = row_of(tenant, "user::alice", "nickname")
    other = Operator(tenant, Role.OPERATOR)
    mine, theirs = fields_of(show(operator, row)), fields_of(show(other, row))
    assert other.post(page(row), {**theirs, "value": '"theirs"'}).status_code == 302
    answer = operator.post(page(row), {**mine, "value": '"mine"', "tags": "kept"})
    assert answer.status_code == 200
    text = unescape(answer.text)
    assert "What changed meanwhile" in text
    assert other.user.username in text
    assert '<pre>"mine"</pre>' in text
    assert '<pre>"theirs"</pre>' in text
    assert row_of(tenant, "user::alice", "nickname").value == '"theirs"'
    assert len(events_of(tenant, "data.disclosed")) == 3  # what stands now was shown too
    again = fields_of(answer)
    assert (again["value"], again["tags"]) == ('"mine"', "kept")
    assert operator.post(page(row), again).status_code == 302
    assert row_of(tenant, "user::alice", "nickname").value == '"mine"'


def test_C077_without_consent_a_value_is_withheld(tenant, operator, alice):
    assert alice.give("me", "support").status == 200
    assert alice.write("user::alice", "tone", "value-nobody-sees").status == 201
    row = row_of(tenant, "user::alice", "tone")
    form = fields_of(show(operator, row))
    assert alice.withdraw("me", "support").status == 200
    plain = operator.get(page(row))
    assert "The value is withheld" in plain.text
    assert "permission of its own" in plain.text
    assert show(operator, row).status_code == 403
    # No override: what was opened before the withdrawal is refused, and stays on the page.
    late = operator.post(page(row), {**form, "value": '"typed"'})
    assert "has not consented" in errors_of(late)
    assert '"typed"' in unescape(late.text)
    denied = events_of(tenant, "access.denied")
    assert [event.actor for event in denied] == [operator.user.username] * 2

    operator.allow("view_withheld_values")
    plain = operator.get(page(row))
    assert "value-nobody-sees" not in plain.text
    assert "A reason has" in show(operator, row, "").text
    shown = show(operator, row)
    assert "value-nobody-sees" in shown.text
    assert not fields_of(shown)  # to be read, not written
    proof = {**form, "value": '"typed"', "disclosure": form["disclosure"]}
    assert "has not consented" in errors_of(operator.post(page(row), proof))
    assert row_of(tenant, "user::alice", "tone").revision == row.revision
    assert [event.reason for event in events_of(tenant, "data.disclosed")] == [WHY, WHY]
    # Deleting never needs consent.
    why = {"post": "yes", "reason": WHY, "revision": row.revision}
    assert operator.post(url(Preference, "delete", row.pk), why).status_code == 302
    assert row_of(tenant, "user::alice", "tone") is None


def test_roles_never_carry_the_permission_for_withheld_values(tenant):
    for role in Role:
        client = Operator(tenant, role)
        assert not client.user.has_perm("consentful_preferences.view_withheld_values")


def test_C033_expired_rows_show_only_when_asked_for(tenant, operator, alice, frozen):
    assert alice.write("user::alice", "gone", "value-nobody-sees", ttl_seconds=60).status == 201
    row = row_of(tenant, "user::alice", "gone")
    listed = url(Preference, "changelist")
    frozen.move(59.999)
    form = fields_of(show(operator, row))
    assert page(row) in operator.get(listed).text
    assert page(row) not in operator.get(listed, {"state": "expired"}).text
    frozen.move(0.001)
    for query in ({}, {"q": "user::alice/gone"}, {"q": "user::alice"}):
        assert page(row) not in operator.get(listed, query).text
    expired = operator.get(listed, {"state": "expired"}).text
    assert page(row) in expired
    assert 'class="consentful-badge expired"' in expired
    operator.allow("view_withheld_values")
    shown = operator.get(page(row))
    assert "Expired" in shown.text
    assert "Show the value" not in shown.text
    assert show(operator, row).status_code == 403
    late = operator.post(page(row), {**form, "value": '"late"'})
    assert "expired or was deleted" in errors_of(late)
    assert "value-nobody-sees" not in late.text
    why = {"post": "yes", "reason": WHY}
    assert operator.post(url(Preference, "delete", row.pk), why).status_code == 302
    assert [event.actor for event in events_of(tenant, "preference.expired")] == [
        operator.user.username
    ]


def test_a_stale_deletion_is_refused(tenant, operator, staff):
    staff.write("repo::acme/checkout", "k", 1)
    row = row_of(tenant, "repo::acme/checkout", "k")
    staff.write("repo::acme/checkout", "k", 2, revision=row.revision)
    body = {"post": "yes", "revision": row.revision}
    answer = operator.post(url(Preference, "delete", row.pk), body, follow=True)
    assert "changed, expired or vanished" in answer.text
    assert row_of(tenant, "repo::acme/checkout", "k").value == "2"


def test_the_log_of_django_names_no_person(tenant, operator, alice):
    alice.write("user::alice", "nickname", "secret")
    row = row_of(tenant, "user::alice", "nickname")
    form = fields_of(show(operator, row))
    assert operator.post(page(row), {**form, "value": '"other"'}).status_code == 302
    body = {"scope": "user::alice", "key": "second", "value": "1"}
    assert operator.post(url(Preference, "add"), body).status_code == 302
    second = row_of(tenant, "user::alice", "second")
    why = {"post": "yes", "reason": WHY}
    assert operator.post(url(Preference, "delete", second.pk), why).status_code == 302
    logged = LogEntry.objects.filter(user=operator.user).order_by("pk")
    assert [(one.object_repr, one.change_message) for one in logged] == [
        (f"preference {row.pk}", ""), (f"preference {second.pk}", ""),
        (f"preference {second.pk}", ""),
    ]  # fmt: skip


def test_a_scope_of_ones_own_needs_no_reason(tenant):
    client = Operator(tenant, Role.OPERATOR, Role.MEMBER)
    body = {"scope": "me", "key": "nickname", "value": '"own"'}
    assert client.post(url(Preference, "add"), body).status_code == 302
    row = row_of(tenant, str(Scope.of_subject(client.user.username)), "nickname")
    assert row.source == "user_confirmed"
    assert fields_of(client.get(page(row)))["value"] == '"own"'
    assert not events_of(tenant, "data.disclosed")


def test_whoever_may_only_look_sees_the_value_and_no_form(tenant, operator, alice, staff):
    operator.user.user_permissions.set(Permission.objects.filter(codename__startswith="view_pref"))
    alice.write("user::alice", "nickname", "a-value")
    staff.write("repo::acme/checkout", "k", "shared-value")
    row = row_of(tenant, "user::alice", "nickname")
    assert "a-value" not in operator.get(page(row)).text
    shown = show(operator, row)
    assert '<pre class="consentful-value">&quot;a-value&quot;</pre>' in shown.text
    assert not fields_of(shown)
    assert operator.post(page(row), {"value": "1"}).status_code == 403
    shared = row_of(tenant, "repo::acme/checkout", "k")
    assert "shared-value" in operator.get(page(shared)).text


def test_a_superuser_who_is_an_agent_gives_a_reason_too(tenant, alice):
    client = Operator(tenant, Role.AGENT, is_superuser=True)
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        slugs = list(Purpose.objects.filter(tenant=tenant).values_list("slug", flat=True))
    grant_purposes(user_id=client.user.pk, tenant_id=tenant.pk, slugs=slugs, actor=SYSTEM)
    alice.write("user::alice", "nickname", "value-nobody-sees")
    row = row_of(tenant, "user::alice", "nickname")
    assert "value-nobody-sees" not in client.get(page(row)).text
    assert "value-nobody-sees" in show(client, row).text
    refused = client.post(url(Preference, "delete", row.pk), {"post": "yes"}, follow=True)
    assert "Say why" in refused.text


def test_archived_rows_show_only_when_asked_for(tenant, operator, alice):
    written = alice.write("user::alice", "kept", "value-nobody-sees")
    row = row_of(tenant, "user::alice", "kept")
    listed = url(Preference, "changelist")
    form = fields_of(show(operator, row))
    body = {"scope": "me", "key": "kept", "revision": written.revision}
    assert alice.post("preferences/archive", body).status == 200
    for query in ({}, {"q": "user::alice/kept"}, {"state": "expired"}, {"state": "held"}):
        assert page(row) not in operator.get(listed, query).text
    archived = operator.get(listed, {"state": "archived"}).text
    assert page(row) in archived
    assert 'class="consentful-badge">archived' in archived
    operator.allow("view_withheld_values")
    shown = operator.get(page(row)).text
    assert "<h2>Archived</h2>" in shown
    assert "Show the value" not in shown
    assert show(operator, row).status_code == 403
    late = operator.post(page(row), {**form, "value": '"late"'})
    assert "was archived" in errors_of(late)
    assert "value-nobody-sees" not in late.text
    why = {"post": "yes", "reason": WHY}
    assert operator.post(url(Preference, "delete", row.pk), why).status_code == 302
    assert row_of(tenant, "user::alice", "kept") is None
