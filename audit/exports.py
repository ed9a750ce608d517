"""
A tenant's sealed events as one document to hand over, and its proof without any database.

The document is JSON with one event per line, so that a large one is written and read in pieces.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, TextIO

from django.db import models

from audit.chains import check_readable
from audit.checkpoints import Checkpoint, read_checkpoint
from audit.exceptions import ProofRefused
from audit.findings import Finding, Tally, finding
from audit.models import Event, Seal
from audit.sealing import GENESIS, chain_hash, content
from audit.signing import Keys

FORMAT = "consentful-audit-export/1"
#: Events per statement.
BATCH = 1000

_COLUMNS = [field.attname for field in Event._meta.concrete_fields]
_NUMBERS = {
    field.attname
    for field in Event._meta.concrete_fields
    if isinstance(field, models.BigIntegerField)
}
#: Too large for the numbers of many JSON readers (RFC 7493).
_LARGE = ("transaction", "cluster")


def write_export(
    checkpoint: Checkpoint | None,
    *,
    start: tuple[int, str],
    using: str,
    unit: Callable[[], AbstractContextManager[Any]],
) -> Iterator[str]:
    """
    Yield the document in pieces: every event after `start` up to the checkpoint, then the checkpoint.

    Args:
        checkpoint: of the link that the document ends with; None for a chain without links.
        start: place and hash of the link that the first event follows.
        unit: opens a unit of work, in which one batch is read.
    """
    last = checkpoint.sequence if checkpoint else 0
    sequence, previous = start
    header = {
        "format": FORMAT,
        "tenant": checkpoint and checkpoint.tenant,
        "tenant_id": checkpoint and checkpoint.tenant_id,
        "start": {"sequence": sequence, "hash": previous},
    }
    yield json.dumps(header, ensure_ascii=False)[:-1] + ', "events": ['
    separator = "\n"
    while checkpoint and sequence < last:
        with unit():
            links = list(
                Seal.objects.using(using)
                .filter(tenant_id=checkpoint.tenant_id, sequence__gt=sequence, sequence__lte=last)
                .select_related("event")
                .order_by("sequence")[:BATCH]
            )
        if not links or links[0].sequence != sequence + 1:
            # Retention overtook the export, or links are gone: an unfinished document is no proof.
            raise ProofRefused(f"The link after {sequence} of the chain is gone.")
        for link in links:
            yield separator + json.dumps(_entry(link), ensure_ascii=False)
            separator = ",\n"
        sequence = links[-1].sequence
    yield '\n], "checkpoint": ' + json.dumps(checkpoint and checkpoint.jws) + "}\n"


def verify_export(
    file: TextIO, keys: Keys, *, tally: Tally, checkpoints: Iterable[Checkpoint] = ()
) -> list[Finding]:
    """
    Compute the chain of an exported document again; return what does not fit.

    Args:
        keys: whose signatures are believed.
        checkpoints: what was signed earlier about the same tenant, to be found in the document.

    Raises:
        ProofRefused: it is no export, or ends before its end.
    """
    document = _Document(file)
    tenant_id = document.header.get("tenant_id")
    if tenant_id is None:
        return []  # of a chain without links
    start = document.header["start"]
    sequence, previous = int(start["sequence"]), str(start["hash"])
    if sequence == 0 and previous != GENESIS:
        raise ProofRefused("The document does not start where chains start.")
    signed = {one.sequence: one for one in checkpoints if one.tenant_id == tenant_id}
    findings: list[Finding] = []
    revisions: dict[tuple[str, int], str | None] = {}
    is_whole = sequence == 0
    for link, event in document.links():
        findings += _check_link(link, event, tenant_id, sequence, previous)
        findings += _check_revision(event, revisions, is_whole=is_whole)
        sequence, previous = link.sequence, link.hash
        if sequence in signed and signed[sequence].hash != previous:
            findings.append(_replaced(tenant_id, signed[sequence]))
        tally.events += 1
        tally.advance(1)
    findings += _check_end(document.checkpoint, keys, tenant_id, sequence, previous)
    later = (one for one in signed.values() if one.sequence > sequence)
    return [*findings, *(_rolled_back(tenant_id, sequence, one) for one in later)]


def _check_link(
    link: Seal, event: Event, tenant_id: int, sequence: int, previous: str
) -> Iterator[Finding]:
    if link.sequence != sequence + 1:
        yield finding(
            "seal_deleted", tenant_id,
            f"After link {sequence} of the chain comes link {link.sequence}.",
        )  # fmt: skip
    elif link.previous != previous:
        yield finding(
            "chain_broken", tenant_id,
            f"Link {link.sequence} of the chain does not follow link {sequence}.", event=event,
        )  # fmt: skip
    if (
        event.tenant_id != tenant_id
        or chain_hash(link.sequence, link.previous, content(event)) != link.hash
    ):
        yield finding(
            "event_edited", tenant_id,
            f"Event {event.pk} is not what link {link.sequence} of the chain sealed.", event=event,
        )  # fmt: skip
    yield from check_readable(event)


def _check_revision(
    event: Event, revisions: dict[tuple[str, int], str | None], *, is_whole: bool
) -> Iterator[Finding]:
    """Follow each record: a version starts where the one before it ended."""
    if event.record is None or event.record_id is None:
        return
    record = (event.record, event.record_id)
    expected = revisions.get(record, None if is_whole else event.revision_before)
    if event.revision_before != expected:
        yield finding(
            "link_broken", event.tenant_id,
            f"Event {event.pk} does not go on where the events of {event.record}"
            f" {event.record_id} before it ended.",
            event=event,
        )  # fmt: skip
    revisions[record] = event.revision_after


def _check_end(
    jws: Any, keys: Keys, tenant_id: int, sequence: int, last_hash: str
) -> Iterator[Finding]:
    try:
        signed = read_checkpoint(str(jws), keys)
    except ProofRefused as fault:
        yield finding(
            "checkpoint_forged", tenant_id,
            f"The document's checkpoint cannot be believed. {fault}",
        )  # fmt: skip
        return
    if (signed.tenant_id, signed.sequence, signed.hash) != (tenant_id, sequence, last_hash):
        yield finding(
            "chain_replaced", tenant_id,
            f"The document ends with link {sequence}, which is not the one that its checkpoint"
            f" of {signed.time} signed, link {signed.sequence}.",
        )  # fmt: skip


def _replaced(tenant_id: int, signed: Checkpoint) -> Finding:
    return finding(
        "chain_replaced", tenant_id,
        f"Link {signed.sequence} of the document is not the one that a checkpoint of {signed.time}"
        " signed.",
    )  # fmt: skip


def _rolled_back(tenant_id: int, last: int, signed: Checkpoint) -> Finding:
    return finding(
        "chain_rolled_back", tenant_id,
        f"The document ends with link {last}; a checkpoint of {signed.time} signed link"
        f" {signed.sequence}.",
    )  # fmt: skip


def _entry(link: Seal) -> dict[str, Any]:
    event = {name: getattr(link.event, name) for name in _COLUMNS}
    event |= {name: str(event[name]) for name in _LARGE}
    event["at"] = link.event.at.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return {
        "sequence": link.sequence,
        "previous": link.previous,
        "hash": link.hash,
        "event": event,
    }


class _Document:
    """An export being read: line by line as it was written, or whole where somebody rewrote it."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.checkpoint: Any = None
        try:
            first = file.readline()
            if first.rstrip().endswith('"events": ['):
                self.header = json.loads(first + "]}")
                self._entries: Iterable[Any] = self._read_lines()
            else:
                self.header = json.loads(first + file.read())
                self._entries = self.header["events"]
                self.checkpoint = self.header["checkpoint"]
            known = self.header["format"]
        except (ValueError, LookupError, TypeError) as fault:
            raise ProofRefused(f"It is no export of a trail ({FORMAT}).") from fault
        if known != FORMAT:
            raise ProofRefused(f"It is of another format than {FORMAT}.")

    def links(self) -> Iterator[tuple[Seal, Event]]:
        """Yield each link with its event, as instances that no database knows."""
        for number, entry in enumerate(self._entries, start=1):
            try:
                yield _read_entry(entry)
            except (ValueError, LookupError, TypeError, AttributeError) as fault:
                raise ProofRefused(f"Entry {number} of the document is no event.") from fault

    def _read_lines(self) -> Iterator[Any]:
        for number, line in enumerate(self._file, start=2):
            text = line.strip()
            try:
                if text.startswith("]"):
                    self.checkpoint = json.loads("{" + text[1:].lstrip(" ,"))["checkpoint"]
                    return
                yield json.loads(text.removesuffix(","))
            except (ValueError, LookupError, TypeError) as fault:
                raise ProofRefused(f"Line {number} of the document is not as exported.") from fault
        raise ProofRefused("The document ends before its end: get it again.")


def _read_entry(entry: Any) -> tuple[Seal, Event]:
    columns: dict[str, Any] = {name: entry["event"][name] for name in _COLUMNS}
    columns["at"] = datetime.fromisoformat(columns["at"])
    columns |= {name: _number(columns[name]) for name in _LARGE}
    for name, value in columns.items():
        if value is not None and not _is_of_type(name, value):
            raise TypeError(name)
    link = Seal(
        sequence=int(entry["sequence"]), previous=str(entry["previous"]), hash=str(entry["hash"])
    )
    return link, Event(**columns)


def _number(text: Any) -> int:
    if not isinstance(text, str):
        raise TypeError
    return int(text)


def _is_of_type(name: str, value: Any) -> bool:
    if name == "at":
        return isinstance(value, datetime) and value.tzinfo is not None
    if name == "changed":
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    return type(value) is (int if name in _NUMBERS else str)
