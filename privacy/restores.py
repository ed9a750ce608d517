"""
Restored databases: how one is recognised, and how what was forgotten since is forgotten again.

The list outside the database says what must not return. Every line of it was in the database first;
where one is absent, an older copy was put in its place.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from audit.actors import Actor
from audit.stores import Store, StoreFailed
from consent.erasure import withdraw_again
from preferences.models import Preference
from privacy.erasing import erase_ours, key_digest, record
from privacy.models import Reapplied
from privacy.services import schedule
from privacy.suppressions import (
    ERASURE,
    WITHDRAWAL,
    Line,
    SuppressionsRefused,
    configured_list,
    read_list,
)
from privacy.targets import find_target
from tenants.erasure import new_pseudonym
from tenants.models import Subject, Tenant
from tenants.pseudonyms import digest_with
from tenants.restores import catching_up
from tenants.times import parse_time
from tenants.units import store, unit_of_work

#: Seconds for which an answer holds.
INTERVAL = 30.0
#: Withdrawals that are looked at to recognise a restore: an older copy lacks the newest.
NEWEST = 1000

REAPPLIED = Actor(label="system", reason="The database was restored.")


class Watch:
    """Remembers for a while whether the database is behind, so that no request asks by itself."""

    def __init__(self) -> None:
        self._asking = threading.Lock()
        self._next = 0.0
        self._is_behind: bool | None = None

    def is_behind(self) -> bool:
        """Return whether the database is behind, as far as it was looked at lately."""
        if time.monotonic() < self._next and self._is_behind is not None:
            return self._is_behind
        # One looks; the others go by the last answer, and wait where there is none yet.
        if self._asking.acquire(blocking=self._is_behind is None):
            try:
                if time.monotonic() >= self._next:
                    self._look()
            finally:
                self._asking.release()
        return bool(self._is_behind)

    def forget(self) -> None:
        """Look anew when asked the next time."""
        self._next = 0.0

    def _look(self) -> None:
        try:
            self._is_behind = is_behind()
        except StoreFailed:
            # Without the list nobody knows; what was known before still is.
            self._is_behind = self._is_behind is not False
        self._next = time.monotonic() + INTERVAL


watch = Watch()


def is_behind() -> bool:
    """
    Return whether the list holds something that the database does not know.

    Raises:
        StoreFailed: the list cannot be read.
    """
    kept = configured_list()
    if kept is None:
        return False
    try:
        return any(find_missing(kept, newest=NEWEST))
    except SuppressionsRefused:
        return True


def find_missing(kept: Store, *, newest: int | None = None) -> Iterator[Line]:
    """
    Yield what the database does not know of the list, tenant by tenant, oldest first.

    Args:
        newest: look at so many withdrawals of each tenant only.

    Raises:
        StoreFailed, SuppressionsRefused: see `read_list`.
    """
    there = set(Tenant.objects.values_list("pk", flat=True))
    for tenant_id in kept.list_logs():
        if tenant_id not in there:
            continue  # a tenant that came later: nobody of it was brought back
        lines = list(read_list(kept, tenant_id))
        withdrawals = [one for one in lines if one.kind == WITHDRAWAL]
        erasures = [one for one in lines if one.kind == ERASURE]
        looked_at = [*erasures, *(withdrawals if newest is None else withdrawals[-newest:])]
        unknown = _unknown([one.reference for one in looked_at])
        yield from (one for one in looked_at if one.reference in unknown)


def _unknown(references: Sequence[str]) -> set[str]:
    with store().cursor() as cursor:
        cursor.execute("SELECT * FROM consentful_unknown(%s::text[])", [list(references)])
        return {reference for (reference,) in cursor.fetchall()}


def reapply(kept: Store) -> tuple[int, int]:
    """
    Erase and withdraw again what the database does not know; return how many of each.

    Doing it again changes nothing. Cut short, it goes on where it ended.

    Raises:
        StoreFailed, SuppressionsRefused: see `read_list`.
    """
    erased = withdrawn = 0
    with catching_up():
        by_tenant: dict[int, list[Line]] = {}
        for line in find_missing(kept):
            by_tenant.setdefault(line.tenant_id, []).append(line)
        for tenant_id, lines in by_tenant.items():
            names = _find_names(tenant_id, lines)
            for line in lines:
                if line.kind == ERASURE:
                    _erase_again(line, names.get((line.key, line.subject)))
                    erased += 1
                else:
                    _withdraw_again(line, names.get((line.key, line.subject)))
                    withdrawn += 1
    watch.forget()
    return erased, withdrawn


def _find_names(tenant_id: int, lines: Sequence[Line]) -> dict[tuple[str, str], str]:
    """Return the names of the persons that lines are about, of those whom the database knows."""
    wanted = {(line.key, line.subject) for line in lines}
    keys = {key for key, _ in wanted}
    found: dict[tuple[str, str], str] = {}
    persons = Subject.objects.filter(tenant_id=tenant_id, erased_at=None)
    for name in persons.values_list("external_id", flat=True).iterator():
        for key in keys:
            with suppress(LookupError):
                digested = (key, digest_with(key, "subject", str(tenant_id), name))
                if digested in wanted:
                    found[digested] = name
    return found


def _erase_again(line: Line, name: str | None) -> None:
    # Somebody whom the copy does not know is forgotten in it; that is noted all the same.
    subject = name if name is not None else new_pseudonym()
    with unit_of_work(
        tenant_id=line.tenant_id, actor=REAPPLIED, subjects=[subject], exclusive=True
    ):
        if not _unknown([line.reference]):
            return
        target = find_target(
            tenant_id=line.tenant_id, subject=subject, pseudonym=new_pseudonym(),
            keys=None if line.keys is None else _find_keys(line, subject),
            purposes=line.purposes,
        )  # fmt: skip
        if line.written_until is not None:
            target = replace(target, written_until=parse_time(line.written_until))
        results = erase_ours(target, actor=REAPPLIED.label, method="system")
        record(
            target, results, reference=line.reference, method="restore", person=line.subject,
            key_digests=line.keys,
        )  # fmt: skip
        schedule(line.tenant_id, line.reference)


def _find_keys(line: Line, subject: str) -> Sequence[str]:
    """Return the keys of a person's records that the line's digests stand for."""
    keys = Preference.objects.filter(tenant_id=line.tenant_id, scope=f"user::{subject}")
    return [
        key
        for key in keys.values_list("key", flat=True)
        if key_digest(line.tenant_id, key, secret=line.key) in (line.keys or ())
    ]


def _withdraw_again(line: Line, name: str | None) -> None:
    subjects = [] if name is None else [name]
    with unit_of_work(tenant_id=line.tenant_id, actor=REAPPLIED, subjects=subjects, exclusive=True):
        if name is not None:
            for slug in line.purposes or ():
                withdraw_again(
                    tenant_id=line.tenant_id, subject=name, purpose=slug, before=line.at,
                    actor=REAPPLIED.label,
                )  # fmt: skip
        Reapplied.objects.get_or_create(tenant_id=line.tenant_id, reference=line.reference)
