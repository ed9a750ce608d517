"""
One erasure inside its transaction: our own stores in their order, then a look of its own at each.

Who may ask belongs in `privacy.services`, what happens after the commit in `privacy.jobs`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from consent.erasure import withdraw_all
from privacy.conf import backup_days, suppressions
from privacy.holders import OURS, host_stores
from privacy.models import Erasure, ErasureHolder
from tenants.personal import PersonalData, Remainder, Store, Target
from tenants.pseudonyms import digest_with, key_name, name_digest
from tenants.units import now

Status = ErasureHolder.Status

#: These come last, in this order: every step before writes events that still name the person.
LAST = ("identity", "events")

#: The names of what is no store: the list of what must not return, and copies out of reach.
SUPPRESSION = "suppression_list"
BACKUPS = "backups"


class VerificationFailed(RuntimeError):
    """After an erasure a store still holds something, which is no hold's: all of it is undone."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one store: what was found gone by a look of its own, and what stays."""

    erased: int
    remainder: Remainder

    @property
    def status(self) -> ErasureHolder.Status:
        """The one word for it."""
        if not self.remainder.is_recallable:
            return Status.NOT_RECALLABLE
        if self.remainder.held:
            return Status.HELD
        if self.erased:
            return Status.DONE
        return Status.EXEMPT if self.remainder.kept else Status.NOTHING_FOUND


def our_stores() -> Sequence[tuple[PersonalData, Store]]:
    """Return our stores in the order of erasing: from the roof down, names last of all."""
    found = [(holder, one) for holder in reversed(OURS) for one in reversed(holder.describe())]
    return sorted(found, key=lambda pair: _place(pair[1]))


def _place(one: Store) -> int:
    return LAST.index(one.name) + 1 if one.name in LAST else 0


def count_all(target: Target) -> dict[str, int]:
    """Return how much each of our stores holds of a target."""
    return {one.name: holder.count(target=target, store=one.name) for holder, one in our_stores()}


def erase_ours(target: Target, *, actor: str, method: str) -> dict[str, Result]:
    """
    Erase a target from our stores and verify it. Inside a unit with the exclusive fence.

    Raises:
        VerificationFailed: something is left that should not be.
    """
    before = count_all(target)
    if target.is_whole and target.subject_id is not None:
        withdraw_all(target, actor=actor, method=method)
    remainders = {
        one.name: remainder
        for holder, one in our_stores()
        if (remainder := holder.erase(target=target, store=one.name)) is not None
    }
    after = count_all(target)
    for name, remainder in remainders.items():
        if after[name] != remainder.held:
            raise VerificationFailed(f"{name}: {after[name]} left, {remainder.held} held")
    return {
        name: Result(max(before[name] - after[name], 0), remainder)
        for name, remainder in remainders.items()
    }


def record(
    target: Target,
    results: dict[str, Result],
    *,
    reference: str,
    method: str,
    person: str | None = None,
    key_digests: Sequence[str] | None = None,
) -> Erasure:
    """
    Write down what was erased, and who is yet to be asked. In the same transaction.

    Args:
        person, key_digests: the digests of names, where they were computed before.
    """
    moment = now()
    later = _later_holders(target, moment)
    is_open = any(holder.status not in ErasureHolder.SETTLED for holder in later) or any(
        result.status not in ErasureHolder.SETTLED for result in results.values()
    )
    keys = None if target.keys is None else list(target.keys)
    erasure = Erasure.objects.create(
        tenant_id=target.tenant_id,
        reference=reference,
        subject_id=target.subject_id,
        digest=person or name_digest(target.tenant_id, target.subject),
        name=target.subject if is_open else None,
        login=target.logins[0] if is_open and target.logins else None,
        is_whole=target.is_whole,
        keys=keys if is_open else None,
        key_digests=_digests(target, keys) if key_digests is None else list(key_digests),
        purposes=None if target.purposes is None else list(target.purposes),
        written_until=target.written_until,
        method=method,
        status=Erasure.Status.PENDING if is_open else Erasure.Status.DONE,
        requested_at=moment,
        finished_at=None if is_open else moment,
    )
    ours = [
        ErasureHolder(
            holder=name,
            is_external=False,
            status=result.status,
            erased=result.erased,
            held=result.remainder.held,
            kept=result.remainder.kept,
            ground=result.remainder.ground,
            attempts=1,
            finished_at=moment if result.status in ErasureHolder.SETTLED else None,
        )
        for name, result in results.items()
    ]
    for position, holder in enumerate([*ours, *later]):
        holder.tenant_id, holder.erasure, holder.position = target.tenant_id, erasure, position
    ErasureHolder.objects.bulk_create([*ours, *later])
    return erasure


def _later_holders(target: Target, now: datetime) -> Sequence[ErasureHolder]:
    """Return the rows of those that are asked after the commit, and of what nobody can reach."""
    later = [
        ErasureHolder(holder=one.name, is_external=True, status=Status.PENDING, due_at=now)
        for _, one in host_stores()
    ]
    if suppressions() is not None:
        later.insert(
            0,
            ErasureHolder(holder=SUPPRESSION, is_external=True, status=Status.PENDING, due_at=now),
        )
    return [*later, *_unreachable(now)]


def _unreachable(now: datetime) -> Iterator[ErasureHolder]:
    days = backup_days()
    if days == 0:
        return
    until = (
        "for an unknown time" if days is None else f"until {now + timedelta(days=days):%Y-%m-%d}"
    )
    yield ErasureHolder(
        holder=BACKUPS,
        is_external=True,
        status=Status.NOT_RECALLABLE,
        ground=f"Backups hold what was erased {until}; a restore erases it again.",
        finished_at=now,
    )


def _digests(target: Target, keys: Sequence[str] | None) -> Sequence[str] | None:
    return None if keys is None else [key_digest(target.tenant_id, key) for key in keys]


def key_digest(tenant_id: int, key: str, *, secret: str | None = None) -> str:
    """
    Return what stands for the key of a record, where the key itself must not stand.

    Args:
        secret: name of the secret to digest with; the present one by default.
    """
    return digest_with(secret or key_name(), "key", str(tenant_id), key)
