"""An export is complete or an error; it proves itself, and can be read by a person."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from base64 import b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
from django.test import Client

from privacy import holders
from privacy.documents import read_document
from privacy.export_views import quality
from privacy.holders import stores
from tenants.documents import canonical
from tenants.exceptions import ValidationError
from tenants.personal import Item, Store
from tests.conftest import ROOT, run_service
from tests.http.client import API, race
from tests.http.conftest import World

WHY = {"reason": "asked for help"}
PATH = "subjects/me/export"
VALUES: list[Any] = [
    {"bb": 1, "a": 2, "aaa": 3}, 1e22, 1.0, -0.0, 1.5e300, 1e-7, 10**400, "ein Wört 😀 </script>",
    None, [], "",
]  # fmt: skip


def export(who: API, subject: str = "me", **more: Any) -> Any:
    answer = who.get(f"subjects/{subject}/export", **more)
    assert answer.status == 200, answer
    return answer.json


def page(who: API, **headers: str) -> Any:
    """Return the answer to a browser, which the client of the contract does not know."""
    return Client(raise_request_exception=False).get(
        f"{who.base}/{PATH}",
        headers={
            "Authorization": f"Bearer {who.token}",
            "Accept": "text/html,*/*;q=0.8",
            **headers,
        },
    )


@pytest.fixture
def filled(world: World) -> World:
    """Alice with something in every store."""
    world.alice.give("me", "support", locale="de")
    world.alice.write("me", "tone", "loud", tags=["a"], metadata={"n": 1.0})
    world.alice.write("me", "k", 1, headers={"Idempotency-Key": "once"})
    assert world.bound.read("me", "k").status == 200
    return world


def test_every_store_has_its_part_and_the_manifest_adds_up(filled: World) -> None:
    answer = filled.alice.get(PATH)
    found = read_document(answer.content)
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert int(answer.headers["Content-Length"]) == len(answer.content)
    assert "Accept" in answer.headers["Vary"]
    counts = {name: len(items) for name, items in found.parts.items()}
    assert set(counts) == {store.name for _, store in stores()}
    assert {name: count for name, count in counts.items() if count} == {
        "identity": 1, "roles": 1, "tokens": 2, "repeats": 1, "events": 5, "consents": 1,
        "preferences": 2, "readings": 1,
    }  # fmt: skip
    assert found.parts["consents"][0]["history"][0]["notice"].startswith("Wir merken")
    assert answer.json["manifest"]["count"] == sum(counts.values())
    # As somebody checks it who has nothing but the file: the lines of a part are its digest.
    lines = answer.content.decode().split('"preferences":[\n')[1].split("\n]")[0].split(",\n")
    entry = next(p for p in answer.json["manifest"]["parts"] if p["name"] == "preferences")
    assert entry["sha256"] == hashlib.sha256("".join(f"{x}\n" for x in lines).encode()).hexdigest()


def test_it_has_the_published_form(filled: World) -> None:
    document = export(filled.alice)
    address = document["schema"]
    assert address == "http://testserver/api/v1/schemas/personal-data-1.json"
    published = filled.stranger.get(address.removeprefix("http://testserver"))
    assert published.status == 200
    assert jsonschema_rs.Draft202012Validator(published.json).is_valid(document)
    del document["parts"]["preferences"][0]["provenance"]
    assert not jsonschema_rs.Draft202012Validator(published.json).is_valid(document)


def test_C107_values_leave_as_they_came(world: World) -> None:
    for number, value in enumerate(VALUES):
        assert world.alice.write("me", f"k{number}", value).status == 201
    held = export(world.alice)["parts"]["preferences"]
    assert [canonical(one["value"]) for one in held] == [canonical(value) for value in VALUES]
    assert [type(one["value"]) for one in held] == [type(value) for value in VALUES]
    # Written back as it came, it has the same text, hence the same digest.
    first = held[1]
    again = world.alice.write("me", first["key"], first["value"], revision=first["revision"])
    assert again.status == 200
    assert repr(export(world.alice)["parts"]["preferences"][1]["value"]) == repr(first["value"])


def test_it_needs_no_consent_and_holds_nobody_else(filled: World) -> None:
    filled.bob.write("me", "k", "bobs-own-value")
    filled.alice.withdraw("me", "support")
    document = export(filled.alice)
    assert [one["key"] for one in document["parts"]["preferences"]] == ["tone", "k"]
    assert "bob" not in json.dumps(document)


def test_an_unknown_person_has_an_empty_one(world: World) -> None:
    document = export(world.operator, "nobody", query=WHY)
    # The look itself is the one thing that happened.
    assert {part["name"] for part in document["manifest"]["parts"] if part["count"]} <= {"events"}


def test_an_operator_gives_a_reason_and_leaves_an_event(filled: World) -> None:
    assert filled.operator.get("subjects/alice/export").outcome == (400, "validation_error")
    document = export(filled.operator, "alice", query=WHY)
    (event,) = filled.events("data.disclosed")
    assert (event.actor, event.subject, event.reason) == ("operator", "alice", "asked for help")
    # It is in the document already, and beside every record.
    assert document["parts"]["events"][-1]["reason"] == "asked for help"
    assert {one["reader"] for one in document["parts"]["readings"]} == {"bound", "operator"}


def test_a_look_at_the_headers_shows_and_records_nothing(filled: World) -> None:
    answer = filled.operator.request("HEAD", "subjects/alice/export", query=WHY)
    assert (answer.status, answer.content) == (200, b"")
    assert filled.events("data.disclosed") == []


@pytest.mark.parametrize("name", ["bob", "agent", "bound", "auditor"])
def test_nobody_else_has_it(filled: World, name: str) -> None:
    with filled.denied(1):
        answer = getattr(filled, name).get("subjects/alice/export")
        assert answer.outcome == (403, "permission_denied")


def test_everything_is_of_one_moment(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written while the export is made is not in it, nowhere."""
    Meddler.world = filled
    monkeypatch.setattr(holders, "OURS", (Meddler(), *holders.OURS))
    document = export(filled.alice)
    assert document["parts"]["meddling"] == [{"status": 201}]
    assert len(document["parts"]["preferences"]) == 2
    assert len(export(filled.alice)["parts"]["preferences"]) == 3


