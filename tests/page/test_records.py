"""What is held: shown by type, corrected, taken in conflict, forgotten; with consent and without."""

import re
from html import unescape

import pytest

from tests.factories import CATALOG, change_catalog, events_of, make_persona, unique
from tests.http.client import API
from tests.page.conftest import Person, fill
from tests.page.reading import fields_of, text_of

HOSTILE = (
    """</textarea></pre><script>document.title='x'</script><img src=x onerror="alert(1)">{{ 7 }}"""
)


@pytest.fixture(scope="module")
def somebody(shared):
    """One person for what needs but one entry of its own."""
    return Person(shared)


def written(person, key, value):
    """Store a value and return its page's address and the fields of its form."""
    assert person.api.write("me", key, value).status in (200, 201)
    client = person.client()
    record = person.record(key)
    return client, record, fields_of(client.get(record))


# Shown -----------------------------------------------------------------------------------------


def test_an_entry_says_what_why_who_and_how_long(alice):
    client = alice.client()
    page = text_of(client.get(alice.home))
    assert "Support replies Used only while you agree." in page
    assert "The service itself Needed for what you have agreed with us." in page
    assert "How much detail a reply should hold reply_style brief" in page
    assert "Friendly, no jargon. Short sentences please." in page
    assert "Staff (operator)" in page
    assert "Only staff write this." in page
    assert "Stays until it is forgotten." in page
    record = text_of(client.get(alice.record("reply_style")))
    assert re.search(r"Stays until 30? ?\w+ ?\w* 20\d\d, \d\d:\d\d UTC", record)
    assert "What for Support replies. Used only while you agree." in record
    assert "Written by You" in record


def test_where_a_value_comes_from_is_told(person):
    provenance = {"detail": "From a chat", "origin": {"agent": "helper", "repo": "acme/x"}}
    written = person.api.write(
        "me", "k", 1, provenance=provenance, tags=["a b", "<i>"], metadata={"page": 3}
    )
    assert written.status == 201
    client = person.client()
    text = text_of(client.get(person.record("k")))
    assert "Noted beside it From a chat" in text
    assert "Comes from: agent helper" in text
    assert "Tags a b, <i>" in text
    assert "Further details page 3" in text


@pytest.mark.parametrize("key", ["k", HOSTILE.replace("/", "")])
def test_hostile_words_stay_words(tenant, key):
    person = Person(tenant)
    for value in (HOSTILE, [HOSTILE], {HOSTILE: HOSTILE}):
        client, record, _ = written(person, "h", value)
        for path in (person.home, record, f"{record}/forget"):
            html = client.get(path).text
            assert "<script>document" not in html
            assert "<img" not in html
            assert "{{ 7 }}" in html
        assert person.api.forget("me", "h").status == 204
    assert person.api.write("me", key, 1, tags=["<script>"]).status == 201
    html = client.get(person.home).text
    assert "<img" not in html
    assert html.count("<script") == 1


# Corrected -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "typed", "after"),
    [
        ("brief", "longer\r\ntext ", "longer\ntext "),
        ("", "  kept blanks  ", "  kept blanks  "),
        ("x", "", ""),
        ("3.12", "3.12", "3.12"),
        (3.12, " 42 ", 42),
        (1, "1.0", 1.0),
        (True, "false", False),
        (["a", "b"], "c\r\n\r\nd e", ["c", "d e"]),
        ({"a": 1}, '{"b": [1, null]}', {"b": [1, None]}),
        (None, '"now something"', "now something"),
        ("tab\there", '"tab\\tthere"', "tab\tthere"),
    ],
)
def test_a_value_is_typed_as_what_it_is(somebody, before, typed, after):
    key = unique("k")
    client, record, form = written(somebody, key, before)
    answer = client.post(record, {**form, "value": typed})
    assert (answer.status_code, answer["Location"]) == (303, record)
    stored = somebody.api.read("me", key).json["value"]
    assert (stored, type(stored)) == (after, type(after))
    assert "Saved." in text_of(client.get(record))


