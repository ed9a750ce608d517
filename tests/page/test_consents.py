"""Decisions on the page: the exact text, two equal answers, true at once everywhere."""

import re

import pytest

from tests.factories import CATALOG, change_catalog, events_of, make_persona
from tests.http.client import API
from tests.page.reading import text_of

TEXT = "We remember how you like our replies."


def section_of(answer, slug):
    """Return one purpose's part of the page."""
    return re.search(rf'<section[^>]* id="purpose-{slug}".*?</section>', answer.text, re.S)[0]


def form_of(answer, slug):
    """Return the hidden fields of one purpose's form."""
    return dict(
        re.findall(r'name="(version|locale|entry)" value="([^"]*)"', section_of(answer, slug))
    )


def decide(client, person, slug, decision, **more):
    page = client.get(f"{person.home}consents")
    body = {**form_of(page, slug), "decision": decision, **more}
    return client.post(f"{person.home}consents/{slug}", body)


def change_notice(tenant, *, is_material=True):
    """Publish a second text for support."""
    support, *others = CATALOG["purposes"]
    newer = {"version": 2, "locale": "en", "text": "A newer text.", "material": is_material}
    changed = {**support, "notices": [*support["notices"], newer]}
    change_catalog(tenant, purposes=[changed, *others])


def test_the_exact_text_with_version_and_language(person):
    page = person.client().get(f"{person.home}consents")
    support = section_of(page, "support")
    assert f'<blockquote lang="en"><p>{TEXT}</p></blockquote>' in support
    assert "version 1, language en" in support
    assert "You have not decided yet." in support
    service = page.text.partition("What does not depend on your consent")[2]
    assert "The service itself" in service
    assert "Needed for what you have agreed with us." in service
    assert f"{person.home}objections/service" not in service


def test_a_decision_counts_at_once(person):
    client = person.client()
    answer = decide(client, person, "support", "given")
    assert answer.status_code == 303
    assert answer["Location"] == f"{person.home}consents#purpose-support"
    assert person.api.write("me", "tone", "x").status == 201
    assert decide(client, person, "support", "withdrawn").status_code == 303
    assert person.api.read("me", "tone").outcome == (403, "consent_required")
    page = client.get(f"{person.home}consents")
    assert "Recorded: you do not agree." in text_of(page)
    history = section_of(page, "support").partition("Your decisions so far")[2]
    assert re.findall(r"<strong>(\w+)</strong>", history) == [
        "Withdrawn",
        "Agreed",
    ]
    assert "text: version 1, en" in history
    [given, withdrawn] = person.api.get("consents/me/support/history").json["results"]
    assert (given["decision"], given["version"], given["locale"]) == ("given", 1, "en")
    assert (given["method"], withdrawn["method"]) == ("user_confirmed", "user_confirmed")


def test_both_answers_look_the_same(person):
    page = person.client().get(f"{person.home}consents")
    for slug in ("support", "ads"):
        buttons = re.findall(r"<button ([^>]*)>", section_of(page, slug))
        assert len(buttons) == 2
        kinds = [re.sub(r'(id|value)="[^"]*"', "", one).split() for one in buttons]
        assert kinds[0] == kinds[1]


def test_the_state_is_marked_on_its_answer(person):
    client = person.client()
    assert person.api.give("me", "support").status == 200
    assert person.api.decide("me", "ads", "refused").status == 200
    page = client.get(f"{person.home}consents")
    for slug, states in (("support", ["true", "false"]), ("ads", ["false", "true"])):
        assert re.findall(r'aria-pressed="(\w+)"', section_of(page, slug)) == states


def test_saying_no_works_whatever_was_seen(person):
    client = person.client()
    page = client.get(f"{person.home}consents")
    stale = form_of(page, "support")
    assert person.api.give("me", "support").status == 200
    answer = client.post(f"{person.home}consents/support", {**stale, "decision": "withdrawn"})
    assert answer.status_code == 303
    assert person.api.status_of("me", "support") == "withdrawn"


def test_agreeing_counts_for_what_was_seen_alone(apart):
    client = apart.client()
    stale = form_of(client.get(f"{apart.home}consents"), "support")
    change_notice(apart.tenant)
    answer = client.post(f"{apart.home}consents/support", {**stale, "decision": "given"})
    page = client.get(answer["Location"])
    assert "changed after this page was opened, so nothing was recorded" in text_of(page)
    assert apart.api.status_of("me", "support") == "none"
    assert "A newer text." in section_of(page, "support")
    fresh = form_of(page, "support")
    assert fresh["version"] == "2"
    # Somebody recorded a no meanwhile.
    staff = API(apart.tenant.slug, make_persona(apart.tenant, "operator").token)
    assert staff.decide(apart.name, "support", "refused", evidence="call").status == 200
    client.post(f"{apart.home}consents/support", {**fresh, "decision": "given"})
    assert apart.api.status_of("me", "support") == "refused"


