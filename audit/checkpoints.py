"""
Checkpoints: signed statements of where a tenant's chain stood, kept where the database's owner
cannot rewrite them.

Each names the digest of the one before it, so a log of them proves its own order. Where logs are
kept belongs in `audit.stores`.
"""

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connections
from django.db.models import Max

from audit.chains import last_cut
from audit.exceptions import ProofRefused
from audit.findings import Finding, finding
from audit.models import Cut, Event, Seal
from audit.signing import Keys, read_signed, sign

KIND = "consentful-checkpoint"
#: What stands for a prefix that retention takes. Checkpoints are handed to many: one of them must
#: not be enough to take the past away.
CUT_KIND = "consentful-cut"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """
    Where a chain stood.

    Attributes:
        tenant: slug of the tenant, for readers; `tenant_id` is what counts. 0 is the installation.
        sequence: place of the last link, and `hash` its hash.
        count: links in the chain; fewer than `sequence` once retention cut a prefix.
        time: when it was signed, RFC 3339 in UTC.
        previous: SHA-256 of the signed text of the checkpoint before, None for the first of a log.
        key: thumbprint of the key that signed.
        jws: the signed text.
        covered: of a cut: the last event that may be the first one of a record which was there
            before. Later records begin with their creation.
    """

    tenant: str
    tenant_id: int
    sequence: int
    hash: str
    count: int
    time: str
    previous: str | None
    key: str
    jws: str
    covered: int = 0

    @property
    def digest(self) -> str:
        """What the next checkpoint of a log names as its `previous`."""
        return hashlib.sha256(self.jws.encode()).hexdigest()


def sign_checkpoint(
    tenant_id: int, tenant: str, *, using: str, previous: Checkpoint | None = None
) -> Checkpoint | None:
    """
    Return a signed checkpoint of a chain as it stands, or None while it has no link.

    The tenant must have been announced to the transaction.

    Raises:
        SigningKeyMissing, ProofRefused: see `audit.signing.sign`.
    """
    cut = last_cut(tenant_id, using)
    link = Seal.objects.using(using).filter(tenant_id=tenant_id).order_by("-sequence").first()
    end = link or cut
    if end is None:
        return None
    return _sign(KIND, tenant_id, tenant, end, cut, previous=previous and previous.digest)


def sign_cut(tenant_id: int, tenant: str, upto: int, *, using: str) -> Checkpoint:
    """
    Return what is signed about the link at `upto`, so that it may go with all those before it.

    The tenant must have been announced to the transaction, and every live record have an event
    after that link.

    Raises:
        SigningKeyMissing, ProofRefused: see `audit.signing.sign`.
    """
    link = Seal.objects.using(using).get(tenant_id=tenant_id, sequence=upto)
    last = Event.objects.using(using).filter(tenant_id=tenant_id).aggregate(Max("pk"))["pk__max"]
    return _sign(CUT_KIND, tenant_id, tenant, link, last_cut(tenant_id, using), covered=last)


def _sign(
    kind: str, tenant_id: int, tenant: str, end: Seal | Cut, cut: Cut | None, **more: Any
) -> Checkpoint:
    payload = {
        "tenant": tenant,
        "tenant_id": tenant_id,
        "sequence": end.sequence,
        "hash": end.hash,
        "count": end.sequence - (cut.sequence if cut else 0),
        "time": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "previous": None,
        **more,
    }
    signer, jws = sign(payload, kind=kind)
    return _checkpoint(payload, signer, jws)


def read_checkpoint(jws: str, keys: Keys, *, kind: str = KIND) -> Checkpoint:
    """
    Return a checkpoint whose signature fits.

    Raises:
        ProofRefused: see `audit.signing.read_signed`.
    """
    payload, signer = read_signed(jws, kind=kind, keys=keys)
    return _checkpoint(payload, signer, jws)


