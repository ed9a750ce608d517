"""A person's page in a real browser."""

from playwright.sync_api import expect

from tests.page.conftest import PHONE


def test_overview(alice, visit, axe):
    one = visit(alice)
    one.open()
    expect(one.page.get_by_role("heading", level=1)).to_have_text("What is held about you")
    one.picture("me-overview", full_page=True)
    print(axe.run(one.page).generate_report())
    one.page.get_by_role("link", name="How much detail").first.click()
    one.picture("me-record", full_page=True)
    print(axe.run(one.page).generate_report())
    one.open("consents")
    one.picture("me-consents", full_page=True)
    print(axe.run(one.page).generate_report())
    two = visit(alice, viewport=PHONE, color_scheme="dark")
    two.open()
    two.picture("me-overview-phone", full_page=True)
    print(axe.run(two.page).generate_report())
    two.open("consents")
    two.picture("me-consents-phone", full_page=True)
    print(axe.run(two.page).generate_report())