def test_a_newer_text_is_shown_beside_the_one_agreed_to(apart):
    client = apart.client()
    assert apart.api.give("me", "support").status == 200
    change_notice(apart.tenant)
    page = client.get(f"{apart.home}consents")
    support = section_of(page, "support")
    assert "The text has changed since you agreed" in support
    assert "A newer text." in support
    assert "The text you agreed to: version 1" in support
    assert TEXT in support
    assert 'aria-pressed="true"' not in support
    assert decide(client, apart, "support", "given").status_code == 303
    assert apart.api.status_of("me", "support") == "given"


def test_a_newer_text_that_asks_for_nothing_is_not_agreed_to_by_itself(apart):
    client = apart.client()
    assert apart.api.give("me", "support").status == 200
    change_notice(apart.tenant, is_material=False)
    support = section_of(client.get(f"{apart.home}consents"), "support")
    assert "You agree to an older text, which still counts." in support
    assert "A newer text." in support
    assert TEXT in support
    assert 'aria-pressed="true"' not in support
    assert apart.api.status_of("me", "support") == "given"


def test_who_recorded_a_decision_is_told(person):
    staff = API(person.tenant.slug, make_persona(person.tenant, "operator").token)
    assert staff.give(person.name, "support", evidence="call").status == 200
    page = person.client().get(f"{person.home}consents")
    assert "recorded by operator" in section_of(page, "support")


def test_notices_are_text(tenant, apart):
    text = '<script>alert(1)</script> & "quoted"\n\n<b>second</b> paragraph'
    support, *others = CATALOG["purposes"]
    hostile = {"version": 2, "locale": "en", "text": text, "material": True}
    change_catalog(
        tenant,
        purposes=[
            {**support, "title": "<i>T</i>", "notices": [*support["notices"], hostile]}, *others
        ],
    )  # fmt: skip
    page = apart.client().get(f"{apart.home}consents")
    assert page.text.count("<script") == 1
    assert "<i>" not in page.text
    assert text.replace("\n\n", " ") in text_of(page)


def test_a_retired_purpose_can_be_refused_still(apart):
    client = apart.client()
    assert apart.api.give("me", "ads").status == 200
    change_catalog(
        apart.tenant,
        purposes=[one for one in CATALOG["purposes"] if one["slug"] != "ads"],
        definitions=[one for one in CATALOG["definitions"] if one["purpose"] != "ads"],
    )
    page = client.get(f"{apart.home}consents")
    assert "This is no longer asked for." in section_of(page, "ads")
    assert decide(client, apart, "ads", "given").status_code == 400
    assert decide(client, apart, "ads", "withdrawn").status_code == 303
    assert apart.api.status_of("me", "ads") == "withdrawn"


@pytest.mark.parametrize(
    ("slug", "body", "status"),
    [
        ("support", {"decision": "maybe"}, 400),
        ("support", {}, 400),
        ("support", {"decision": "given"}, 400),
        ("support", {"decision": "given", "version": "7"}, 400),
        ("support", {"decision": "given", "version": "1", "locale": "fr"}, 400),
        ("service", {"decision": "withdrawn"}, 400),
        ("nothing", {"decision": "withdrawn"}, 404),
    ],
)
def test_what_is_no_decision_is_a_page_of_its_own(apart, slug, body, status):
    answer = apart.client().post(f"{apart.home}consents/{slug}", body)
    assert answer.status_code == status
    assert "<h1>" in answer.text
    assert events_of(apart.tenant, "consent.given", "consent.refused") == []


def test_the_text_is_in_the_pages_language(person):
    page = person.client().get(f"{person.home}consents", headers={"accept-language": "de-AT, en"})
    assert '<html lang="de">' in page.text
    assert '<blockquote lang="de"><p>Wir merken uns' in section_of(page, "support")
    # Where there is none, the one there is, and it says so.
    assert '<blockquote lang="en">' in section_of(page, "ads")


