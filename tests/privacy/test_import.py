"""Reading an export back in: all of it or nothing, by the rules of every other write."""

import copy
import hashlib
import io
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from audit.actors import SYSTEM
from privacy.withdrawals import purge_withdrawn
from tenants.documents import canonical
from tenants.units import unit_of_work
from tests.factories import CATALOG, change_catalog
from tests.http.client import API
from tests.http.conftest import Clock, World
from tests.trails import prove

WHY = {"reason": "asked for help"}


def exported(who: API) -> Any:
    answer = who.get("subjects/me/export")
    assert answer.status == 200
    return answer.json


def sealed(document: Any) -> Any:
    """Give a document that was changed the manifest that fits it."""
    entries = []
    for name, items in document["parts"].items():
        text = "".join(f"{canonical(item)}\n" for item in items)
        digest = hashlib.sha256(text.encode()).hexdigest()
        entries.append({"name": name, "holds": ".", "count": len(items), "sha256": digest})
    count = sum(entry["count"] for entry in entries)
    return {**document, "manifest": {"count": count, "parts": entries}}


@pytest.fixture
def bring(tmp_path: Path) -> Callable[..., tuple[list[str], str]]:
    """Run the command on a document; return the lines of its result and what it said."""

    def run(world: World, document: Any, *options: str) -> tuple[list[str], str]:
        file = tmp_path / "export.json"
        raw = document if isinstance(document, bytes) else json.dumps(document).encode()
        file.write_bytes(raw)
        out, said = io.StringIO(), io.StringIO()
        try:
            call_command(
                "import_subject", world.tenant.slug, str(file), *options, stdout=out, stderr=said
            )
        except CommandError as refusal:
            said.write(f"{refusal}\n")
            refusal.args = (said.getvalue(),)
            raise
        return out.getvalue().splitlines(), said.getvalue()

    return run


@pytest.fixture
def source(world: World) -> Any:
    """What alice takes along from one tenant."""
    world.alice.give("me", "support")
    world.alice.write(
        "me", "tone", {"b": 1.0, "a": [1e22, -0.0]}, tags=["x"], metadata={"n": 1},
        provenance={"detail": "said so", "confidence": 0.5},
    )  # fmt: skip
    world.operator.write("user::alice", "staff_note", "vip")
    world.agent.write("user::alice", "k", 1, ttl_seconds=3600)
    return exported(world.alice)


def held(world: World, subject: str = "alice") -> dict[str, Any]:
    data = world.operator.get(f"subjects/{subject}/data", query=WHY).json
    return {one["key"]: one for one in data["preferences"]}


def test_it_comes_back_the_same_elsewhere(
    source: Any, make_world: Callable[..., World], bring: Any
) -> None:
    there = make_world()
    lines, said = bring(there, source)
    assert lines == [
        "+ consent support: given",
        "+ preference k",
        "+ preference staff_note",
        "+ preference tone",
    ]
    assert said == "4 stored, 0 stand already, 0 left out.\n"
    before = {one["key"]: one for one in source["parts"]["preferences"]}
    after = held(there)
    for key, record in after.items():
        same = ("scope", "value", "type", "purpose", "tags", "metadata", "expires_at")
        assert canonical({name: record[name] for name in same}) == canonical(
            {name: before[key][name] for name in same}
        )
        assert record["provenance"]["source"] == "import"
        assert record["provenance"]["actor"] == "import"
    assert after["tone"]["provenance"]["detail"] == "said so"
    (entry,) = there.alice.get("consents/me/support/history").json["results"]
    assert (entry["decision"], entry["method"]) == ("given", "import")
    prove(there.tenant)


def test_what_was_archived_stays_so(world: World, make_world: Any, bring: Any) -> None:
    written = world.alice.write("me", "k", {"status": "old"})
    body = {"scope": "me", "key": "k", "revision": written.revision}
    assert world.alice.post("preferences/archive", body).status == 200
    there = make_world()
    lines, _ = bring(there, exported(world.alice))
    assert lines == ["+ preference k"]
    assert there.alice.read("me", "k").status == 404
    (record,) = there.alice.listing(archived="true").json["results"]
    assert (record["value"], record["provenance"]["source"]) == ({"status": "old"}, "import")
    lines, _ = bring(there, exported(world.alice))
    assert lines == ["= preference k"]


