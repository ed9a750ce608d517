"""Who gets to a page, what the others read, and what an answer carries."""

import logging
import re

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client

from tenants.roles import Role
from tests.admin.conftest import PASSWORD
from tests.factories import events_of, make_persona, make_tenant, unique
from tests.page.conftest import Person, fill
from tests.page.reading import fields_of, links_of, text_of

MARKER = "marker-of-a-value"


def parts_of(person: Person) -> list[str]:
    """Return the address of every page that opens by itself."""
    return [person.home, f"{person.home}consents"]


# Signing in and out ----------------------------------------------------------------------------


def test_a_stranger_signs_in_and_comes_back(person):
    client = Client()
    sent = client.get(f"{person.home}consents")
    assert sent.status_code == 302
    assert sent["Location"] == f"{person.home}login?next={person.home}consents"
    form = client.get(sent["Location"])
    assert form.status_code == 200
    answer = client.post(
        sent["Location"],
        {"username": person.name, "password": PASSWORD, "next": f"{person.home}consents"},
    )
    assert (answer.status_code, answer["Location"]) == (302, f"{person.home}consents")
    assert client.get(answer["Location"]).status_code == 200


def test_a_wrong_password_is_said_in_the_form(person):
    answer = Client().post(f"{person.home}login", {"username": person.name, "password": "no"})
    assert answer.status_code == 200
    assert "correct username and password" in text_of(answer)
    assert 'role="alert"' in answer.content.decode()


def test_nobody_is_sent_to_another_host_after_signing_in(person):
    answer = Client().post(
        f"{person.home}login",
        {"username": person.name, "password": PASSWORD, "next": "https://elsewhere.example/"},
    )
    assert (answer.status_code, answer["Location"]) == (302, person.home)


def test_signing_out_takes_a_form(person):
    client = person.client()
    assert client.get(f"{person.home}logout").status_code == 405
    assert client.get(person.home).status_code == 200
    answer = client.post(f"{person.home}logout")
    assert (answer.status_code, answer["Location"]) == (303, f"{person.home}login")
    assert "You are signed out." in text_of(client.get(answer["Location"]))
    assert client.get(person.home).status_code == 302


def test_a_host_signs_people_in_itself(person, settings):
    settings.CONSENTFUL_PAGE_LOGIN_URL = "/account/sign-in"
    sent = Client().get(person.home)
    assert sent["Location"].startswith("/account/sign-in?next=/me/")
    assert Client().get(f"{person.home}login")["Location"] == "/account/sign-in"
    assert "/logout" not in " ".join(links_of(person.client().get(person.home)))


# Who is let in ---------------------------------------------------------------------------------


def test_a_tenant_of_others_and_one_that_is_not_there_look_the_same(person):
    other = make_tenant()
    client = person.client()
    foreign, absent = client.get(f"/me/{other.slug}/"), client.get(f"/me/{unique('no')}/")
    assert foreign.status_code == absent.status_code == 404
    assert text_of(foreign) == text_of(absent)
    assert other.name not in text_of(foreign) or other.name == ""


@pytest.mark.parametrize(
    ("role", "more"),
    [
        (Role.AGENT, {}),
        (Role.AUDITOR, {}),
        (Role.OPERATOR, {}),
    ],
)
def test_who_stands_for_no_person_has_no_page(tenant, role, more):
    user = Person(tenant, role, **more)
    answer = user.client().get(user.home)
    assert answer.status_code == 403
    assert "This is not open to you" in text_of(answer)
    [event] = events_of(tenant, "access.denied")
    assert (event.actor, event.outcome) == (user.name, "denied")


def test_an_operator_who_is_a_person_too_sees_its_own(tenant):
    both = Person(tenant, Role.OPERATOR, Role.MEMBER)
    make_persona(tenant, "bob")
    assert both.api.write("user::bob", "theme", "dark").status == 201
    assert both.api.write("me", "theme", "light").status == 201
    text = text_of(both.client().get(both.home))
    assert "light" in text
    assert "dark" not in text


def test_a_deactivated_user_is_a_stranger(person):
    client = person.client()
    get_user_model().objects.filter(pk=person.user.pk).update(is_active=False)
    assert client.get(person.home).status_code == 302


