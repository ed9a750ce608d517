"""The admin in a real browser, before the real server: what an operator sees and clicks."""

import re

import pytest
from playwright.sync_api import expect

from consent.models import ConsentEntry, ConsentState
from preferences.models import Definition, Preference
from tenants.models import Tenant, Token
from tenants.roles import Role
from tenants.tokens import digest_of
from tests.admin.conftest import Operator, url
from tests.admin.records import page as page_of
from tests.admin.records import row_of
from tests.admin.test_lists import insert
from tests.factories import events_of, make_persona, make_tenant
from tests.http.client import API

LISTED = url(Preference, "changelist")


@pytest.fixture(scope="module")
def world(database):
    """A tenant with a person, who consents to support alone, and with shared values."""
    tenant = make_tenant()
    tenant.name = "Acme"
    Tenant.objects.filter(pk=tenant.pk).update(name="Acme")
    alice = API(tenant.slug, make_persona(tenant, "alice").token)
    assert alice.give("me", "support").status == 200
    assert alice.write("me", "tone", "brief, please").status == 201
    assert alice.write("me", "nickname", "Al").status == 201
    staff = API(tenant.slug, make_persona(tenant, "operator").token)
    for key, value in (("branch", "main"), ("reviewers", 2), ("labels", ["bug", "docs"])):
        assert staff.write("repo::acme/checkout", key, value).status == 201
    assert staff.write("global", "banner_text", "Closed on Friday", ttl_seconds=86400).status == 201
    return tenant


def test_from_the_start_page_to_a_persons_value(world, open_desk):
    make_tenant({})  # of several tenants one is chosen by hand
    desk = open_desk(Operator(None, name="olivia", is_superuser=True), by_form=True)
    page = desk.page
    expect(page.get_by_role("heading", name="Choose a tenant first")).to_be_visible()
    page.get_by_role("link", name="Choose the one to work in").click()
    row = page.get_by_role("row").filter(has_text=world.slug)
    row.get_by_role("button", name="Enter").click()
    expect(page.get_by_text("You work in Acme now.")).to_be_visible()
    desk.picture("start")

    page.get_by_role("navigation", name="Ways").get_by_role("link", name="Preferences What").click()
    expect(page.get_by_text("Consentful: Acme")).to_be_visible()
    desk.picture("preferences")
    page.locator("#searchbar").fill("user::alice/tone")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="tone", exact=True).click()
    expect(page.get_by_text("brief, please")).to_have_count(0)
    desk.picture("reason")
    page.get_by_label("Reason").fill("Ticket 42: she asked for a change")
    page.get_by_role("button", name="Show the value").click()
    value = page.get_by_label("Value")
    expect(value).to_have_value('"brief, please"')
    desk.picture("record")

    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Nothing changed.")).to_be_visible()
    expect(page.get_by_label("Value")).to_have_count(0)  # shown that once
    page.get_by_label("Reason").fill("Ticket 42: she asked for a change")
    page.get_by_role("button", name="Show the value").click()
    value.fill("brief")  # no JSON
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".errorlist")).to_contain_text("double quotes")
    expect(value).to_have_value("brief")
    value.fill('"at length"')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved: preference")).to_be_visible()
    assert row_of(world, "user::alice", "tone").value == '"at length"'
    page.get_by_role("link", name="Trail", exact=True).click()
    expect(page.locator(".field-what").first).to_have_text("preference.replaced")
    desk.picture("trail")


def test_C009_texts_that_look_like_something_else(world, open_desk):
    staff = API(world.slug, make_persona(world, "operator").token)
    desk = open_desk(Operator(world, Role.OPERATOR))
    values = ["3.12", '{"a":1}', "  brief\r\n", 1.0]
    for number, value in enumerate(values):
        written = staff.write("project::strings", f"k{number}", value)
        assert written.status == 201
        row = row_of(world, "project::strings", f"k{number}")
        desk.open(page_of(row))
        desk.page.get_by_role("button", name="Save").click()
        expect(desk.page.get_by_text("Nothing changed.")).to_be_visible()
        desk.page.get_by_label("Tags").fill("seen")
        desk.page.get_by_role("button", name="Save").click()
        expect(desk.page.get_by_text("Saved: preference")).to_be_visible()
        after = row_of(world, "project::strings", f"k{number}")
        assert (after.value, after.tags) == (row.value, ["seen"])


