"""Activity, forgetting with preview and receipt, stopping a use, objecting: through the page."""

import json
import re

import jwt
import pytest

from tests.factories import CATALOG, change_catalog, make_persona
from tests.http.client import API
from tests.page.conftest import Person, fill
from tests.page.reading import fields_of, text_of


def staff_of(person):
    return API(person.tenant.slug, make_persona(person.tenant, "operator").token)


# Activity --------------------------------------------------------------------------------------


def test_who_did_what(apart):
    staff = staff_of(apart)
    assert apart.api.write("me", "k", 1).status == 201
    assert staff.write(f"user::{apart.name}", "k", 2, query={"mode": "upsert"}).status == 200
    read = staff.read(f"user::{apart.name}", "k", query={"reason": "Ticket 7"})
    assert read.status == 200
    client = apart.client()
    text = text_of(client.get(f"{apart.home}activity"))
    assert "You : Wrote an entry k" in text
    assert "operator : Changed an entry k" in text
    assert re.search(
        r"operator : Looked at your data k .{15,30} UTC \. Reason given: Ticket 7", text
    )
    assert "operator : Read an entry k" in text
    assert text.index("Changed an entry") < text.index("Wrote an entry")
    assert "Last read by: operator" in text_of(client.get(apart.home))
    record = text_of(client.get(apart.record("k")))
    assert "Read by others operator: on 1 day, last on" in record


def test_activity_is_paged(apart):
    for start in (0, 40):
        operations = [
            {"op": "put", "scope": "me", "key": f"k{number}", "value": number}
            for number in range(start, start + 40)
        ]
        assert apart.api.batch(*operations).status == 200
    client = apart.client()
    path, seen = f"{apart.home}activity", []
    while path:
        answer = client.get(path)
        seen += re.findall(r'<span class="key">(k\d+)</span>', answer.text)
        more = re.search(r'href="(\?before=[^"]+)"', answer.text)
        path = f"{apart.home}activity{more[1]}" if more else None
    assert sorted(seen) == sorted(f"k{number}" for number in range(80))
    assert client.get(f"{apart.home}activity?before=forged").status_code == 404


# Forgetting ------------------------------------------------------------------------------------


def test_forgetting_everything_with_preview_and_receipt(apart):
    fill(apart)
    client = apart.client()
    preview = client.get(f"{apart.home}forget")
    counted = re.search(r"This goes, for good (.*) This stays", text_of(preview))[1]
    assert re.search(r"\b9\b", counted), counted
    # What stays as proof is not said to go.
    for what in ("The trail: who read", "What you agreed to"):
        (before,) = re.findall(rf"(\S+ \S+ \S+ \S+ \S+) {what}", counted)
        assert before == "stay and lose your name:"
    unsure = client.post(f"{apart.home}forget", {})
    assert unsure.status_code == 400
    assert "Nothing was forgotten." in text_of(unsure)
    assert len(apart.api.get("subjects/me/data").json["preferences"]) == 9
    answer = client.post(f"{apart.home}forget", {"sure": "yes"})
    assert answer.status_code == 200
    text = text_of(answer)
    assert "Forgotten" in text
    assert "Erased: 9" in text
    assert apart.api.status_of("me", "support") == "none"
    assert apart.api.get("subjects/me/data").json["preferences"] == []
    assert "Nothing is held about you." in text_of(client.get(apart.home))
    reference = re.search(r"/erasures/([0-9a-f]{32})", answer.text)[1]
    again = client.get(f"{apart.home}erasures/{reference}")
    assert "Erased: 9" in text_of(again)
    receipt = client.get(f"{apart.home}erasures/{reference}/receipt")
    assert receipt["Content-Type"] == "application/jose"
    assert "attachment" in receipt["Content-Disposition"]
    told = jwt.decode(receipt.text, options={"verify_signature": False})
    assert told["erased"]["preferences"] == 9
    stranger = Person(apart.tenant)
    assert stranger.client().get(f"{apart.home}erasures/{reference}").status_code == 404