def test_another_persons_record_is_not_there(person):
    other = Person(person.tenant)
    assert other.api.write("me", "theme", "dark").status == 201
    assert person.api.write("me", "theme", "dark").status == 201
    theirs = other.record("theme")
    assert theirs in links_of(other.client().get(other.home))
    assert theirs != person.record("theme")
    client = person.client()
    for path in (theirs, f"{theirs}/forget"):
        assert client.get(path).status_code == 404
        assert client.post(path, {"value": '"light"', "way": "json"}).status_code == 404
    assert other.api.read("me", "theme").json["value"] == "dark"


# Sessions and forms ----------------------------------------------------------------------------


def test_an_ended_session_loses_no_text(person):
    assert person.api.write("me", "tone_of", MARKER).status == 201
    client = person.client()
    record = person.record("tone_of")
    client.logout()
    body = {"value": "what I <b>wrote</b>", "way": "text", "revision": "0" * 32}
    answer = client.post(record, body, headers={"sec-fetch-site": "same-origin"})
    assert answer.status_code == 401
    assert "You are signed out" in text_of(answer)
    assert "what I &lt;b&gt;wrote&lt;/b&gt;" in answer.content.decode()
    # Another site's form puts no words here.
    assert "wrote" not in text_of(client.post(record, body))
    assert MARKER not in text_of(answer)


def test_a_forged_form_changes_nothing_and_says_so(apart):
    assert apart.api.write("me", "theme", "dark").status == 201
    client = apart.client(enforce_csrf_checks=True)
    record = apart.record("theme")
    for path in (record, f"{record}/forget", f"{apart.home}logout", f"{apart.home}consents/ads"):
        answer = client.post(path, {"decision": "given", "version": 1, "value": '"light"'})
        assert answer.status_code == 403, path
        assert "This form is out of date" in text_of(answer)
    assert apart.api.read("me", "theme").json["value"] == "dark"
    assert apart.api.status_of("me", "ads") == "none"
    assert events_of(apart.tenant, "access.denied") == []


def test_a_form_of_ours_passes_the_check(person):
    assert person.api.write("me", "theme", "dark").status == 201
    client = person.client(enforce_csrf_checks=True)
    record = person.record("theme")
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', client.get(record).text)
    assert token
    form = fields_of(client.get(record))
    body = {**form, "value": '"light"', "csrfmiddlewaretoken": token[1]}
    assert client.post(record, body).status_code == 303
    assert person.api.read("me", "theme").json["value"] == "light"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_other_methods_are_refused_in_words(person, method):
    answer = person.client().generic(method, person.home)
    assert answer.status_code == 405
    assert answer["Allow"] == "GET, HEAD, OPTIONS"
    assert "This page cannot be used that way" in text_of(answer)


def test_unknown_addresses_are_pages_too(person):
    for path in (f"{person.home}nothing/here", f"{person.home}records/{'0' * 32}"):
        answer = person.client().get(path)
        assert answer.status_code == 404
        assert answer["Content-Type"].startswith("text/html")
        assert "There is nothing here" in text_of(answer)
    assert Client().get(person.home.rstrip("/"))["Location"] == person.home


# The store -------------------------------------------------------------------------------------


def test_a_store_that_is_away_is_said_in_words(person, superuser):
    client = person.client()
    assert client.get(person.home).status_code == 200
    connection.ensure_connection()
    superuser.execute(
        "SELECT pg_terminate_backend(%s, 10000)", [connection.connection.info.backend_pid]
    )
    try:
        answer = client.get(person.home)
    finally:
        connection.close()
    assert answer.status_code == 503
    assert answer["Retry-After"]
    assert "Not available just now" in text_of(answer)
    assert answer["X-Request-ID"] in text_of(answer)
    assert client.get(person.home).status_code == 200


def test_a_store_that_cannot_write_keeps_nothing(apart, as_owner):
    assert apart.api.write("me", "theme", "dark").status == 201
    client = apart.client()
    record = apart.record("theme")
    form = fields_of(client.get(record))
    name = f"refuse_{apart.tenant.pk}"
    as_owner(
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$;"
        f"CREATE TRIGGER {name} BEFORE INSERT ON consentful_audit_event FOR EACH ROW"
        f" WHEN (NEW.tenant_id = {apart.tenant.pk}) EXECUTE FUNCTION {name}()"
    )
    try:
        answers = [
            client.post(record, {**form, "value": '"light"'}),
            client.post(f"{record}/forget", form),
            client.post(f"{apart.home}consents/ads", {"decision": "given", "version": "1"}),
        ]
    finally:
        as_owner(f"DROP FUNCTION {name}() CASCADE")
    assert [answer.status_code for answer in answers] == [503, 503, 503]
    assert apart.api.read("me", "theme").json["value"] == "dark"
    assert apart.api.status_of("me", "ads") == "none"


