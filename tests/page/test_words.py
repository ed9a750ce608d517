"""The page's words: complete in every language, compiled as they are written, chosen as asked for."""

import gettext
import re
import shutil
import subprocess

import pytest
from django.test import Client, RequestFactory

from privacy.page_base import remember_language
from privacy.page_values import as_typed, from_typed, lay_out, way_of
from privacy.page_words import ACTIONS, CLOSED, DECISIONS, GROUNDS, OUTCOMES, REFUSALS, STATES
from tests.page.conftest import fill
from tests.page.reading import text_of
from tests.page.words import LOCALE, catalogue_of, words_of_the_page

#: Words that are the same in both languages, or a format.
SAME = {"j F Y"}


def test_german_has_every_word():
    german = catalogue_of("de")
    words = words_of_the_page()
    assert len(words) > 200
    missing = []
    for word in words:
        if isinstance(word, str):
            found = german.gettext(word)
            if found == word and word not in SAME and word != "j F Y, H:i":
                missing.append(word)
        else:
            missing += [word for count in (1, 2) if german.ngettext(*word, count) in word]
    assert missing == []


def test_every_place_for_a_value_is_kept():
    """A translation that lost a `%(name)s` would lose what it says."""
    german = catalogue_of("de")
    for word in words_of_the_page():
        texts = [word] if isinstance(word, str) else list(word)
        found = (
            [german.gettext(word)]
            if isinstance(word, str)
            else [german.ngettext(*word, count) for count in (1, 2)]
        )
        for text, translated in zip(texts, found, strict=True):
            place = r"%\((\w+)\)s"
            assert sorted(re.findall(place, text)) == sorted(re.findall(place, translated)), text


def test_what_is_compiled_is_what_is_written(tmp_path):
    """Nobody needs the tools of gettext to run this; whoever changes a word compiles it."""
    if shutil.which("msgfmt") is None:
        pytest.skip("No msgfmt here: the tools of gettext compile the catalogue.")
    source = LOCALE / "de/LC_MESSAGES/django.po"
    target = tmp_path / "de.mo"
    subprocess.run(["msgfmt", "--check-format", "-o", target, source], check=True)
    with target.open("rb") as file:
        assert gettext.GNUTranslations(file)._catalog == catalogue_of("de")._catalog


def test_every_code_and_action_has_its_words():
    from consent.models import ConsentEntry, Purpose
    from docs.generate import find_captured_actions
    from privacy.models import ErasureHolder
    from tenants.exceptions import Forbidden, all_errors

    assert set(GROUNDS) == set(Purpose.LawfulBasis.values)
    assert set(OUTCOMES) == set(ErasureHolder.Status.values)
    assert set(DECISIONS) == {
        one for one, _ in ConsentEntry._meta.get_field("decision").flatchoices
    }
    assert set(STATES) == {"none", "given", "refused", "withdrawn", "expired", "outdated"}
    refused = {error.code for error in all_errors(Forbidden)} - {"purpose_not_allowed"}
    assert refused <= set(REFUSALS)
    assert refused - {"permission_denied", "csrf_failed"} <= set(CLOSED)
    about_persons = {
        "preference", "subject", "tombstone", "guardianship", "role", "token", "consent",
        "restriction", "withdrawal", "confirmation", "erasure",
    }  # fmt: skip
    done = {
        action
        for _, actions in find_captured_actions()
        for action in actions
        if action.partition(".")[0] in about_persons
    }
    # What no service does: rows that only ever come or only ever go.
    never = {
        "consent.changed", "consent.deleted", "restriction.deleted", "withdrawal.deleted",
        "confirmation.changed", "erasure.deleted", "tombstone.deleted",
    }  # fmt: skip
    assert done - never - set(ACTIONS) == set()