def test_forgetting_one_purpose(apart):
    fill(apart)
    client = apart.client()
    page = client.get(f"{apart.home}forget")
    assert f'href="{apart.home}forget/support"' in page.text
    preview = client.get(f"{apart.home}forget/support")
    assert "Forget what serves: Support replies" in text_of(preview)
    answer = client.post(f"{apart.home}forget/support", {"sure": "yes"})
    assert answer.status_code == 303
    assert "Erased: 2" in text_of(client.get(answer["Location"]))
    left = {one["purpose"] for one in apart.api.get("subjects/me/data").json["preferences"]}
    assert left == {"service"}
    assert apart.api.status_of("me", "support") == "given"
    assert client.get(f"{apart.home}forget/none-such").status_code == 404


def test_forgetting_one_entry_gives_a_receipt(person):
    assert person.api.write("me", "k", "x").status == 201
    client = person.client()
    record = person.record("k")
    answer = client.post(f"{record}/forget", fields_of(client.get(f"{record}/forget")))
    assert answer.status_code == 303
    receipt = client.get(answer["Location"])
    assert "Erased: 1" in text_of(receipt)
    assert "Signed receipt" in text_of(receipt)


def test_what_a_legal_hold_keeps_is_said(person):
    assert person.api.write("me", "k", "evidence").status == 201
    held = staff_of(person).put(f"subjects/{person.name}/holds/k", {"reason": "Case 12"})
    assert held.status == 200, held
    client = person.client()
    record = person.record("k")
    page = client.get(record)
    assert "A legal duty keeps it as it is for now." in text_of(page)
    assert 'name="value"' not in page.text
    preview = client.get(f"{record}/forget")
    assert "A legal duty keeps this entry for now." in text_of(preview)
    answer = client.post(f"{record}/forget", fields_of(preview))
    receipt = text_of(client.get(answer["Location"]))
    assert "Not all of it is forgotten yet" in receipt
    assert "Kept for now, under a legal duty kept: 1" in receipt
    assert "Signed receipt" not in receipt


def test_what_went_and_what_a_hold_keeps_are_told_apart(apart):
    for key in ("k", "m"):
        assert apart.api.write("me", key, "evidence").status == 201
    assert (
        staff_of(apart).put(f"subjects/{apart.name}/holds/k", {"reason": "Case 12"}).status == 200
    )
    answer = apart.client().post(f"{apart.home}forget", {"sure": "yes"})
    assert "Kept for now, under a legal duty kept: 1 erased: 1" in text_of(answer)


# Taking it along -------------------------------------------------------------------------------


def test_everything_can_be_taken_along(person):
    fill(person)
    client = person.client()
    assert "Take it along" in text_of(client.get(f"{person.home}export"))
    answer = client.get(f"{person.home}export/json")
    assert answer["Content-Disposition"].startswith("attachment")
    document = json.loads(answer.getvalue())
    assert len(document["parts"]["preferences"]) == 9
    assert document["manifest"]["count"] == sum(map(len, document["parts"].values()))
    page = client.get(f"{person.home}export/html")
    assert page["Content-Disposition"].startswith("attachment")
    assert "unsafe" not in page["Content-Security-Policy"]
    assert "Friendly, no jargon." in page.getvalue().decode()


# Stopping and objecting ------------------------------------------------------------------------


def test_stopping_and_allowing_everything(person):
    client = person.client()
    assert person.api.write("me", "k", "x").status == 201
    answer = client.post(f"{person.home}stop", {"use": "stop"})
    assert answer.status_code == 303
    assert person.api.read("me", "k").outcome == (403, "restricted")
    page = client.get(f"{person.home}consents")
    assert "You have stopped it. Since" in text_of(page)
    record = person.record("k")
    closed = client.get(record)
    assert "You have stopped its use." in text_of(closed)
    assert "x" in text_of(closed)
    assert 'name="value"' not in closed.text
    assert client.post(f"{person.home}stop", {"use": "allow"}).status_code == 303
    assert person.api.read("me", "k").status == 200
    assert client.post(f"{person.home}stop", {"use": "allow"}).status_code == 303
    assert client.post(f"{person.home}stop", {}).status_code == 400