class Host:
    """A host's holder with one store."""

    name = "orders"

    def describe(self) -> Sequence[Store]:
        return [Store(name=self.name, holds="What you ordered.", models=())]

    def export(self, *, tenant_id: int, subject: str, store: str) -> Iterator[Item]:
        yield {"order": 1, "for": subject}


class Broken(Host):
    """One whose store fails in the middle."""

    def export(self, *, tenant_id: int, subject: str, store: str) -> Iterator[Item]:
        for number in range(5):
            yield {"order": number, "text": "x" * 1_000_000}
        raise OSError("the warehouse is closed")


class Meddler(Host):
    """One during which somebody else writes, before the other stores are read."""

    name = "meddling"
    world: World

    def export(self, *, tenant_id: int, subject: str, store: str) -> Iterator[Item]:
        (answer,) = race([lambda: self.world.alice.write("me", "later", query={"mode": "upsert"})])
        yield {"status": answer.status}


def test_a_hosts_own_stores_are_parts_too(filled: World, settings: Any) -> None:
    settings.CONSENTFUL_PERSONAL_DATA = [f"{__name__}.Host"]
    answer = filled.alice.get(PATH)
    assert read_document(answer.content).parts["orders"] == [{"order": 1, "for": "alice"}]
    assert b"What you ordered." in page(filled.alice).getvalue()
    assert filled.alice.get("subjects/me/data").json["orders"] == [{"order": 1, "for": "alice"}]


def test_a_fault_in_the_middle_is_an_error_and_no_part_of_a_document(
    filled: World, settings: Any
) -> None:
    settings.CONSENTFUL_PERSONAL_DATA = [f"{__name__}.Broken"]
    assert filled.alice.get(PATH).outcome == (500, "internal_error")
    assert page(filled.alice).status_code == 500


@pytest.mark.parametrize(
    "query", [{"format": "xml"}, {"format": ""}, {"formt": "html"}, {"format": ["json", "html"]}]
)
def test_parameters_that_mean_nothing_are_refused(world: World, query: Any) -> None:
    assert world.alice.get(PATH, query=query).outcome == (400, "validation_error")


# The document, read again --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda raw: raw[:-2], "not whole"),
        (lambda raw: raw[: len(raw) // 2], "not whole"),
        (lambda raw: raw[: raw.index(b',\n"manifest"')] + b"}", "published form"),
        (lambda raw: raw.replace(b'"loud"', b'"lewd"'), "/parts/preferences"),
        (lambda raw: raw.replace(b'"count":2', b'"count":3'), "/parts/"),
        (lambda raw: raw.replace(b"personal-data/1", b"personal-data/2"), "/format"),
        (lambda raw: b"[]", "/format"),
    ],
    ids=["end", "half", "manifest", "value", "count", "format", "no export"],
)
def test_what_was_cut_or_altered_is_refused(filled: World, change: Any, sentence: str) -> None:
    raw = filled.alice.get(PATH).content
    read_document(raw)
    with pytest.raises(ValidationError) as refused:
        read_document(change(raw))
    told = refused.value.detail + "".join(error.pointer for error in refused.value.errors)
    assert sentence in told