def test_a_dry_run_says_the_same_and_stores_nothing(
    source: Any, make_world: Callable[..., World], bring: Any
) -> None:
    there = make_world()
    events = len(there.events())
    lines, said = bring(there, source, "--dry-run")
    assert len(lines) == 4
    assert said == "4 would be stored, 0 stand already, 0 would be left out.\n"
    assert len(there.events()) == events
    assert held(there) == {}
    assert bring(there, source)[0] == lines


def test_a_second_time_changes_nothing(
    source: Any, make_world: Callable[..., World], bring: Any
) -> None:
    there = make_world()
    bring(there, source)
    before = held(there)
    lines, said = bring(there, source)
    assert said == "0 stored, 3 stand already, 1 left out.\n"
    assert lines[0] == "- consent support: something newer was decided here"
    assert {key: one["revision"] for key, one in held(there).items()} == {
        key: one["revision"] for key, one in before.items()
    }


def test_where_it_came_from_everything_stands(world: World, source: Any, bring: Any) -> None:
    lines, _ = bring(world, source)
    assert [line[0] for line in lines] == ["=", "=", "=", "="]


def test_an_older_consent_is_skipped_and_its_records_with_it(
    world: World, source: Any, bring: Any
) -> None:
    """Withdrawn after the export was taken: the export opens nothing again."""
    world.alice.forget("me", "tone")
    world.alice.withdraw("me", "support")
    lines, _ = bring(world, source)
    assert lines[0] == "- consent support: something newer was decided here"
    assert next(line for line in lines if "tone" in line).startswith("- preference tone: ")
    assert world.alice.status_of("me", "support") == "withdrawn"
    assert "tone" not in held(world)


def test_a_consent_to_another_text_is_none(
    source: Any, make_world: Callable[..., World], bring: Any
) -> None:
    purposes = [
        {**one, "notices": [{"version": 1, "locale": "en", "text": "We sell it all."}]}
        if one["slug"] == "support"
        else one
        for one in CATALOG["purposes"]
    ]
    there = make_world({**CATALOG, "purposes": purposes})
    lines, _ = bring(there, source)
    assert lines[0] == "- consent support: the notice that was shown is none of those here"
    assert "tone" not in held(there)
    assert set(held(there)) == {"k", "staff_note"}


def test_an_outdated_consent_is_left_out(world: World, source: Any, bring: Any) -> None:
    purposes = [dict(one) for one in CATALOG["purposes"]]
    purposes[0]["notices"] = [
        *purposes[0]["notices"],
        {"version": 2, "locale": "en", "text": "We now remember more.", "material": True},
    ]
    change_catalog(world.tenant, purposes=purposes)
    lines, _ = bring(world, source, "--subject", "alice2")
    assert lines[0].startswith("- consent support: The notice changed")
    assert world.operator.status_of(f"alice2{'?reason=x'}", "support") == "none"


def test_a_withdrawal_is_taken_over(world: World, make_world: Any, bring: Any) -> None:
    world.alice.give("me", "support")
    world.alice.withdraw("me", "support")
    there = make_world()
    assert bring(there, exported(world.alice))[0] == ["+ consent support: refused"]


def test_what_stands_is_never_overwritten(
    source: Any, make_world: Callable[..., World], bring: Any
) -> None:
    there = make_world()
    there.operator.write("user::alice", "staff_note", "mine")
    lines, _ = bring(there, source)
    assert "- preference staff_note: another value stands here" in lines
    assert held(there)["staff_note"]["value"] == "mine"


def test_a_passed_deadline_is_left_out(
    make_world: Callable[..., World], frozen: Clock, world: World, bring: Any
) -> None:
    world.alice.write("me", "k", ttl_seconds=60)
    document = exported(world.alice)
    frozen.move(60)
    assert bring(make_world(), document)[0] == ["- preference k: its deadline has passed"]


def test_under_another_name(source: Any, make_world: Callable[..., World], bring: Any) -> None:
    there = make_world()
    bring(there, source, "--subject", "carol")
    assert set(held(there, "carol")) == {"k", "staff_note", "tone"}
    assert held(there) == {}


# What was forgotten --------------------------------------------------------------------------