def test_a_decision_made_elsewhere_meanwhile_is_shown_and_nothing_recorded(apart):
    """The entry that the page knew is no longer the newest: 409 in the service, words here."""
    client = apart.client()
    assert apart.api.give("me", "support").status == 200
    assert apart.api.withdraw("me", "support").status == 200
    stale = form_of(client.get(f"{apart.home}consents"), "support")
    assert stale["entry"]
    staff = API(apart.tenant.slug, make_persona(apart.tenant, "operator").token)
    assert staff.give(apart.name, "support", evidence="call").status == 200
    assert staff.withdraw(apart.name, "support", evidence="call").status == 200
    answer = client.post(f"{apart.home}consents/support", {**stale, "decision": "given"})
    assert (answer.status_code, answer["Location"]) == (
        303, f"{apart.home}consents#purpose-support",
    )  # fmt: skip
    page = client.get(answer["Location"])
    assert "your decision changed after this page was opened, so nothing was recorded" in text_of(
        page
    )
    assert 'class="message error"' in page.text
    assert len(apart.api.get("consents/me/support/history").json["results"]) == 4
    assert form_of(page, "support")["entry"] not in ("", stale["entry"])


def test_pressing_what_is_so_already_adds_nothing(apart):
    """Without JavaScript nothing keeps the press from being sent: it is no renewal."""
    client = apart.client()
    until = "2090-01-01T00:00:00Z"
    assert apart.api.give("me", "support", expires_at=until).status == 200
    before = apart.api.get("consents/me").json
    answer = decide(client, apart, "support", "given")
    assert "You agree already: nothing was added." in text_of(client.get(answer["Location"]))
    assert apart.api.get("consents/me").json == before  # its end too
    assert len(apart.api.get("consents/me/support/history").json["results"]) == 1
    # A newer text is another matter, and so is a consent that has ended.
    change_notice(apart.tenant, is_material=False)
    decide(client, apart, "support", "given")
    assert len(apart.api.get("consents/me/support/history").json["results"]) == 2
    decide(client, apart, "support", "withdrawn")
    decide(client, apart, "support", "withdrawn")
    decide(client, apart, "support", "given")
    assert len(apart.api.get("consents/me/support/history").json["results"]) == 4


# Asked for with a message -----------------------------------------------------------------------

sent = []


def fail(request):
    raise OSError("the mail server is away")


@pytest.fixture
def confirmed(apart):
    """Somebody who is asked twice before support is in force."""
    support, *others = CATALOG["purposes"]
    change_catalog(apart.tenant, purposes=[{**support, "double_opt_in": True}, *others])
    return apart


def test_what_waits_for_a_confirmation_stands_in_its_card(confirmed, settings):
    settings.CONSENTFUL_CONFIRMATION_SENDER = "tests.page.test_consents.keep"
    client = confirmed.client()
    assert "confirm it with the message" not in client.get(f"{confirmed.home}consents").text
    decide(client, confirmed, "support", "given")
    client.get(f"{confirmed.home}consents")  # takes the message of the press away
    support = section_of(client.get(f"{confirmed.home}consents"), "support")
    assert "You have not decided yet." in support
    assert "not in force yet: confirm it with the message that was sent to you." in support
    assert "It can be confirmed until" in support
    assert "Send it again" in support
    ads = section_of(client.get(f"{confirmed.home}consents"), "ads")
    assert "confirm it with" not in ads
    first = sent[-1].token
    decide(client, confirmed, "support", "given")
    path = "consents/me/support/confirmation"
    assert confirmed.api.post(path, {"token": first}).status == 404
    assert confirmed.api.post(path, {"token": sent[-1].token}).json["status"] == "given"
    assert "confirm it with" not in section_of(client.get(f"{confirmed.home}consents"), "support")


def test_what_was_asked_for_can_be_taken_back(confirmed, settings):
    settings.CONSENTFUL_CONFIRMATION_SENDER = "tests.page.test_consents.keep"
    client = confirmed.client()
    decide(client, confirmed, "support", "withdrawn")
    decide(client, confirmed, "support", "given")
    support = section_of(client.get(f"{confirmed.home}consents"), "support")
    assert "aria-disabled" not in support
    decide(client, confirmed, "support", "withdrawn")
    support = section_of(client.get(f"{confirmed.home}consents"), "support")
    assert "confirm it with" not in support
    path = "consents/me/support/confirmation"
    assert confirmed.api.post(path, {"token": sent[-1].token}).status == 404


def test_a_message_that_cannot_be_sent_is_said(confirmed, settings):
    settings.CONSENTFUL_CONFIRMATION_SENDER = "tests.page.test_consents.fail"
    client = confirmed.client()
    answer = decide(client, confirmed, "support", "given")
    page = client.get(answer["Location"])
    assert "could not be sent. Nothing was asked for: try again later." in text_of(page)
    assert "confirm it with the message that was sent" not in text_of(page)
    assert "You have not decided yet." in section_of(page, "support")


def keep(request):
    sent.append(request)