def read_log(lines: Iterable[str], keys: Keys) -> list[Checkpoint]:
    """
    Return the checkpoints of a log, oldest first.

    Raises:
        ProofRefused: one of them cannot be believed, is missing, or stands in another's place; the
            text names its line.
    """
    log: list[Checkpoint] = []
    former: set[str] = set()
    for number, line in enumerate(filter(None, map(str.strip, lines)), start=1):
        where = f"Checkpoint {number} of the log"
        try:
            checkpoint = read_checkpoint(line, keys)
        except ProofRefused as fault:
            raise ProofRefused(f"{where} cannot be believed. {fault}") from fault
        if log:
            before = log[-1]
            if checkpoint.tenant_id != before.tenant_id:
                raise ProofRefused(f"{where} is about another tenant.")
            if checkpoint.previous != before.digest:
                raise ProofRefused(f"{where} does not follow the one before it.")
            if checkpoint.sequence < before.sequence:
                raise ProofRefused(f"{where} goes back in the chain.")
            if checkpoint.key != before.key:
                former.add(before.key)
        elif checkpoint.previous is not None:
            raise ProofRefused(f"{where} is not the first one: those before it are missing.")
        if checkpoint.key in former:
            # Who stole a retired key could otherwise go on with it.
            raise ProofRefused(f"{where} is signed with a key that another one had replaced.")
        log.append(checkpoint)
    return log


def check_checkpoints(
    tenant_id: int, log: Sequence[Checkpoint], *, using: str
) -> Iterator[Finding]:
    """Compare a tenant's chain with what was signed about it: each named link must be there."""
    cut = last_cut(tenant_id, using)
    start = cut.sequence if cut else 0
    known = {start: cut.hash} if cut else {}
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT sequence, hash FROM consentful_audit_seal"
            " WHERE tenant_id = %s AND sequence = ANY (%s)",
            [tenant_id, [one.sequence for one in log]],
        )
        known |= dict(cursor.fetchall())
        cursor.execute(
            "SELECT coalesce(max(sequence), %s) FROM consentful_audit_seal WHERE tenant_id = %s",
            [start, tenant_id],
        )
        last = cursor.fetchone()[0]
    for one in log:
        if one.tenant_id != tenant_id:
            yield finding(
                "checkpoint_forged", tenant_id,
                f"A checkpoint of {one.time} is about another tenant: the log of that one was put"
                " in the place of this one's.",
            )  # fmt: skip
        elif one.sequence > last:
            yield finding(
                "chain_rolled_back", tenant_id,
                f"The chain ends with link {last}; a checkpoint of {one.time} signed link"
                f" {one.sequence}: what came after was cut off, or an older copy put in its place.",
            )  # fmt: skip
        elif one.sequence >= start and known.get(one.sequence, one.hash) != one.hash:
            yield finding(
                "chain_replaced", tenant_id,
                f"Link {one.sequence} of the chain is not the one that a checkpoint of {one.time}"
                " signed: the chain was replaced.",
            )  # fmt: skip


def check_cut(tenant_id: int, keys: Keys, *, using: str) -> Iterator[Finding]:
    """Check that each prefix that is gone was cut under a signed checkpoint of its last link."""
    for cut in Cut.objects.using(using).filter(tenant_id=tenant_id).order_by("sequence"):
        try:
            signed = read_checkpoint(cut.checkpoint, keys, kind=CUT_KIND)
        except ProofRefused as fault:
            yield finding(
                "cut_forged", tenant_id,
                f"The cut after link {cut.sequence} has no checkpoint that can be believed. {fault}",
            )  # fmt: skip
            continue
        if (signed.tenant_id, signed.sequence, signed.hash) != (tenant_id, cut.sequence, cut.hash):
            yield finding(
                "cut_forged", tenant_id,
                f"The cut after link {cut.sequence} is not the one that its checkpoint signed.",
            )  # fmt: skip


def covered_events(tenant_id: int, keys: Keys, *, using: str) -> int:
    """Return the last event that may be the first one of a record which was there before; 0 if uncut."""
    cut = last_cut(tenant_id, using)
    if cut is None:
        return 0
    try:
        return read_checkpoint(cut.checkpoint, keys, kind=CUT_KIND).covered
    except ProofRefused:
        return sys.maxsize  # `check_cut` names it


def _checkpoint(payload: dict[str, Any], signer: str, jws: str) -> Checkpoint:
    return Checkpoint(key=signer, jws=jws, **payload)