def test_who_was_forgotten_is_not_brought_back(world: World, source: Any, bring: Any) -> None:
    assert world.operator.post("subjects/alice/erasures", {}, query=WHY).status == 201
    with pytest.raises(CommandError, match="was forgotten after this export was taken"):
        bring(world, source)
    assert held(world) == {}


def test_a_forgotten_record_is_left_out(world: World, source: Any, bring: Any) -> None:
    body = {"keys": ["tone"]}
    assert world.operator.post("subjects/alice/erasures", body, query=WHY).status == 201
    world.alice.forget("me", "k")
    assert bring(world, source)[0] == [
        "= consent support",
        "+ preference k",
        "= preference staff_note",
        "- preference tone: it was forgotten after this export was taken",
    ]


def test_a_record_of_another_key_was_not_forgotten(world: World, bring: Any) -> None:
    """Both named: the records of these keys that serve these purposes, and no other."""
    world.alice.give("me", "support")
    for key, value in (("tone", "warm"), ("reply_style", "brief")):
        assert world.alice.write("me", key, value).status == 201
    taken = exported(world.alice)
    body = {"keys": ["tone"], "purposes": ["support"]}
    assert world.operator.post("subjects/alice/erasures", body, query=WHY).status == 201
    world.alice.forget("me", "reply_style")
    assert bring(world, taken)[0] == [
        "= consent support",
        "+ preference reply_style",
        "- preference tone: it was forgotten after this export was taken",
    ]


def test_what_a_withdrawal_erased_is_left_out(make_world: Callable[..., World], bring: Any) -> None:
    catalog = copy.deepcopy(CATALOG)
    catalog["purposes"][0]["on_withdrawal"] = "erase"
    world = make_world(catalog)
    assert world.alice.give("me", "support").status == 200
    assert world.alice.write("me", "tone", "warm").status == 201
    taken = exported(world.alice)
    assert world.alice.withdraw("me", "support").status == 200
    assert world.alice.give("me", "support").status == 200
    assert purge_withdrawn(tenant_id=world.tenant.pk) == 1
    lines = bring(world, taken)[0]
    assert "- preference tone: it was forgotten after this export was taken" in lines


def test_a_consent_from_before_is_none_after_a_return(
    world: World, source: Any, bring: Any
) -> None:
    """Taken elsewhere and later, it still tells of a decision that was forgotten here."""
    assert world.operator.post("subjects/alice/erasures", {}, query=WHY).status == 201
    later = {**source, "taken_at": "2999-01-01T00:00:00.000000Z"}
    lines, _ = bring(world, later)
    assert lines[0] == "- consent support: the person was forgotten here since then"
    assert "tone" not in held(world)


# What is refused -----------------------------------------------------------------------------


def record(document: Any, **changes: Any) -> Any:
    """Return a copy of the document's last record with some members changed."""
    return {**document["parts"]["preferences"][-1], **changes}


def change(document: Any, **changes: Any) -> Any:
    document["parts"]["preferences"].append(record(document, **changes))
    return sealed(document)


NFC, NFD = "café", "cafe\u0301"

REFUSED: dict[str, tuple[Callable[[Any], Any], list[str]]] = {
    "C015 key with a line feed": (lambda d: change(d, key="theme\n"), ["invalid_key"]),
    "C015 key with a blank before": (lambda d: change(d, key=" theme"), ["invalid_key"]),
    "C015 key with a blank behind": (lambda d: change(d, key="theme "), ["invalid_key"]),
    "C015 scope with a line feed": (
        lambda d: change(d, key="theme", scope="user::alice\n"),
        ["invalid_scope"],
    ),
    "another person": (
        lambda d: change(d, key="theme", scope="user::bob"),
        ["validation_error", "not this person's"],
    ),
    "shared": (lambda d: change(d, key="theme", scope="project::x"), ["not this person's"]),
    "C103 twice": (
        lambda d: change(d, key="tone"),
        ["/parts/preferences/3/key", "duplicate_address", "stands at 0"],
    ),
    "C103 twice but for its form": (
        lambda d: change(change(d, key=NFC), key=NFD),
        ["/parts/preferences/4/key", "duplicate_address", "stands at 3"],
    ),
    "schema": (lambda d: change(d, key="reply_style", value="loud"), ["invalid_value"]),
    "too large": (lambda d: change(d, key="big", value="x" * 70_000), ["too_large"]),
    "deadline too far": (
        lambda d: change(d, key="limited", expires_at="2999-01-01T00:00:00.000000Z"),
        ["invalid_ttl"],
    ),
    "tags": (lambda d: change(d, key="tagged", tags=["x"] * 33), ["validation_error", "/tags"]),
    "origin": (
        lambda d: change(
            d,
            key="odd",
            provenance={**record(d)["provenance"], "origin": {"nobody": 1}},
        ),
        ["validation_error", "/provenance"],
    ),
}