@pytest.mark.parametrize(
    "value",
    ["brief", "a\r\nb\n\n", "\n lead", 3.12, 1e22, False, ["a", "b"], {"z": [1.0]}, None, []],
)
def test_saving_what_stands_there_keeps_it(somebody, value):
    key = unique("k")
    client, record, form = written(somebody, key, value)
    before = somebody.api.read("me", key).content.partition(b'"type"')[0]
    page = client.get(record).text
    shown = re.search(r"<textarea[^>]*>\n?(.*?)</textarea>", page, re.S)
    chosen = re.search(r'name="value" value="([^"]*)"[^>]*checked', page)
    typed = re.search(r'<input type="text" name="value" value="([^"]*)"', page)
    found = next(one for one in (shown, chosen, typed) if one)
    # As a browser sends it.
    text = unescape(found[1]).replace("\r\n", "\n").replace("\n", "\r\n")
    assert client.post(record, {**form, "value": text}).status_code == 303
    assert somebody.api.read("me", key).content.partition(b'"type"')[0] == before


@pytest.mark.parametrize(
    ("before", "typed", "said"),
    [
        (3, "3,5", "This is no number."),
        (3, "1e400", "This is no number."),
        ({"a": 1}, "{'a': 1}", "This is no JSON"),
        ({"a": 1}, '{"a": 1, "a": 2}', "This is no JSON"),
        ("x", "a\x00b", "This cannot be stored."),
    ],
)
def test_what_is_no_value_is_said_beside_the_field(somebody, before, typed, said):
    key = unique("k")
    client, record, form = written(somebody, key, before)
    answer = client.post(record, {**form, "value": typed})
    assert answer.status_code == 400
    assert said in text_of(answer)
    assert somebody.api.read("me", key).json["value"] == before


def test_a_value_that_its_schema_refuses(person):
    assert person.api.give("me", "support").status == 200
    client, record, form = written(person, "reply_style", "brief")
    answer = client.post(record, {**form, "value": '"endless"'})
    assert answer.status_code == 400
    assert "Nothing was saved. What you wrote still stands below." in text_of(answer)
    assert "This value is not allowed here." in text_of(answer)
    assert person.api.read("me", "reply_style").json["value"] == "brief"


def test_a_value_that_is_too_large(person):
    client, record, form = written(person, "k", "x")
    answer = client.post(record, {**form, "value": "y" * 70_000})
    assert answer.status_code == 413
    assert "an entry takes 64 KiB at most" in text_of(answer)
    assert "y" * 70_000 in answer.text


def test_a_correction_keeps_deadline_tags_and_details(person):
    assert person.api.write(
        "me", "k", "x", ttl_seconds=3600, tags=["t"], metadata={"m": 1}
    ).status == 201  # fmt: skip
    before = person.api.read("me", "k").json
    client = person.client()
    record = person.record("k")
    form = fields_of(client.get(record))
    assert client.post(record, {**form, "value": "y"}).status_code == 303
    after = person.api.read("me", "k").json
    for name in ("expires_at", "tags", "metadata", "created_at"):
        assert after[name] == before[name]
    assert (after["value"], after["provenance"]["source"]) == ("y", "user_confirmed")


def test_what_staff_write_is_closed(alice):
    client = alice.client()
    record = alice.record("staff_note")
    page = client.get(record)
    assert "Only staff write this." in text_of(page)
    assert 'name="value"' not in page.text
    revision = alice.api.read("me", "staff_note").revision
    answer = client.post(record, {"value": "mine", "way": "text", "revision": revision})
    assert answer.status_code == 403
    assert alice.api.read("me", "staff_note").json["value"] == "Prefers mail"


def test_a_retired_key_can_be_seen_and_forgotten_only(apart):
    client, record, form = written(apart, "theme", "dark")
    change_catalog(
        apart.tenant,
        definitions=[one for one in CATALOG["definitions"] if one["key"] != "theme"],
    )
    page = client.get(record)
    assert "Nothing of this kind is stored any more." in text_of(page)
    assert 'name="value"' not in page.text
    answer = client.post(record, {**form, "value": '"light"'})
    assert answer.status_code == 400
    assert "Nothing of this kind is stored any more." in text_of(answer)
    assert client.post(f"{record}/forget", form).status_code == 303


# Without consent -------------------------------------------------------------------------------


def test_without_consent_all_is_seen_and_nothing_changed(apart):
    assert apart.api.give("me", "support").status == 200
    client, record, form = written(apart, "tone", "friendly")
    assert apart.api.withdraw("me", "support").status == 200
    assert apart.api.read("me", "tone").outcome == (403, "consent_required")
    overview, page = client.get(apart.home), client.get(record)
    for answer in (overview, page):
        assert "friendly" in text_of(answer)
        assert "You do not agree to this use at present." in text_of(answer)
    assert 'name="value"' not in page.text
    # A form that was open already.
    answer = client.post(record, {**form, "value": "rude, and kept here"})
    assert answer.status_code == 403
    assert "rude, and kept here" in text_of(answer)
    assert "You do not agree to this use at present." in text_of(answer)
    assert [one.key for one in events_of(apart.tenant, "access.denied")] == ["tone", "tone"]
    assert client.post(f"{record}/forget", form).status_code == 303
    assert "Nothing is held about you." in text_of(client.get(apart.home))