def test_two_operators_at_one_record(world, open_desk):
    one, two = (Operator(world, Role.OPERATOR, name=name) for name in ("maria", "omar"))
    mine, theirs = open_desk(one), open_desk(two)
    row = row_of(world, "repo::acme/checkout", "branch")
    for desk in (mine, theirs):
        desk.open(page_of(row))
    theirs.page.get_by_label("Value").fill('"release"')
    theirs.page.get_by_role("button", name="Save").click()
    expect(theirs.page.get_by_text("Saved: preference")).to_be_visible()
    mine.page.get_by_label("Value").fill('"trunk"')
    mine.page.get_by_role("button", name="Save").click()
    conflict = mine.page.get_by_role("region", name="What changed meanwhile")
    expect(conflict).to_contain_text(two.user.username)
    expect(conflict).to_contain_text('"trunk"')
    expect(conflict).to_contain_text('"release"')
    expect(mine.page.get_by_label("Value")).to_have_value('"trunk"')
    mine.picture("conflict")
    mine.page.get_by_role("button", name="Save").click()
    expect(mine.page.get_by_text("Saved: preference")).to_be_visible()
    assert row_of(world, "repo::acme/checkout", "branch").value == '"trunk"'


def test_a_withheld_value_and_a_recorded_decision(open_desk):
    tenant = make_tenant()
    alice = API(tenant.slug, make_persona(tenant, "alice").token)
    assert alice.give("me", "support").status == 200
    assert alice.write("me", "tone", "value-nobody-sees").status == 201
    operator = Operator(tenant, Role.OPERATOR)
    desk = open_desk(operator, color_scheme="dark")
    page = desk.page
    page.get_by_role("navigation", name="Ways").get_by_role("link", name="Find a person").click()
    page.locator("#searchbar").fill("alice")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="alice", exact=True).click()
    desk.picture("person-dark")
    page.get_by_role("link", name="Record a decision").click()
    page.get_by_role("row").filter(has_text="support").get_by_role("link").click()
    page.get_by_label("Withdrawn").check()
    page.get_by_role("button", name="Record the decision").click()
    expect(page.locator(".errorlist")).to_contain_text("Say how you know")
    expect(page.get_by_label("Withdrawn")).to_be_checked()
    page.get_by_label("Evidence").fill("She called on 3 May")
    desk.picture("decision-dark")
    page.get_by_role("button", name="Record the decision").click()
    expect(page.get_by_text("The decision is in force.")).to_be_visible()
    assert alice.status_of("me", "support") == "withdrawn"

    desk.open(page_of(row_of(tenant, "user::alice", "tone")))
    expect(page.get_by_role("heading", name="The value is withheld")).to_be_visible()
    expect(page.get_by_label("Reason")).to_have_count(0)
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    desk.picture("withheld-dark")
    operator.allow("view_withheld_values")
    page.reload()
    page.get_by_label("Reason").fill("Complaint 7")
    page.get_by_role("button", name="Show the value").click()
    expect(page.locator("pre.consentful-value")).to_have_text('"value-nobody-sees"')
    expect(page.get_by_role("textbox", name="Value")).to_have_count(0)
    [event] = events_of(tenant, "data.disclosed")
    assert (event.actor, event.reason) == (operator.user.username, "Complaint 7")


def test_a_token_is_shown_once(world, open_desk):
    desk = open_desk(Operator(world, Role.OWNER))
    make_persona(world, "agent")
    desk.open(url(Token, "add"))
    desk.page.get_by_label("Login").fill("agent")
    desk.page.get_by_label("On behalf of").fill("alice")
    desk.page.get_by_role("button", name="Save").click()
    shown = desk.page.locator(".consentful-secret").inner_text()
    assert re.fullmatch(r"cst_[\w-]{43}", shown)
    token = Token.objects.get(digest=digest_of(shown))
    desk.page.get_by_role("link", name="Back to the tokens").click()
    expect(desk.page.get_by_text(shown)).to_have_count(0)
    desk.open(url(Token, "change", token.pk))
    expect(desk.page.get_by_text(shown)).to_have_count(0)
    expect(desk.page.get_by_text(token.digest)).to_have_count(0)


def test_many_rows_are_paged_and_deleted_with_a_reason(open_desk):
    tenant = make_tenant()
    insert(tenant, "project::atlas", 120)
    desk = open_desk(Operator(tenant, Role.OPERATOR))
    page = desk.page
    desk.open(LISTED)
    page.get_by_role("link", name="Older").click()
    page.get_by_role("link", name="Older").click()
    expect(page.get_by_text("20 on this page")).to_be_visible()
    expect(page.get_by_role("link", name="Older")).to_have_count(0)
    page.locator("#action-toggle").check()
    page.locator("select[name=action]").select_option("Delete selected preferences")
    page.locator("button[name=index]").click()
    desk.picture("delete")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Deleted: 20.")).to_be_visible()
    assert len(events_of(tenant, "preference.deleted")) == 20


