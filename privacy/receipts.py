"""
Receipts of erasures: signed, without anybody's name, and comparable with the database.

What a receipt says is read from the erasure's rows; how signing works belongs in `audit.signing`.
"""

from dataclasses import dataclass
from typing import Any

from audit.signing import Keys, read_signed, sign
from privacy.models import Erasure, ErasureHolder
from privacy.selectors import erasure_as_json, pseudonym_of
from tenants.exceptions import NotFound
from tenants.times import format_time

#: The header's `typ`: a receipt can be passed off as nothing else.
KIND = "consentful-erasure"

Status = ErasureHolder.Status


@dataclass(frozen=True, slots=True)
class Receipt:
    """A signed statement about one erasure."""

    payload: dict[str, Any]
    key: str
    jws: str


def sign_receipt(erasure: Erasure, *, tenant: str) -> Receipt:
    """
    Return the receipt of a finished erasure.

    Raises:
        NotFound: it is not finished, so there is nothing to be certain of yet.
        SigningKeyMissing, ProofRefused: see `audit.signing.sign`.
    """
    if erasure.finished_at is None:
        raise NotFound("There is no receipt before every holder is done.")
    payload = statement(erasure, tenant=tenant)
    key, jws = sign(payload, kind=KIND)
    return Receipt(payload, key, jws)


def read_receipt(text: str, keys: Keys) -> dict[str, Any]:
    """
    Return what a receipt says.

    Raises:
        ProofRefused: it is none, or no key of `keys` signed it.
    """
    return read_signed(text.strip(), kind=KIND, keys=keys)[0]


def statement(erasure: Erasure, *, tenant: str) -> dict[str, Any]:
    """Return what there is to be certified about a finished erasure."""
    shown = erasure_as_json(erasure)
    holders = sorted(erasure.holders.all(), key=lambda one: one.position)
    return {
        "erasure": erasure.reference,
        "tenant": tenant,
        "tenant_id": erasure.tenant_id,
        # The name that stands in the place of the forgotten one, if the person was known.
        "subject": pseudonym_of(erasure),
        "extent": shown["extent"],
        "method": erasure.method,
        "requested_at": shown["requested_at"],
        "finished_at": erasure.finished_at and format_time(erasure.finished_at),
        "erased": {
            one.holder: one.erased
            for one in holders
            if one.status in (Status.DONE, Status.NOTHING_FOUND)
        },
        "kept": [
            {"holder": one.holder, "count": one.kept, "ground": one.ground}
            for one in holders
            if one.kept and one.status != Status.NOT_RECALLABLE
        ],
        "unreachable": [
            {"holder": one.holder, "ground": one.ground}
            for one in holders
            if one.status == Status.NOT_RECALLABLE
        ],
    }
