"""A guardian's pages: for whom, what can be done there, and that both names are in the trail."""

import re

import pytest

from audit.actors import SYSTEM
from tenants.guardians import end_guardianship, grant_guardianship
from tenants.roles import Role
from tests.factories import events_of, make_persona
from tests.http.client import API
from tests.page.conftest import PHONE, Person
from tests.page.reading import fields_of, links_of, text_of
from tests.trails import prove

VALUE = "likes-short-sentences"


@pytest.fixture
def guardian(tenant):
    """Somebody who acts for kim, about whom something is held, and for ada."""
    person = Person(tenant)
    staff = API(tenant.slug, make_persona(tenant, "operator").token)
    for ward in ("kim", "ada"):
        grant_guardianship(
            tenant_id=tenant.pk,
            username=person.name,
            subject=ward,
            evidence="paper 17",
            actor=SYSTEM,
        )
        assert staff.give(ward, "support", evidence="form").status == 200
    assert staff.write("user::kim", "tone", VALUE).status == 201
    return person


def place_of(client, person, ward):
    """Return the address of a ward's first page, as the guardian's own page links to it."""
    page = client.get(person.home)
    (link,) = re.findall(rf'<a href="([^"]*/for/[^"]*)"[^>]*>{ward}</a>', page.text)
    return link


def test_the_own_page_names_them_and_their_addresses_nobody(guardian):
    client = guardian.client()
    page = client.get(guardian.home)
    assert VALUE not in page.text
    assert "You act for" not in text_of(page)
    for ward in ("ada", "kim"):
        assert ward not in place_of(client, guardian, ward)
    assert not any(
        "/for/" in link for link in links_of(Person(guardian.tenant).client().get(guardian.home))
    )


def test_a_ward_is_chosen_and_every_link_stays_with_it(guardian):
    client = guardian.client()
    place = place_of(client, guardian, "kim")
    page = client.get(place)
    assert "You act for kim." in text_of(page)
    assert VALUE in page.text
    for part in ("", "consents", "activity", "export", "forget"):
        answer = client.get(f"{place}{part}")
        assert answer.status_code == 200, part
        own = [one for one in links_of(answer) if one.startswith(guardian.home)]
        elsewhere = [one for one in own if not one.startswith(place) and "/for/" not in one]
        assert set(elsewhere) <= {guardian.home, f"{guardian.home}logout"}, part
    looked = events_of(guardian.tenant, "data.disclosed")
    assert {(one.actor, one.on_behalf_of, one.subject) for one in looked} == {
        (guardian.name, "kim", "kim")
    }
    assert len(looked) == 6
    assert f"{guardian.name}, " in text_of(client.get(place))  # noted as who read it last


def test_deciding_names_both(guardian):
    client = guardian.client()
    place = place_of(client, guardian, "kim")
    answer = client.post(f"{place}consents/support", {"decision": "withdrawn"})
    assert (answer.status_code, answer["Location"]) == (303, f"{place}consents#purpose-support")
    (event,) = events_of(guardian.tenant, "consent.withdrawn")
    assert (event.actor, event.on_behalf_of, event.subject) == (guardian.name, "kim", "kim")
    assert guardian.api.status_of("kim", "support") == "withdrawn"
    assert guardian.api.status_of("ada", "support") == "given"
    assert guardian.api.status_of("me", "support") == "none"
    history = text_of(client.get(f"{place}consents"))
    assert f"recorded by {guardian.name}" in history


def test_stopping_and_a_browsers_signal(guardian):
    client = guardian.client()
    place = place_of(client, guardian, "kim")
    client.get(place, headers={"Sec-GPC": "1"})
    assert client.post(f"{place}stop", {"use": "stop"}).status_code == 303
    (row,) = guardian.api.get("subjects/kim/restrictions").json["results"]
    assert (row["actor"], row["method"]) == (guardian.name, "guardian")
    assert [one for one in events_of(guardian.tenant) if one.action.startswith("consent.")
            and one.actor == guardian.name] == []  # fmt: skip