@pytest.mark.parametrize(
    ("asked", "language"),
    [
        ({"accept-language": "de-AT,de;q=0.9,en;q=0.8"}, "de"),
        ({"accept-language": "fr, en;q=0.5, de;q=0.1"}, "en"),
        ({"accept-language": "de;q=0"}, "en"),
        ({"accept-language": "fr"}, "en"),
        ({}, "en"),
        ({"accept-language": "en", "cookie": "django_language=de"}, "de"),
        ({"accept-language": "de", "cookie": "django_language=xx"}, "de"),
    ],
)
def test_the_language_is_what_was_chosen_or_what_the_browser_asks_for(person, asked, language):
    answer = Client().get(f"{person.home}login", headers=asked)
    assert f'<html lang="{language}">' in answer.text


def test_a_language_is_chosen_with_a_link(person):
    client = person.client()
    answer = client.get(f"{person.home}consents?language=de")
    assert (answer.status_code, answer["Location"]) == (302, f"{person.home}consents")
    assert '<html lang="de">' in client.get(person.home).text
    assert client.get(f"{person.home}?language=xx").status_code == 200
    # A host may include the pages at its root.
    request = RequestFactory().get("/", {"language": "de"})
    request.path = "//elsewhere.example/"
    assert remember_language(request, "de")["Location"].startswith("/%2F")


def test_a_host_offers_other_languages(person, settings):
    settings.CONSENTFUL_PAGE_LANGUAGES = ("de",)
    answer = person.client().get(person.home)
    assert '<html lang="de">' in answer.text
    assert "?language=" not in answer.text


def test_the_german_pages_say_nothing_in_english(apart):
    """Every page: whatever stands there in English and is one of our words was not translated."""
    fill(apart)
    client = apart.client()
    client.cookies["django_language"] = "de"
    record = apart.record("reply_style")
    paths = [apart.home, record, f"{record}/forget"]
    paths += [
        f"{apart.home}{part}"
        for part in ("consents", "activity", "export", "forget", "forget/support", "none", "login")
    ]
    german = catalogue_of("de")
    words = {
        one: german.gettext(one)
        for one in words_of_the_page()
        if isinstance(one, str) and len(one) > 12 and "%" not in one and one not in SAME
    }
    answers = [client.get(path) for path in paths]
    answers.append(client.post(f"{apart.home}forget/support", {}))
    answers.append(client.post(f"{apart.home}forget", {"sure": "yes"}))
    for answer in answers:
        text = text_of(answer)
        assert '<html lang="de">' in answer.text
        assert [one for one in words if f" {one} " in f" {text} "] == [], answer.request[
            "PATH_INFO"
        ]
    told = " ".join(text_of(answer) for answer in answers)
    assert sum(german in told for german in words.values()) > 60


# Values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "schema", "way"),
    [
        ("x", True, "text"),
        ("x", {"enum": ["x", "y"]}, "choice"),
        ("x", {"enum": [["x"], "x"]}, "text"),
        ("x", {"enum": [str(number) for number in range(30)]}, "text"),
        ("tab\t", True, "json"),
        ("zero\u2028", True, "json"),
        (None, {"type": "string"}, "text"),
        (None, True, "json"),
        (0, True, "number"),
        (True, True, "boolean"),
        (["a"], True, "lines"),
        ([""], True, "json"),
        (["a\nb"], True, "json"),
        ([1], True, "json"),
        ([], True, "json"),
        ({}, {"type": ["object"]}, "json"),
    ],
)
def test_how_a_value_is_edited(value, schema, way):
    found, _ = way_of(value, schema)
    assert found == way
    assert from_typed(as_typed(value, found), found) == value or (value is None and way == "text")


def test_values_are_laid_out_to_a_depth():
    shown = lay_out({"a": [{"b": [1]}]})
    assert shown.kind == "object"
    ((name, inner),) = shown.parts
    assert (name, inner.kind) == ("a", "list")
    assert lay_out([[[[1]]]]).parts[0][1].parts[0][1].parts[0][1].kind == "json"
    assert lay_out(list(range(101))).kind == "json"
    assert [lay_out(one).kind for one in (None, True, False, "", "x", 1e22)] == [
        "nothing", "yes", "no", "empty", "text", "number",
    ]  # fmt: skip
    assert lay_out(1e22).text == "1e+22"