def test_whoever_has_only_the_file_can_check_it(filled: World, tmp_path: Path) -> None:
    """The program that the manual gives a person."""
    filled.alice.write("me", "numbers", VALUES)
    manual = (ROOT / "docs/how-to/see-and-take-your-data.md").read_text("utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", manual, re.S)
    (tmp_path / "check.py").write_text(textwrap.dedent(program), "utf-8")
    raw = filled.alice.get(PATH).content

    def check(document: bytes) -> list[str]:
        (tmp_path / "alice.json").write_bytes(document)
        ran = subprocess.run(
            [sys.executable, tmp_path / "check.py", tmp_path / "alice.json"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return ran.stdout.splitlines()

    assert {line.rpartition(" ")[2] for line in check(raw)} == {"True"}
    altered = check(raw.replace(b'"loud"', b'"lewd"'))
    assert [line for line in altered if not line.endswith("True")] == ["preferences 3 False"]
    with pytest.raises(subprocess.CalledProcessError):
        check(raw[:-3])


def test_other_white_space_and_order_are_the_same_document(filled: World) -> None:
    """A portal may print it nicely: numbers, texts and items are what is digested."""
    raw = filled.alice.get(PATH).content
    nicer = json.dumps(json.loads(raw), indent=2).encode()
    assert read_document(nicer) == read_document(raw)


# The page ------------------------------------------------------------------------------------


def test_a_browser_gets_a_page(filled: World) -> None:
    answer = page(filled.alice)
    text = answer.getvalue().decode()
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Cache-Control"] == "private, no-store"
    assert answer.headers["Content-Disposition"].startswith("inline")
    assert "Support replies" in text
    assert "Wir merken uns, wie Sie Antworten mögen." in text
    assert text.rstrip().endswith("</html>")
    digests = {part["sha256"] for part in export(filled.alice)["manifest"]["parts"]}
    assert len(digests & set(re.findall("[0-9a-f]{64}", text))) >= len(digests) - 1


def test_the_page_runs_and_loads_nothing(filled: World) -> None:
    answer = page(filled.alice)
    text = answer.getvalue().decode()
    style = re.search("<style>(.*?)</style>", text, re.S)
    assert style
    digest = b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert f"style-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script|\bsrc=|https?://|url\(", text)


def test_what_is_stored_cannot_become_markup(world: World) -> None:
    evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
    world.alice.write("me", evil[:1] + "key", evil, tags=["<b>"], metadata={"<i>": "</dd>"},
                      provenance={"detail": evil})  # fmt: skip
    world.operator.get("subjects/alice/data", query={"reason": evil})
    text = page(world.alice).getvalue().decode()
    assert not re.search(r"<(script|img|b|i)\b", text)
    assert text.count("&lt;script&gt;") >= 3


@pytest.mark.parametrize(
    ("accept", "query", "kind"),
    [
        ("*/*", "", "application/json"),
        ("application/json", "", "application/json"),
        ("text/html", "", "text/html; charset=utf-8"),
        ("text/html;q=0.5, application/json", "", "application/json"),
        ("application/json", "?format=html", "text/html; charset=utf-8"),
        ("text/html", "?format=json", "application/json"),
    ],
)
def test_whoever_asks_chooses(world: World, accept: str, query: str, kind: str) -> None:
    who = world.alice
    answer = Client().get(
        f"{who.base}/{PATH}{query}",
        headers={"Authorization": f"Bearer {who.token}", "Accept": accept},
    )
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, kind)
    assert (answer.getvalue()[:1] == b"<") == ("html" in kind)


def test_nothing_else_is_offered(world: World) -> None:
    answer = world.alice.get(PATH, headers={"Accept": "text/csv"})
    assert answer.outcome == (406, "not_acceptable")


def test_an_accept_header_is_weighed() -> None:
    assert quality("text/*;q=0.3, text/html;q=0.7, */*;q=0.5", "text/html") == 0.7
    assert quality("text/*;q=0.3, */*;q=0.5", "text/html") == 0.3
    assert quality("text/html;q=x", "text/html") == 0.0
    assert quality("image/png", "text/html") == 0.0


# Large, and over a real connection -----------------------------------------------------------


def fill(world: World, count: int) -> str:
    for number in range(count):
        world.alice.write("me", f"k{number}", "x" * 60_000)
    return world.personas["alice"].token


def test_a_large_one_arrives_whole(world: World, server: str) -> None:
    token = fill(world, 30)
    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.get(f"{server}{world.alice.base}/{PATH}", headers=headers, timeout=60)
    assert answer.status_code == 200
    assert len(answer.content) > 1_800_000
    assert len(read_document(answer.content).parts["preferences"]) == 30


def test_one_that_breaks_off_is_noticed(world: World, database: str) -> None:
    """The service is killed while it sends: length, JSON and manifest all tell."""
    token = fill(world, 200)
    got = b""
    with run_service(
        "--no-housekeeping", DJANGO_SETTINGS_MODULE="tests.settings", TEST_DATABASE=database,
        WEB_CONCURRENCY="1",
    ) as (url, process):  # fmt: skip
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.stream(
            "GET", f"{url}{world.alice.base}/{PATH}", headers=headers, timeout=60
        ) as answer:
            assert answer.status_code == 200
            length = int(answer.headers["Content-Length"])
            pieces = answer.iter_bytes(65536)
            got += next(pieces)
            os.killpg(process.pid, signal.SIGKILL)
            with pytest.raises(httpx.TransportError):
                for piece in pieces:
                    got += piece
    assert 0 < len(got) < length
    with pytest.raises(ValidationError, match="not whole"):
        read_document(got)
