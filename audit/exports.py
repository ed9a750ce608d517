"""
A tenant's sealed events as one document to hand over, and its proof without any database.

The document is JSON with one event per line, so that a large one is written and read in pieces. It
is read strictly: what a verification passes over, another reader may take for proven.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, TextIO

from audit.chains import check_readable
from audit.checkpoints import Checkpoint, read_checkpoint
from audit.documents import FORMAT, Document, entry_of
from audit.exceptions import ProofRefused
from audit.findings import SNAPSHOT, Finding, Tally, finding
from audit.models import Event, Seal
from audit.sealing import GENESIS, chain_hash, content
from audit.signing import Keys

#: Events per statement.
BATCH = 1000

#: What an event leaves a record with: its revision and the digest of its row.
type Version = tuple[str | None, str | None]


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
            yield separator + json.dumps(entry_of(link), ensure_ascii=False)
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
    document = Document(file)
    tenant_id = document.tenant_id
    sequence, previous = document.start
    if sequence == 0 and previous != GENESIS:
        raise ProofRefused("The document does not start where chains start.")
    # A document of a chain without links names no tenant: any checkpoint speaks against it.
    signed = [one for one in checkpoints if tenant_id in (None, one.tenant_id)]
    findings: list[Finding] = []
    records: dict[tuple[str, int], Version] = {}
    is_whole = sequence == 0
    for link, event in document.links():
        if tenant_id is None:
            raise ProofRefused("The document names no tenant, and has events.")
        findings += _check_link(link, event, tenant_id, sequence, previous)
        findings += _check_revision(event, records, is_whole=is_whole)
        sequence, previous = link.sequence, link.hash
        findings += [
            _replaced(tenant_id, one)
            for one in signed
            if one.sequence == sequence and one.hash != previous
        ]
        tally.events += 1
        tally.advance(1)
    tally.checkpoints = len(signed)
    if tenant_id is None and document.checkpoint is not None:
        raise ProofRefused("The document names no tenant, and has a checkpoint.")
    if tenant_id is not None:
        findings += _check_end(document, keys, sequence, previous, tally)
    later = (one for one in signed if one.sequence > sequence)
    return [*findings, *(_rolled_back(one.tenant_id, sequence, one) for one in later)]


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
    event: Event, records: dict[tuple[str, int], Version], *, is_whole: bool
) -> Iterator[Finding]:
    """Follow each record: a version starts where the one before it ended, a snapshot repeats it."""
    if event.record is None or event.record_id is None:
        return
    record = (event.record, event.record_id)
    revision, digest = records.get(
        record, (None, None) if is_whole else (event.revision_before, event.row_digest)
    )
    is_snapshot = event.action.endswith(SNAPSHOT)
    if event.revision_before != revision or (is_snapshot and event.row_digest != digest):
        yield finding(
            "link_broken", event.tenant_id,
            f"Event {event.pk} does not go on where the events of {event.record[:64]!a}"
            f" {event.record_id} before it ended.",
            event=event,
        )  # fmt: skip
    records[record] = (event.revision_after, event.row_digest)


def _check_end(
    document: Document, keys: Keys, sequence: int, last_hash: str, tally: Tally
) -> Iterator[Finding]:
    tenant_id: int = document.tenant_id  # type: ignore[assignment]  # asked before
    try:
        signed = read_checkpoint(str(document.checkpoint), keys)
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
    elif signed.tenant != document.tenant:
        yield finding(
            "checkpoint_forged", tenant_id,
            "The document bears the name of another tenant than its checkpoint.",
        )  # fmt: skip
    tally.extent = (
        f"Links {document.start[0] + 1} to {sequence} of the chain of {signed.tenant}, signed at"
        f" {signed.time}."
    )


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
