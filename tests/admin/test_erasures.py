"""Forgetting in the admin: a look first, then the deed; holders, retries, receipts; and who may."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import call_command

from audit.actors import SYSTEM
from config.signing import find_signing_key
from privacy.jobs import run_erasures
from privacy.models import Erasure, ErasureHolder
from tenants.models import Subject, Tenant
from tenants.roles import Role
from tenants.units import unit_of_work
from tests.admin.conftest import Operator, url
from tests.factories import events_of, make_persona, make_tenant, unique
from tests.http.client import API

WHY = "Ticket 42"
NAME = "alice"


@pytest.fixture
def filled(tenant: Tenant, alice: API) -> Tenant:
    assert alice.give("me", "support").status == 200
    assert alice.write("me", "reply_style", "brief").status == 201
    assert alice.write("me", "theme", "dark").status == 201
    return tenant


@pytest.fixture
def index(tmp_path: Path, settings: Any) -> Path:
    """A search index of the host's, which is broken while a file of that name is there."""
    settings.CONSENTFUL_PERSONAL_DATA = ["tests.privacy.hosts.Index"]
    settings.HOST_FOLDER = tmp_path
    return tmp_path


def ask_page(subject: str = NAME) -> str:
    return f"{url(Erasure, 'erase')}?subject={subject}"


def erase(client: Operator, subject: str = NAME, **typed: Any) -> Any:
    """Look, then erase, as the two buttons do."""
    body = {"extent": "everything", "reason": WHY, **typed}
    looked = client.post(ask_page(subject), {**body, "_preview": "1"})
    assert looked.status_code == 200
    seen = re.search(r'name="seen" value="([^"]*)"', looked.text)[1].replace("&quot;", '"')
    return client.post(ask_page(subject), {**body, "seen": seen, "_erase": "1"})


def newest(tenant: Tenant) -> Erasure:
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        return (
            Erasure.objects.filter(tenant=tenant).select_related("subject")
            .prefetch_related("holders").latest("pk")
        )  # fmt: skip


def test_a_look_and_then_the_deed(filled: Tenant, operator: Operator) -> None:
    with unit_of_work(tenant_id=filled.pk, actor=SYSTEM):
        person = Subject.objects.get(tenant=filled, external_id=NAME)
    page = operator.get(url(Subject, "change", person.pk)).text
    assert ask_page().replace("&", "&amp;") in page
    body = {"extent": "everything", "reason": WHY}
    looked = operator.post(ask_page(), {**body, "_preview": "1"})
    assert re.search(r"<th scope=\"row\">preferences</th>.*?<td>2</td>", looked.text, re.S)
    assert [event.reason for event in events_of(filled, "data.disclosed")] == [WHY]
    assert not events_of(filled, "erasure.created")
    # Not without having looked at exactly this.
    for unseen in ({}, {"seen": "[null, null]", "extent": "some", "keys": "theme"}):
        again = operator.post(ask_page(), {**body, "_erase": "1", **unseen})
        assert "Erase it now" in again.text
    assert not events_of(filled, "erasure.created")

    done = erase(operator)
    erasure = newest(filled)
    assert (done.status_code, done["Location"]) == (302, url(Erasure, "change", erasure.pk))
    assert (erasure.is_whole, erasure.method, erasure.status) == (True, "operator", "done")
    event = events_of(filled, "erasure.created")[-1]
    assert (event.actor, event.reason) == (operator.user.username, WHY)
    logged = LogEntry.objects.get(user=operator.user)
    assert (logged.object_repr, logged.change_message) == (f"erasure {erasure.pk}", "")
    shown = operator.get(done["Location"]).text
    assert erasure.subject.external_id in shown
    assert NAME not in shown


def test_some_of_it(filled: Tenant, operator: Operator) -> None:
    nothing = operator.post(ask_page(), {"extent": "some", "reason": WHY, "_preview": "1"})
    assert "Name keys or purposes." in nothing.text
    assert erase(operator, extent="some", keys="reply_style\r\n").status_code == 302
    erasure = newest(filled)
    assert (erasure.is_whole, len(erasure.key_digests)) == (False, 1)
    shown = operator.get(url(Erasure, "change", erasure.pk)).text
    assert "1 keys" in shown
    assert "reply_style" not in shown
    # Who it is stands on the person's own page, not here.
    assert f">subject {erasure.subject_id}</a>" in shown
    assert NAME not in shown
    assert erase(operator, extent="some", purposes="service").status_code == 302
    assert newest(filled).purposes == ["service"]


def test_a_reason_is_asked_for(filled: Tenant, operator: Operator) -> None:
    for reason in ("", "  ", "x" * 501):
        answer = operator.post(
            ask_page(), {"extent": "everything", "reason": reason, "_preview": "1"}
        )
        assert "What would go" not in answer.text
        assert "Nothing was done" in answer.text
    assert not events_of(filled, "data.disclosed", "erasure.created")