# Answers ---------------------------------------------------------------------------------------


def test_headers_of_every_answer(person):
    client = person.client()
    answers = [client.get(path) for path in parts_of(person)]
    answers += [client.get(f"{person.home}nothing"), Client().get(f"{person.home}login")]
    for answer in answers:
        policy = answer["Content-Security-Policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert answer["Cache-Control"] == "private, no-store"
        assert {"Authorization", "Cookie"} <= {one.strip() for one in answer["Vary"].split(",")}
        assert answer["Referrer-Policy"] == "same-origin"
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["X-Frame-Options"] == "DENY"
        assert 1 <= len(answer["X-Request-ID"]) <= 128
        html = answer.content.decode()
        assert "<style" not in html
        assert " style=" not in html
        assert re.findall(r"<script(?![^>]* src=)", html) == []
        assert re.findall(r"\son\w+=", html) == []


def test_static_files_of_a_host_elsewhere_may_be_loaded(person, settings):
    settings.STATIC_URL = "https://static.studio.example/"
    policy = person.client().get(person.home)["Content-Security-Policy"]
    assert "style-src 'self' https://static.studio.example;" in policy


def test_no_address_and_no_line_of_the_log_tells_anything(person, caplog, monkeypatch):
    for name in ("consentful", "django", "django.request", "django.security"):
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
    caplog.set_level(logging.DEBUG)
    key = "key-of-marker"
    assert person.api.write("me", key, MARKER).status == 201
    caplog.clear()
    client = person.client()
    record = person.record(key)
    seen = [client.get(path) for path in (person.home, record, f"{record}/forget")]
    form = fields_of(seen[1])
    saved = client.post(record, {**form, "value": f"{MARKER}-2"})
    assert saved.status_code == 303
    stale = client.post(record, {**form, "value": f"{MARKER}-3"})
    assert stale.status_code == 409
    bad = client.post(record, {**form, "value": f"{MARKER}-4", "way": "json"})
    assert bad.status_code == 400
    gone = client.post(f"{record}/forget", fields_of(client.get(f"{record}/forget")))
    assert gone.status_code == 303
    missing = client.get(record)
    assert missing.status_code == 404
    links = [one for answer in (*seen, stale, bad) for one in links_of(answer)]
    assert len(links) > 20
    for text in (
        *links,
        saved["Location"],
        gone["Location"],
        *(str(one) for one in caplog.messages),
    ):
        assert MARKER not in text
        assert key not in text
        assert person.name not in text
    assert caplog.messages
    assert MARKER not in " ".join(str(cookie) for cookie in client.cookies.values())


def test_many_entries_are_paged_and_each_appears_once(person):
    client = person.client()
    for start in (0, 60):
        operations = [
            {"op": "put", "scope": "me", "key": f"k{number}", "value": number}
            for number in range(start, start + 60)
        ]
        assert person.api.batch(*operations).status == 200
    path, seen = person.home, []
    for page in range(3):
        answer = client.get(path)
        seen += re.findall(r'<span class="key">(k\d+)</span></a>', answer.text)
        more = re.search(r'href="(\?after=[^"]+)"', answer.text)
        assert (more is None) is (page == 2)
        if more:
            path = person.home + more[1]
    assert sorted(seen) == sorted(f"k{number}" for number in range(120))
    assert client.get(f"{person.home}?after=forged").status_code == 404


def test_without_a_word_from_anybody_nothing_is_held(person):
    assert "Nothing is held about you." in text_of(person.client().get(person.home))


def test_reading_ones_own_page_leaves_no_event(apart):
    fill(apart)
    before = len(events_of(apart.tenant))
    for path in parts_of(apart):
        assert apart.client().get(path).status_code == 200
    assert len(events_of(apart.tenant)) == before


def test_the_host_draws_its_own_frame(person, settings, tmp_path):
    frame = tmp_path / "consentful/me/base.html"
    frame.parent.mkdir(parents=True)
    frame.write_text(
        "<!doctype html><title>Studio</title><h6>Studio</h6>{% block content %}{% endblock %}"
    )
    settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": [str(tmp_path)]}]
    answer = person.client().get(person.home)
    assert "<h6>Studio</h6>" in answer.text
    assert "Nothing is held about you." in text_of(answer)
