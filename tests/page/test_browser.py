"""The page in a real browser: with scripts and without, by keyboard, on a phone, in two windows."""

import re

import pytest
from playwright.sync_api import expect

from tests.admin.conftest import PASSWORD
from tests.factories import make_persona
from tests.http.client import API
from tests.page.conftest import PHONE, Person, fill

#: A text that a browser would run, draw or fetch if it were not a text.
HOSTILE = '<script>alert(1)</script><img src="http://elsewhere.example/x" onerror="alert(2)">'


def paths_of(person):
    """Return the address of each page that a person can open."""
    record = person.record("reply_style")
    return [
        person.home,
        record,
        person.record("address"),
        f"{record}/forget",
        f"{person.home}consents",
        f"{person.home}activity",
        f"{person.home}export",
        f"{person.home}forget",
        f"{person.home}nothing-here",
        f"{person.home}login",
    ]


# Looks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible_and_fits_a_phone(alice, visit, axe, scheme):
    one = visit(alice, viewport=PHONE, color_scheme=scheme)
    # What the scheme changes are the colours alone.
    options = {"runOnly": ["color-contrast"]} if scheme == "dark" else {}
    for number, path in enumerate(paths_of(alice)):
        one.open(path)
        found = axe.run(one.page, options={"resultTypes": ["violations"], **options})
        assert found.violations_count == 0, f"{path}\n{found.generate_report()}"
        assert one.overflow == 0, path
        one.picture(f"me-{number}-{scheme}", full_page=True)


def test_nothing_runs_that_was_stored(person, visit):
    api = person.api
    assert api.write("me", "h", HOSTILE, tags=[HOSTILE[:60]]).status == 201
    assert api.write("me", HOSTILE.replace("/", ""), {HOSTILE: [HOSTILE]}).status == 201
    one = visit(person)
    one.page.on("dialog", lambda dialog: one.faults.append(dialog.message))
    one.open()
    expect(one.page.get_by_text(HOSTILE).first).to_be_visible()
    one.open(person.record("h"))
    expect(one.page.get_by_role("textbox")).to_have_value(HOSTILE)
    # Nor would it, had it been taken for markup.
    one.page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=alert(3)>')"
    )
    one.page.wait_for_timeout(100)
    refused = [fault for fault in one.faults if "Content Security Policy" in fault]
    assert refused
    assert one.faults == refused
    one.faults.clear()


# Signing in ------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_scripts", [True, False])
def test_the_whole_way_with_and_without_scripts(person, visit, has_scripts):
    fill(person)
    one = visit(None, java_script_enabled=has_scripts)
    page = one.page
    one.open(person.home)
    page.get_by_label("User name").fill(person.name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("What is held about you")

    page.get_by_role("link", name=re.compile("Correct ?: How much")).click()
    page.get_by_label("detailed").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("Saved.")
    assert person.api.read("me", "reply_style").json["value"] == "detailed"

    page.get_by_role("link", name="Consent").click()
    support = page.get_by_role("region", name="Support replies")
    support.get_by_role("button", name="I do not agree").click()
    expect(page.get_by_role("status")).to_have_text("Recorded: you do not agree.")
    expect(support.get_by_role("button", name="I do not agree")).to_have_attribute(
        "aria-pressed", "true"
    )
    assert person.api.read("me", "tone").outcome == (403, "consent_required")

    page.get_by_role("navigation").get_by_role("link", name="What is held").click()
    expect(page.get_by_text("You do not agree to this use at present.").first).to_be_visible()
    page.get_by_role("link", name=re.compile("Forget ?: How much")).click()
    expect(page.get_by_role("region", name="This goes, for good")).to_contain_text("detailed")
    page.get_by_role("button", name="Forget it for good").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Forgotten")
    page.get_by_role("navigation").get_by_role("link", name="What is held").click()
    expect(page.get_by_text("How much detail")).to_have_count(0)

    page.get_by_role("link", name="Activity").click()
    expect(page.get_by_text("Recorded a withdrawal").first).to_be_visible()
    page.get_by_role("link", name="Take it along").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="A file for another service (JSON)").click()
    assert download.value.suggested_filename == f"personal-data-{person.tenant.slug}.json"

    page.get_by_role("link", name="Forget", exact=True).click()
    page.get_by_label("I have seen what goes and what stays.").check()
    page.get_by_role("button", name="Forget it for good").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Forgotten")
    assert person.api.get("subjects/me/data").json["preferences"] == []

    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    one.open(person.home)
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_a_decision_in_place_moves_nothing(person, visit):
    one = visit(person, viewport=PHONE)
    page = one.page
    one.open("consents")
    ads = page.get_by_role("region", name="Advertisements")
    yes = ads.get_by_role("button", name="I agree")
    yes.scroll_into_view_if_needed()
    page.evaluate("window.stays = true")
    before = yes.bounding_box()["y"]
    yes.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("Recorded: you agree.")
    expect(yes).to_have_attribute("aria-pressed", "true")
    expect(yes).to_be_focused()
    assert page.evaluate("window.stays")
    assert abs(yes.bounding_box()["y"] - before) <= 2
    assert person.api.status_of("me", "ads") == "given"
    # Pressing what is so already sends nothing.
    page.keyboard.press("Enter")
    page.wait_for_timeout(150)
    assert len(person.api.get("consents/me/ads/history").json["results"]) == 1
    ads.get_by_role("button", name="I do not agree").click()
    expect(page.get_by_role("status")).to_have_text("Recorded: you do not agree.")
    assert person.api.status_of("me", "ads") == "withdrawn"


