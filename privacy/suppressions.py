"""
The list of what must not return with a backup: kept outside the database, as keyed digests.

One line for each erasure and for each withdrawal of consent, in a log per tenant. A line names nobody;
whoever has the database and the key can tell whom it is about.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from audit.actors import SYSTEM
from audit.stores import Store, store_at
from consent.erasure import list_withdrawals, newest_entry
from privacy.conf import suppressions
from privacy.models import Erasure
from tenants.pseudonyms import digest, digest_with, key_name, name_digest
from tenants.times import format_time
from tenants.units import unit_of_work


class SuppressionsRefused(Exception):
    """The list of what must not return cannot be believed or read."""


ERASURE, WITHDRAWAL = "erasure", "withdrawal"

#: Withdrawals that are looked at again: ids are handed out before they are committed.
OVERLAP = 1000
#: Withdrawals that are added in one go.
MOST = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """
    One thing that must not return.

    Attributes:
        kind: ``erasure`` or ``withdrawal``.
        reference: the erasure's id, or the name of the ledger's entry.
        subject: keyed digest of the person's name.
        keys: keyed digests of keys; None for all of them.
        purposes: slugs; None for all of them.
        written_until: only what was written by then; None for all of it.
        key: name of the secret with which it was digested.
    """

    kind: str
    tenant_id: int
    reference: str
    subject: str
    at: str
    key: str
    keys: tuple[str, ...] | None = None
    purposes: tuple[str, ...] | None = None
    written_until: str | None = None

    def as_text(self) -> str:
        """Return the line as it is kept, with a keyed digest over all of it."""
        facts = self.facts()
        return _compact({**facts, "mac": digest("line", _compact(facts))})

    def facts(self) -> dict[str, Any]:
        """Return what the line says."""
        return {
            "kind": self.kind,
            "tenant_id": self.tenant_id,
            "reference": self.reference,
            "subject": self.subject,
            "at": self.at,
            "key": self.key,
            "keys": None if self.keys is None else list(self.keys),
            "purposes": None if self.purposes is None else list(self.purposes),
            "written_until": self.written_until,
        }


def configured_list() -> Store | None:
    """Return the store that the settings name, if they name one."""
    return store_at(suppressions(), what="list of what must not return")


def suppress(erasure: Erasure, *, is_retry: bool) -> None:
    """
    Add an erasure to the list, unless it stands there already.

    Args:
        is_retry: whether an earlier attempt may have added it; only then is the list read, which may be
            long where many persons withdraw.

    Raises:
        StoreFailed: the line was not stored.
        SuppressionsRefused: see `read_list`.
    """
    kept = configured_list()
    if kept is None:
        return
    until = erasure.written_until
    line = Line(
        kind=ERASURE,
        tenant_id=erasure.tenant_id,
        reference=erasure.reference,
        subject=erasure.digest,
        at=format_time(erasure.requested_at),
        key=key_name(),
        keys=None if erasure.key_digests is None else tuple(erasure.key_digests),
        purposes=None if erasure.purposes is None else tuple(erasure.purposes),
        written_until=None if until is None else format_time(until),
    )
    if is_retry and any(
        one.reference == line.reference for one in read_list(kept, erasure.tenant_id)
    ):
        return
    kept.append(erasure.tenant_id, line.as_text())


def suppress_withdrawals(tenant_id: int) -> int:
    """
    Add to the list what was withdrawn in one tenant since it was last done; return how many.

    Called by housekeeping: a backup that is restored knows only the consent.

    Raises:
        StoreFailed, SuppressionsRefused: see `read_list`.
    """
    kept = configured_list()
    if kept is None:
        return 0
    known = _known_withdrawals(kept, tenant_id)
    newest = max((int(one.partition(":")[0]) for one in known), default=0)
    with unit_of_work(tenant_id=tenant_id, actor=SYSTEM):
        # In an older copy ids are handed out again that the list knows of.
        newest = min(newest, newest_entry(tenant_id=tenant_id))
        found = list_withdrawals(tenant_id=tenant_id, after=max(0, newest - OVERLAP), most=MOST)
    fresh = [one for one in found if f"{one.id}:{one.entry}" not in known]
    for one in fresh:
        line = Line(
            kind=WITHDRAWAL,
            tenant_id=tenant_id,
            reference=f"{one.id}:{one.entry}",
            subject=name_digest(tenant_id, one.subject),
            at=format_time(one.at),
            key=key_name(),
            purposes=(one.purpose,),
        )
        kept.append(tenant_id, line.as_text())
        known.add(line.reference)
    return len(fresh)


#: What this process knows to stand in the list, by tenant: it is read once.
_known: dict[int, set[str]] = {}


def _known_withdrawals(kept: Store, tenant_id: int) -> set[str]:
    if tenant_id not in _known:
        lines = read_list(kept, tenant_id)
        _known[tenant_id] = {one.reference for one in lines if one.kind == WITHDRAWAL}
    return _known[tenant_id]


def read_list(kept: Store, tenant_id: int) -> Iterator[Line]:
    """
    Yield what must not return to one tenant, oldest first.

    Raises:
        StoreFailed: the store does not answer.
        SuppressionsRefused: a line is none, or its key is not known here.
    """
    for text in kept.read(tenant_id):
        yield _read(text)


def _read(text: str) -> Line:
    try:
        facts = json.loads(text)
        mac = facts.pop("mac")
        expected = digest_with(facts["key"], "line", _compact(facts))
        line = Line(
            **{
                **facts,
                "keys": None if facts["keys"] is None else tuple(facts["keys"]),
                "purposes": None if facts["purposes"] is None else tuple(facts["purposes"]),
            }
        )
    except LookupError as fault:
        raise SuppressionsRefused(
            "A line of the list was made with another secret: set CONSENTFUL_SUPPRESSION_KEY to the"
            " one of before."
        ) from fault
    except (ValueError, TypeError, AttributeError) as fault:
        raise SuppressionsRefused("A line of the list is none.") from fault
    if mac != expected:
        raise SuppressionsRefused("A line of the list was altered.")
    return line


def _compact(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))