def test_nothing_is_written_for_a_ward(guardian):
    client = guardian.client()
    place = place_of(client, guardian, "kim")
    (record,) = {one for one in links_of(client.get(place)) if re.search(r"/records/\w+$", one)}
    page = client.get(record)
    assert "Staff correct it if you ask" in text_of(page)
    assert 'name="value"' not in page.text
    answer = client.post(record, {"value": "mine", "way": "text", "revision": "0" * 32})
    assert answer.status_code == 403
    assert guardian.api.get("subjects/kim/data").json["preferences"][0]["value"] == VALUE


def test_one_entry_and_everything_can_be_forgotten(guardian):
    client = guardian.client()
    guardian.api.give("me", "support")
    assert guardian.api.write("me", "theme", "dark").status == 201
    place = place_of(client, guardian, "kim")
    (record,) = {
        one for one in links_of(client.get(place)) if re.search(r"/records/\w+/forget", one)
    }
    answer = client.post(record, fields_of(client.get(record)))
    assert answer.status_code == 303
    receipt = client.get(answer["Location"])
    assert "Forgotten" in text_of(receipt)
    assert client.get(f"{answer['Location']}/receipt").status_code == 200
    answer = client.post(f"{place}forget", {"sure": "yes"})
    assert answer.status_code == 200
    assert "You act for this person no longer" in text_of(answer)
    assert not any("/for/" in one for one in links_of(answer) if place in one)
    assert client.get(place).status_code == 404
    made = list(events_of(guardian.tenant, "erasure.created"))
    assert [one.actor for one in made] == [guardian.name] * 2
    assert "kim" not in [one.on_behalf_of for one in made[1:]]
    # Of the guardian nothing went.
    assert guardian.api.read("me", "theme").json["provenance"]["actor"] == guardian.name
    assert client.get(place_of(client, guardian, "ada")).status_code == 200
    prove(guardian.tenant)


def test_nobody_else_opens_it_and_an_ended_mandate_closes_it(guardian):
    client = guardian.client()
    place = place_of(client, guardian, "kim")
    stranger = Person(guardian.tenant)
    steward = Person(guardian.tenant, Role.MEMBER, Role.OPERATOR)
    wrong = place[:-2] + ("0" if place[-2] != "0" else "1") + "/"
    for who, path in ((stranger, place), (steward, place), (guardian, wrong)):
        answer = who.client().get(path)
        assert answer.status_code == 404
        assert VALUE not in answer.text
    assert stranger.client().post(f"{place}forget", {"sure": "yes"}).status_code == 404
    end_guardianship(
        tenant_id=guardian.tenant.pk, username=guardian.name, subject="kim", actor=SYSTEM
    )
    for answer in (
        client.get(place),
        client.post(f"{place}consents/support", {"decision": "given"}),
    ):
        assert answer.status_code == 404
    assert "kim" not in client.get(guardian.home).text


def test_somebody_without_wards_sees_no_choice(person):
    assert "For whom you act" not in text_of(person.client().get(person.home))


def test_it_is_accessible_and_fits_a_phone(guardian, visit, axe):
    client = guardian.client()
    place = place_of(client, guardian, "kim")
    one = visit(guardian, viewport=PHONE)
    for path in (guardian.home, place, f"{place}consents", f"{place}forget"):
        one.open(path)
        found = axe.run(one.page, options={"resultTypes": ["violations"]})
        assert found.violations_count == 0, f"{path}\n{found.generate_report()}"
        assert one.overflow == 0, path
    # By keyboard: the second stop after the skip link is the first choice.
    one.open(place)
    one.page.keyboard.press("Tab")
    one.page.keyboard.press("Tab")
    assert one.page.evaluate("document.activeElement.textContent") == "Yourself"
    one.page.keyboard.press("Enter")
    one.page.wait_for_url(f"**{guardian.home}")