def test_a_decision_after_the_session_ended(person, visit):
    one = visit(person)
    one.open("consents")
    one.context.clear_cookies(name="sessionid")
    one.page.get_by_role("region", name="Advertisements").get_by_role(
        "button", name="I agree"
    ).click()
    expect(one.page.get_by_role("heading", level=1)).to_have_text("You are signed out")
    assert person.api.status_of("me", "ads") == "none"


# By keyboard -----------------------------------------------------------------------------------


def test_a_whole_erasure_reads_well(apart, visit, axe):
    fill(apart)
    one = visit(apart, viewport=PHONE)
    one.open("forget")
    # Nothing goes by mistake.
    one.page.get_by_role("button", name="Forget it for good").click()
    expect(one.page.get_by_role("heading", level=1)).to_have_text("Forget everything")
    assert len(apart.api.get("subjects/me/data").json["preferences"]) == 9
    one.page.get_by_label("I have seen what goes and what stays.").check()
    one.page.get_by_role("button", name="Forget it for good").click()
    expect(one.page.get_by_role("heading", level=1)).to_have_text("Forgotten")
    assert axe.run(one.page).violations_count == 0
    assert one.overflow == 0
    one.picture("me-receipt", full_page=True)
    with one.page.expect_download() as download:
        one.page.get_by_role("link", name="Signed receipt").click()
    assert download.value.suggested_filename.endswith(".jws")


def test_by_keyboard_alone(person, visit):
    assert person.api.write("me", "note", "old").status == 201
    one = visit(person)
    page = one.page
    one.open()

    def reach(name):
        """Press Tab until the control of that name has the focus, which must be visible."""
        for _ in range(40):
            page.keyboard.press("Tab")
            focused = page.locator(":focus")
            if focused.count() and name in focused.inner_text():
                outline = focused.evaluate("one => getComputedStyle(one).outlineStyle")
                assert outline != "none", name
                return
        raise AssertionError(name)

    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("To the content")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    reach("Correct")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("note")
    page.locator("#value").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("new")
    reach("Save")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("Saved.")
    assert person.api.read("me", "note").json["value"] == "new"
    reach("Forget it")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Forget this entry")
    reach("Forget it for good")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Forgotten")
    assert person.api.read("me", "note").status == 404


# Two windows -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("choice", "stored"), [("Keep mine", "mine"), ("Take theirs", "theirs")])
def test_two_windows_at_one_entry(person, visit, axe, choice, stored):
    assert person.api.write("me", "note", "first").status == 201
    record = person.record("note")
    mine, theirs = visit(person, viewport=PHONE), visit(person)
    for one in (mine, theirs):
        one.open(record)
    theirs.page.get_by_label("New value").fill("theirs")
    theirs.page.get_by_role("button", name="Save").click()
    expect(theirs.page.get_by_role("status")).to_have_text("Saved.")
    mine.page.get_by_label("New value").fill("mine")
    mine.page.get_by_role("button", name="Save").click()
    conflict = mine.page.get_by_role("region", name="This changed in the meantime")
    expect(conflict).to_contain_text("mine")
    expect(conflict).to_contain_text("theirs")
    expect(mine.page.get_by_label("New value")).to_have_value("mine")
    control = "link"
    if choice == "Keep mine":
        control = "button"
        assert axe.run(mine.page).violations_count == 0
        assert mine.overflow == 0
        mine.picture("me-conflict", full_page=True)
    conflict.get_by_role(control, name=choice).click()
    expect(mine.page.get_by_label("New value")).to_have_value(stored)
    assert person.api.read("me", "note").json["value"] == stored


def test_text_that_was_not_sent_is_asked_for(person, visit):
    assert person.api.write("me", "note", "first").status == 201
    one = visit(person)
    asked = []
    one.page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    one.open(person.record("note"))
    one.page.get_by_label("New value").press_sequentially("x")
    one.page.get_by_role("link", name="Consent").click()
    expect(one.page.get_by_label("New value")).to_have_value("xfirst")
    assert asked == ["beforeunload"]


def test_a_text_stored_by_somebody_else_meanwhile(apart, visit):
    assert apart.api.write("me", "note", "first").status == 201
    one = visit(apart)
    one.open(apart.record("note"))
    staff = API(apart.tenant.slug, make_persona(apart.tenant, "operator").token)
    revision = apart.api.read("me", "note").revision
    assert staff.write(f"user::{apart.name}", "note", "by staff", revision=revision).status == 200
    one.page.get_by_label("New value").fill("mine")
    one.page.get_by_role("button", name="Save").click()
    conflict = one.page.get_by_role("region", name="This changed in the meantime")
    expect(conflict).to_contain_text(re.compile(r"by staff\s+Written by: Staff \(operator\)"))


# Languages -------------------------------------------------------------------------------------


def test_the_page_speaks_german(alice, visit):
    one = visit(alice, locale="de-DE", viewport=PHONE)
    one.open()
    expect(one.page.locator("html")).to_have_attribute("lang", "de")
    expect(one.page.get_by_role("heading", level=1)).to_have_text("Was über Sie gespeichert ist")
    for path in paths_of(alice):
        one.open(path)
        assert one.overflow == 0, path
    one.open()
    one.page.get_by_role("link", name="English").click()
    expect(one.page.get_by_role("heading", level=1)).to_have_text("What is held about you")
    one.open("consents")
    expect(one.page.locator("html")).to_have_attribute("lang", "en")


def test_a_person_in_a_tenant_of_others(visit, tenant, alice):
    stranger = Person(tenant)
    one = visit(stranger)
    one.open(alice.home)
    expect(one.page.get_by_role("heading", level=1)).to_have_text("There is nothing here")
