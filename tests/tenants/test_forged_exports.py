"""Documents that somebody rewrote so that one reader sees what the verification does not."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from audit.signing import sign
from tests.tenants.test_proof import (  # noqa: F401  fixtures
    Get,
    download,
    exported,
    get,
    key,
    seal_all,
    tenant,
    verify,
    write,
)

FOUND_NOTHING = "nothing found."


def rewrite(file: Path, change: Callable[[Any], object]) -> None:
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))


def event_of(document: Any) -> dict[str, Any]:
    found: dict[str, Any] = document["events"][2]["event"]
    return found


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(tenant_id=None),
        lambda d: d.update(tenant_id=None, tenant=None, checkpoint=None),
        lambda d: d.update(tenant_id=float(d["tenant_id"])),
        lambda d: d.update(tenant="somebody-else"),
        lambda d: d.update(note="approved"),
        lambda d: d["start"].update(note="approved"),
        lambda d: d["start"].update(sequence="0"),
        lambda d: d["start"].update(sequence=False),
        lambda d: d["events"][2].update(sequence=3.9),
        lambda d: d["events"][2].update(sequence="3"),
        lambda d: d["events"][2].update(note="approved"),
        lambda d: event_of(d).update(value="secret"),
        lambda d: event_of(d).update(transaction=f" {event_of(d)['transaction']}"),
        lambda d: event_of(d).update(transaction=f"0_{event_of(d)['transaction']}"),
        lambda d: event_of(d).update(at=event_of(d)["at"].replace("Z", "+00:00")),
        lambda d: event_of(d).update(changed=[""]),
        lambda d: d["events"][5]["event"].update(changed=[",".join(["a", "b"])]),
        lambda d: event_of(d).update(changed=None),
        lambda d: event_of(d).update(action=None),
        lambda d: event_of(d).update(reason="\ud800"),
        lambda d: event_of(d).update(purpose="\ud800"),
    ],
    ids=[
        "no tenant", "no tenant nor checkpoint", "tenant a float", "another name", "a member more",
        "a member of the start", "start a text", "start a boolean", "sequence a float",
        "sequence a text", "a member of an entry", "a member of an event", "a blank in a number",
        "an underscore in a number", "time in another way", "a column without a name",
        "columns joined", "no columns", "no action", "a lone surrogate", "one that is hashed",
    ],
)  # fmt: skip
def test_no_member_can_be_changed_unnoticed(exported: Path, change: Any) -> None:  # noqa: F811
    rewrite(exported, change)
    assert FOUND_NOTHING not in verify(exported)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"action":', '"action": "preference.deleted", "action":'),
        ('"events": [', '"events": [], "events": ['),
        ('], "checkpoint"', '], "events": [], "checkpoint"'),
        ('], "checkpoint"', '], "checkpoint": "x", "checkpoint"'),
        ('"tenant":', '"tenant": "somebody-else", "tenant":'),
        ('"tenant":', '"checkpoint": "x", "tenant":'),
        ('"reason": null', '"reason": NaN'),
    ],
)
@pytest.mark.parametrize("is_rewritten", [False, True])
def test_no_member_stands_there_twice(
    exported: Path,  # noqa: F811
    old: str,
    new: str,
    is_rewritten: bool,
) -> None:
    """JSON readers differ in which of them they take."""
    text = exported.read_text()
    assert old in text
    text = text.replace(old, new, 1)
    exported.write_text(text.replace("\n", " ") if is_rewritten else text)
    assert FOUND_NOTHING not in verify(exported)


@pytest.mark.parametrize("more", ["{}", "x", "\n\n]", '{"events": []}'])
def test_nothing_follows_the_end(exported: Path, more: str) -> None:  # noqa: F811
    text = exported.read_text()
    for file in (text + more, text.replace("\n", " ") + more, text + text):
        exported.write_text(file)
        assert FOUND_NOTHING not in verify(exported)


def test_depth_and_length_end_in_one_line(exported: Path) -> None:  # noqa: F811
    for odd in ("[" * 100_000, '{"a":' * 100_000, "9" * 5000):
        exported.write_text(odd)
        assert verify(exported).startswith("It is no export")
    exported.write_bytes(b"\xef\xbb\xbf{}")
    assert verify(exported).startswith("It is no export")


def test_line_ends_of_another_system_change_nothing(exported: Path) -> None:  # noqa: F811
    exported.write_bytes(exported.read_bytes().replace(b"\n", b"\r\n"))
    assert verify(exported).endswith(FOUND_NOTHING)


def test_what_is_left_out_at_either_end_shows_in_what_is_told(
    tenant: Any,  # noqa: F811
    get: Get,  # noqa: F811
    tmp_path: Path,
) -> None:
    """A shorter document, genuine in itself: the reader must see how far it reaches."""
    write(tenant, "a", "b")
    seal_all(tenant)
    early = get("audit/checkpoint").json()
    write(tenant, "c")
    seal_all(tenant)
    file = download(get, tmp_path)

    def shorten(document: Any) -> None:
        document["events"] = document["events"][2 : early["sequence"]]
        document["start"] = {"sequence": 2, "hash": document["events"][0]["previous"]}
        document["checkpoint"] = early["jws"]

    rewrite(file, shorten)
    said = verify(file)
    assert f"Links 3 to {early['sequence']} of the chain of {tenant.slug}" in said
    assert early["time"] in said


def test_an_empty_document_is_no_answer_to_a_checkpoint(
    tenant: Any,  # noqa: F811
    get: Get,  # noqa: F811
    tmp_path: Path,
) -> None:
    from audit.exports import write_export

    write(tenant, "a")
    seal_all(tenant)
    log = tmp_path / "log"
    log.write_text(get("audit/checkpoint").json()["jws"])
    file = tmp_path / "export.json"
    file.write_text(
        "".join(write_export(None, start=(0, "0" * 64), using="default", unit=pytest.fail))
    )
    assert "chain_rolled_back\t" in verify(file, "--checkpoints", log)


def test_of_two_checkpoints_of_one_place_both_are_compared(
    tenant: Any,  # noqa: F811
    get: Get,  # noqa: F811
    tmp_path: Path,
) -> None:
    """The earlier one is the witness of what was there before the chain was computed anew."""
    from audit.checkpoints import KIND

    write(tenant, "a")
    seal_all(tenant)
    file = download(get, tmp_path)
    now = get("audit/checkpoint").json()
    before = {name: now[name] for name in ("tenant", "sequence", "count", "time")}
    before |= {"tenant_id": tenant.pk, "hash": "a" * 64, "previous": None}
    log = tmp_path / "log"
    log.write_text("\n".join([sign(before, kind=KIND)[1], now["jws"]]))
    assert "chain_replaced\t" in verify(file, "--checkpoints", log)


def test_texts_of_a_forger_move_no_cursor(exported: Path, tmp_path: Path) -> None:  # noqa: F811
    """What is printed of a document must not wipe the findings off the operator's screen."""
    wipe = "\x1b[2J\r\n0 events: nothing found."
    rewrite(exported, lambda d: d["events"][2]["event"].update(record=wipe, revision_before="x"))
    assert "\x1b" not in verify(exported)
    header = json.dumps({"alg": "EdDSA", "typ": "consentful-checkpoint", "kid": wipe})
    text = ".".join(
        base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in (header, "{}", "x")
    )
    rewrite(exported, lambda d: d.update(checkpoint=text))
    said = verify(exported)
    assert "is not among the keys" in said
    assert "\x1b" not in said