# Conflicts -------------------------------------------------------------------------------------


def test_what_changed_meanwhile_is_shown_and_mine_can_stay(person):
    client, record, form = written(person, "k", "first")
    staff = API(person.tenant.slug, make_persona(person.tenant, "operator").token)
    theirs = staff.write(f"user::{person.name}", "k", "theirs", revision=form["revision"])
    assert theirs.status == 200
    answer = client.post(record, {**form, "value": "mine"})
    assert answer.status_code == 409
    text = text_of(answer)
    assert "Yours mine" in text
    assert "Theirs theirs Written by: Staff (operator)" in text
    assert person.api.read("me", "k").json["value"] == "theirs"
    again = client.post(record, {**fields_of(answer), "value": "mine"})
    assert again.status_code == 303
    assert person.api.read("me", "k").json["value"] == "mine"


def test_a_conflict_over_another_kind_of_value(person):
    client, record, form = written(person, "k", "text")
    assert person.api.write("me", "k", {"a": 1}, revision=form["revision"]).status == 200
    answer = client.post(record, {**form, "value": "mine"})
    assert answer.status_code == 409
    assert client.post(record, {**fields_of(answer), "value": "mine"}).status_code == 303
    assert person.api.read("me", "k").json["value"] == "mine"


def test_a_form_never_replaces_what_it_does_not_name(person):
    client, record, form = written(person, "k", "x")
    for revision in ("", "0" * 32):
        answer = client.post(record, {"way": "text", "value": "y", "revision": revision})
        assert answer.status_code == 409, revision
    assert client.post(record, {**form, "value": "y", "revision": "*"}).status_code == 400
    assert person.api.read("me", "k").json["value"] == "x"


def test_a_record_that_went_while_its_form_was_open(person):
    client, record, form = written(person, "k", "x")
    assert person.api.forget("me", "k").status == 204
    answer = client.post(record, {**form, "value": "not lost"})
    assert answer.status_code == 404
    assert "not lost" in text_of(answer) or "There is nothing here" in text_of(answer)
    assert person.api.read("me", "k").status == 404


# Forgotten -------------------------------------------------------------------------------------


def test_forgetting_shows_first_what_goes(person):
    client, record, _ = written(person, "k", "the value")
    preview = client.get(f"{record}/forget")
    assert "This goes, for good k the value" in text_of(preview)
    assert "This stays" in text_of(preview)
    assert person.api.read("me", "k").status == 200
    answer = client.post(f"{record}/forget", fields_of(preview))
    assert answer.status_code == 303
    assert "Forgotten" in text_of(client.get(answer["Location"]))
    assert person.api.read("me", "k").status == 404


def test_what_was_not_seen_is_not_forgotten(person):
    client, record, form = written(person, "k", "seen")
    assert person.api.write("me", "k", "unseen", revision=form["revision"]).status == 200
    answer = client.post(f"{record}/forget", form)
    assert answer.status_code == 409
    assert "It changed while you looked, so nothing was forgotten." in text_of(answer)
    assert "unseen" in text_of(answer)
    assert client.post(f"{record}/forget", {}).status_code == 409
    assert person.api.read("me", "k").json["value"] == "unseen"
    assert client.post(f"{record}/forget", fields_of(answer)).status_code == 303


def test_long_values_are_folded_in_the_list(person):
    client, record, _ = written(person, "k", "word " * 400)
    assert "<details>" in client.get(person.home).text
    assert "<details>" not in client.get(record).text
    fill(person)


def test_what_was_put_away_is_told_and_can_be_forgotten(somebody):
    client, record, _ = written(somebody, "put-away", "an old habit")
    revision = somebody.api.read("me", "put-away").json["revision"]
    body = {"scope": "me", "key": "put-away", "revision": revision}
    assert somebody.api.post("preferences/archive", body).status == 200
    shown = client.get(record)
    assert "This was put away: nobody reads it any more." in text_of(shown)
    assert "an old habit" in text_of(shown)
    assert 'name="value"' not in shown.text
    assert "put-away" in text_of(client.get(somebody.home))