def test_stopping_one_entry(person):
    client = person.client()
    assert person.api.write("me", "k", "x").status == 201
    assert person.api.write("me", "other", "y").status == 201
    record = person.record("k")
    form = fields_of(client.get(record))
    assert client.post(f"{record}/stop", {"use": "stop"}).status_code == 303
    assert person.api.read("me", "k").outcome == (403, "restricted")
    assert person.api.read("me", "other").status == 200
    page = client.get(record)
    assert "You have stopped the use of this entry." in text_of(page)
    refused = client.post(record, {**form, "value": "kept text"})
    assert refused.status_code == 403
    assert "kept text" in text_of(refused)
    assert client.post(f"{record}/stop", {"use": "allow"}).status_code == 303
    assert person.api.read("me", "k").status == 200


def test_why_staff_allowed_a_use_again_is_told(person):
    client = person.client()
    assert client.post(f"{person.home}stop", {"use": "stop"}).status_code == 303
    lifted = staff_of(person).delete(
        f"subjects/{person.name}/restriction", query={"reason": "It was settled on the phone"}
    )
    assert lifted.status in (200, 204), lifted
    text = text_of(client.get(f"{person.home}consents"))
    assert "operator allowed it again: It was settled on the phone" in text


def test_objecting(apart):
    interest = {"slug": "fraud", "title": "Fraud checks", "lawful_basis": "legitimate_interest"}
    key = {"key": "risk", "purpose": "fraud", "scopes": ["user"], "writers": ["subject"]}
    change_catalog(
        apart.tenant,
        purposes=[*CATALOG["purposes"], interest],
        definitions=[*CATALOG["definitions"], key],
    )
    assert apart.api.write("me", "risk", 3).status == 201
    client = apart.client()
    assert "You can object to this." in text_of(client.get(f"{apart.home}consents"))
    assert client.post(f"{apart.home}objections/fraud", {"use": "stop"}).status_code == 303
    assert apart.api.read("me", "risk").outcome == (403, "objected")
    assert "You object, so it is not used" in text_of(client.get(f"{apart.home}consents"))
    assert "You objected to this use." in text_of(client.get(apart.record("risk")))
    assert client.post(f"{apart.home}objections/fraud", {"use": "allow"}).status_code == 303
    assert apart.api.read("me", "risk").status == 200
    for slug, status in (("service", 400), ("support", 400), ("none-such", 404)):
        answer = client.post(f"{apart.home}objections/{slug}", {"use": "stop"})
        assert answer.status_code == status


def test_double_opt_in_says_that_it_is_not_in_force_yet(apart, settings):
    settings.CONSENTFUL_CONFIRMATION_SENDER = "tests.page.test_rights.send"
    support, *others = CATALOG["purposes"]
    change_catalog(apart.tenant, purposes=[{**support, "double_opt_in": True}, *others])
    client = apart.client()
    page = client.get(f"{apart.home}consents")
    form = dict(re.findall(r'name="(version|locale)" value="([^"]*)"', page.text)[:2])
    answer = client.post(f"{apart.home}consents/support", {**form, "decision": "given"})
    assert answer.status_code == 303
    assert "not in force yet" in text_of(client.get(f"{apart.home}consents"))
    assert apart.api.status_of("me", "support") == "none"
    assert SENT[-1].subject == apart.name


SENT = []


def send(request):
    """A host's sender, which remembers what it was given."""
    SENT.append(request)


def test_a_browsers_signal_is_heard(apart):
    support, ads, *others = CATALOG["purposes"]
    change_catalog(apart.tenant, purposes=[support, {**ads, "sharing": True}, *others])
    client = apart.client()
    assert client.get(apart.home, headers={"sec-gpc": "1"}).status_code == 200
    assert apart.api.status_of("me", "ads") == "refused"
    assert "by a signal of your browser" in text_of(client.get(f"{apart.home}consents"))


# Besides ---------------------------------------------------------------------------------------


def test_what_else_is_held_is_shown(person):
    text = text_of(person.client().get(person.home))
    assert "Besides Who you are here: the id under which your data is kept" in text
    assert person.name in text


@pytest.mark.parametrize("path", ["forget", "activity", "erasures/x", "erasures/x/receipt"])
def test_who_stands_for_nobody_opens_none_of_them(tenant, path):
    auditor = Person(tenant, role_of("auditor"))
    assert auditor.client().get(f"{auditor.home}{path}").status_code == 403


def role_of(name):
    from tenants.roles import Role

    return Role(name)