def test_a_forgotten_person_is_a_pseudonym_and_found_by_its_reference(
    filled: Tenant, operator: Operator
) -> None:
    assert erase(operator).status_code == 302
    erasure = newest(filled)
    pseudonym = erasure.subject.external_id
    listed = operator.get(url(Subject, "changelist"), {"q": pseudonym}).text
    assert url(Subject, "change", erasure.subject_id) in listed
    for text in (f"subject {erasure.subject_id}", f"#{erasure.subject_id}"):
        found = operator.get(url(Subject, "changelist"), {"q": text}).text
        assert pseudonym in found
    page = operator.get(url(Subject, "change", erasure.subject_id)).text
    assert "Forgotten at" in page
    assert f"{url(Erasure, 'changelist')}?subject={erasure.subject_id}" in page
    for deed in ("Record a decision", "Restrict<", "Forget<", "Add a preference", "Appoint"):
        assert deed not in page
    # By reference, by pseudonym, by number, and by the name that only the asker knows.
    for text in (erasure.reference, pseudonym, f"subject {erasure.subject_id}", NAME):
        found = operator.get(url(Erasure, "changelist"), {"q": text}).text
        assert erasure.reference in found
        rest = (
            found.replace(f'value="{NAME}"', "").replace(f"q={NAME}", "").replace(f"q%3D{NAME}", "")
        )
        assert re.findall(f".{{0,60}}{NAME}.{{0,20}}", rest) == []
    assert erasure.reference not in operator.get(url(Erasure, "changelist"), {"q": "bob"}).text
    by_person = operator.get(url(Erasure, "changelist"), {"subject": erasure.subject_id}).text
    assert erasure.reference in by_person


def test_a_failed_holder_is_asked_again_at_once(
    filled: Tenant, operator: Operator, index: Path
) -> None:
    (index / "broken").touch()
    assert erase(operator).status_code == 302
    run_erasures()
    erasure = newest(filled)
    page = url(Erasure, "change", erasure.pk)
    shown = operator.get(page).text
    assert "The index does not answer." in shown
    assert "Retry now" in shown
    assert "Receipt" not in shown
    listed = operator.get(url(Erasure, "changelist"), {"state": "open"}).text
    assert "search_index (failed)" in listed
    (index / "broken").unlink()
    run_erasures()  # it is not due yet
    assert newest(filled).status == "failed"
    assert operator.get(url(Erasure, "retry", erasure.pk)).status_code == 405
    answer = operator.post(url(Erasure, "retry", erasure.pk), follow=True)
    assert "asked again now" in answer.text
    run_erasures()
    assert newest(filled).status == "done"
    assert "Retry now" not in operator.get(page).text
    changed = events_of(filled, "erasure_holder.changed")
    assert operator.user.username in {event.actor for event in changed}
    refused = operator.post(url(Erasure, "retry", erasure.pk), follow=True)
    assert "no such erasure that is unfinished" in refused.text


def test_the_receipt_is_shown_and_handed_out(
    filled: Tenant, operator: Operator, settings: Any, tmp_path: Path, capsys: Any
) -> None:
    settings.CONSENTFUL_SIGNING_KEY = None
    assert erase(operator).status_code == 302
    erasure = newest(filled)
    page, file = url(Erasure, "change", erasure.pk), url(Erasure, "receipt", erasure.pk)
    assert "it has no signing key" in operator.get(page).text
    assert operator.get(file).status_code == 404
    settings.CONSENTFUL_SIGNING_KEY = find_signing_key(tmp_path / "keys")
    shown = operator.get(page).text
    assert f"&quot;erasure&quot;: &quot;{erasure.reference}&quot;" in shown
    answer = operator.get(file)
    assert answer["Content-Disposition"] == (
        f'attachment; filename="erasure-{erasure.reference}.jws"'
    )
    assert "no-store" in answer["Cache-Control"]
    (tmp_path / "receipt.jws").write_bytes(answer.content)
    call_command("verify_erasure", str(tmp_path / "receipt.jws"))
    assert "genuine" in "".join(capsys.readouterr())
    assert NAME not in json.dumps(answer.content.decode())


def test_only_stewards_with_the_permission(filled: Tenant, operator: Operator) -> None:
    assert erase(operator).status_code == 302
    erasure = newest(filled)
    reader = Operator(filled, Role.OPERATOR)
    reader.user.user_permissions.set(
        [one for one in reader.user.user_permissions.all() if one.codename.startswith("view_")]
    )
    assert reader.get(url(Erasure, "change", erasure.pk)).status_code == 200
    before = len(events_of(filled, "access.denied"))
    assert reader.get(ask_page()).status_code == 403
    assert reader.post(ask_page(), {"extent": "everything", "reason": WHY}).status_code == 403
    assert reader.post(url(Erasure, "retry", erasure.pk)).status_code == 403
    assert len(events_of(filled, "access.denied")) == before + 3
    for address in ("add", "delete"):
        args = () if address == "add" else (erasure.pk,)
        assert operator.post(url(Erasure, address, *args), {"post": "yes"}).status_code == 403


def test_another_tenants_erasures_do_not_exist(filled: Tenant, operator: Operator) -> None:
    assert erase(operator).status_code == 302
    erasure = newest(filled)
    other = make_tenant()
    stranger = Operator(other, Role.OWNER)
    make_persona(other, "alice")
    for verb in ("change", "receipt"):
        assert stranger.get(url(Erasure, verb, erasure.pk)).status_code in (302, 404)
    stranger.post(url(Erasure, "retry", erasure.pk))
    for query in ({}, {"q": erasure.reference}, {"subject": erasure.subject_id}):
        text = stranger.get(url(Erasure, "changelist"), query).text
        assert url(Erasure, "change", erasure.pk) not in text
    with unit_of_work(tenant_id=filled.pk, actor=SYSTEM):
        assert not ErasureHolder.objects.filter(tenant=filled, attempts__gt=1).exists()


def test_somebody_unknown_or_misnamed(tenant: Tenant, operator: Operator) -> None:
    assert operator.get(f"{url(Erasure, 'erase')}?subject=a/b").status_code == 400
    assert operator.get(url(Erasure, "erase")).status_code == 400
    name = unique("nobody")
    assert erase(operator, name).status_code == 302
    assert newest(tenant).subject is None
    assert "nobody who was known" in operator.get(url(Erasure, "changelist")).text