@pytest.mark.parametrize(("spoil", "told"), REFUSED.values(), ids=REFUSED)
def test_one_bad_record_refuses_all_in_one_line(
    source: Any,
    make_world: Callable[..., World],
    bring: Any,
    spoil: Callable[[Any], Any],
    told: list[str],
) -> None:
    there = make_world()
    events = len(there.events())
    with pytest.raises(CommandError) as refused:
        bring(there, spoil(source))
    lines = str(refused.value).splitlines()
    assert len(lines) == 1
    for word in told:
        assert word in lines[0]
    assert len(there.events()) == events
    assert held(there) == {}


def test_each_bad_record_has_its_line(
    source: Any, make_world: Callable[..., World], bring: Any
) -> None:
    there = make_world()
    for spoilt in ({"key": " a"}, {"key": "b "}, {"key": "c", "scope": "user::bob"}):
        change(source, **spoilt)
    with pytest.raises(CommandError) as refused:
        bring(there, sealed(source))
    assert [line.partition(": ")[0] for line in str(refused.value).splitlines()] == [
        "/parts/preferences/3/key",
        "/parts/preferences/4/key",
        "/parts/preferences/5/scope",
        "Nothing was imported. 3 parts are refused.",
    ]


def test_a_key_that_nothing_governs_is_refused(
    source: Any, make_world: Callable[..., World], bring: Any
) -> None:
    there = make_world({**CATALOG, "undeclared": {**CATALOG["undeclared"], "user": False}})
    with pytest.raises(CommandError, match="undeclared_key"):
        bring(there, source)
    # The consent that came before it was taken back, too.
    assert there.alice.status_of("me", "support") == "none"


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (lambda raw: raw[:-40], "not whole"),
        (lambda raw: raw.replace(b"said so", b"said no"), "digest"),
        (lambda raw: b"\xff", "not whole"),
        (lambda raw: b'{"format": "consentful-audit-export/1"}', "is no consentful-personal-data"),
    ],
    ids=["cut off", "altered", "no text", "other format"],
)
def test_what_is_no_whole_export_is_refused_in_one_line(
    world: World, source: Any, bring: Any, spoil: Callable[[bytes], bytes], word: str
) -> None:
    raw = world.alice.get("subjects/me/export").content
    with pytest.raises(CommandError, match=word) as refused:
        bring(world, spoil(raw))
    assert len(str(refused.value).splitlines()) == 1


def test_an_absent_file_or_tenant_is_refused(world: World, bring: Any, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("import_subject", world.tenant.slug, str(tmp_path / "nothing.json"))
    with pytest.raises(CommandError):
        call_command("import_subject", "nowhere-at-all", str(tmp_path))


@pytest.mark.parametrize("key", ["theme\n", " theme", "theme "])
def test_C015_a_request_is_refused_alike(world: World, key: str) -> None:
    assert world.alice.write("me", key).outcome == (400, "invalid_key")
    put = {"op": "put", "scope": "me", "key": key, "value": 1}
    assert world.alice.batch(put).outcome == (400, "invalid_key")
    assert world.alice.read("me", "theme").status == 404


def test_it_waits_for_whoever_works_on_the_person(
    source: Any, make_world: Callable[..., World], bring: Any
) -> None:
    """A write in flight is done before, a withdrawal before or after: never between."""
    there = make_world()
    with ThreadPoolExecutor(1) as pool:
        with unit_of_work(tenant_id=there.tenant.pk, actor=SYSTEM, subjects=["alice"]):
            running = pool.submit(in_a_thread, lambda: bring(there, source))
            assert not wait([running], timeout=1).done
        lines, _ = running.result(timeout=20)
    assert lines[0] == "+ consent support: given"


def in_a_thread(job: Callable[[], Any]) -> Any:
    try:
        return job()
    finally:
        connections.close_all()