def test_C053_the_trail_offers_no_change(world, open_desk):
    desk = open_desk(Operator(world, Role.OWNER))
    for model in (ConsentEntry, ConsentState):
        desk.open(url(model, "changelist"))
        content = desk.page.locator("#content")
        expect(content.get_by_role("link", name=re.compile("^Add"))).to_have_count(0)
        content.locator("#result_list th a").first.click()
        expect(desk.page.get_by_role("button", name="Save")).to_have_count(0)
        expect(desk.page.get_by_role("link", name="Delete")).to_have_count(0)
    desk.open("/admin/consentful_audit/event/")
    desk.page.locator("#result_list th a").first.click()
    expect(desk.page.get_by_role("button", name="Save")).to_have_count(0)
    expect(desk.page.get_by_role("link", name="Delete")).to_have_count(0)


def test_a_refused_page_and_an_empty_one(open_desk):
    tenant = make_tenant({})
    desk = open_desk(Operator(tenant, Role.OPERATOR))
    desk.open("/admin/consentful_audit/event/")
    expect(desk.page.get_by_text("You may not do this in this tenant.")).to_be_visible()
    desk.picture("refused")
    desk.open(url(Definition, "changelist"))
    expect(desk.page.get_by_text("No key is declared yet.")).to_be_visible()
    desk.picture("empty")
    assert [event.outcome for event in events_of(tenant, "access.denied")] == ["denied"]


def test_a_person_is_forgotten_from_its_page(open_desk):
    tenant = make_tenant()
    alice = API(tenant.slug, make_persona(tenant, "alice").token)
    assert alice.give("me", "support").status == 200
    assert alice.write("me", "tone", "brief, please").status == 201
    staff = API(tenant.slug, make_persona(tenant, "operator").token)
    assert staff.write("user::bob", "theme", "dark").status == 201
    desk = open_desk(Operator(tenant, Role.OPERATOR))
    page = desk.page
    page.get_by_role("navigation", name="Ways").get_by_role("link", name="Find a person").click()
    page.get_by_role("link", name="alice", exact=True).click()
    page.get_by_role("link", name="Forget", exact=True).click()
    page.get_by_label("Reason").fill("Ticket 42")
    page.get_by_role("button", name="Show what would go").click()
    look = page.get_by_role("region", name="What would go")
    expect(look.get_by_role("row").filter(has_text="preferences")).to_contain_text("1")
    desk.picture("forget")
    look.get_by_role("button", name="Erase it now").click()
    expect(page.get_by_text("Erased, and looked for again.")).to_be_visible()
    holders = page.get_by_role("region", name="Holders")
    expect(holders.get_by_role("row").filter(has_text="preferences")).to_contain_text("done")
    receipt = page.get_by_role("region", name="Receipt")
    expect(receipt).to_contain_text('"everything": true')
    desk.picture("erasure")
    with page.expect_download() as started:
        receipt.get_by_role("link", name="Download it").click()
    assert started.value.suggested_filename.endswith(".jws")
    assert started.value.path().read_text().count(".") == 2
    expect(page.get_by_text("alice")).to_have_count(0)

    row = row_of(tenant, "user::bob", "theme")
    desk.open(page_of(row))
    page.get_by_role("link", name="Hold", exact=True).click()
    page.get_by_label("Reason").fill("Case 12")
    page.get_by_role("button", name="Hold it").click()
    expect(page.get_by_text("The record is held.")).to_be_visible()
    expect(page.locator("#result_list")).to_contain_text("user::bob")
    page.get_by_role("link", name="theme", exact=True).click()
    expect(page.get_by_text("Case 12")).to_be_visible()


def test_the_dashboard_is_read_in_light_and_dark(world, open_desk):
    for scheme in ("light", "dark"):
        desk = open_desk(Operator(world, Role.OWNER), color_scheme=scheme)
        page = desk.page
        page.get_by_role("navigation", name="Ways").get_by_role("link", name="Dashboard").click()
        panel = page.get_by_role("region", name="Consents to support")
        expect(panel.get_by_role("img", name="Consents to support")).to_be_visible()
        table = panel.get_by_role("table", name="The numbers of Consents to support")
        expect(table.get_by_role("row")).to_have_count(13)
        # A bar stands out from the page by three to one, as graphics must (WCAG 1.4.11).
        colours = panel.evaluate(
            """one => [one.querySelectorAll('rect').forEach(bar => bar.setAttribute('height', 9)),
                       getComputedStyle(one.querySelector('rect.s0')).fill,
                       getComputedStyle(one.querySelector('rect.s1')).fill,
                       getComputedStyle(one.querySelector('rect.s2')).stroke,
                       getComputedStyle(document.body).backgroundColor]"""
        )
        *bars, behind = (luminance(text) for text in colours[1:])
        for bar in bars:
            light, dark = max(bar, behind) + 0.05, min(bar, behind) + 0.05
            assert light / dark >= 3, (scheme, colours)
        desk.picture(f"dashboard-{scheme}")
        page.set_viewport_size({"width": 400, "height": 800})
        assert panel.evaluate("one => one.scrollWidth <= one.clientWidth")


def luminance(colour):
    """Return how light a colour is that the browser computed, as WCAG defines it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))
