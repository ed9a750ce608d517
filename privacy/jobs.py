"""
What follows an erasure's commit: whoever holds something outside the database is asked, again until
it succeeds.

The rows of `ErasureHolder` say what is yet to be done, so that a process may be killed at any point.
No argument of a job names anybody: an erasure's id is all.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import F, Q
from django.db.models.expressions import RawSQL

from audit.actors import SYSTEM
from preferences import erasure as preferences_erasure
from privacy.conf import erasure_jobs
from privacy.erasing import SUPPRESSION, Result
from privacy.exceptions import HolderFailed
from privacy.holders import host_stores
from privacy.models import Erasure, ErasureHolder
from privacy.suppressions import suppress, suppress_withdrawals
from tenants.erasure import blank_trail, name_of_login
from tenants.models import Subject, Tenant
from tenants.observation import JOBS, describe, note
from tenants.personal import NOTHING_LEFT, PersonalData, Remainder, Target
from tenants.units import now, store, unit_of_work

Status = ErasureHolder.Status

#: How long one attempt may take before somebody else makes the next: a killed process says nothing.
LEASE = timedelta(minutes=2)
#: How long a host's queue may be late before housekeeping asks in its place.
LOST = timedelta(minutes=10)
#: The pauses between attempts grow from the first to the last of these.
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=10), timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One holder to be asked now, about whom, and how often it was asked before."""

    row_id: int
    name: str
    target: Target
    erasure: Erasure
    number: int
    found: int


def run_erasures() -> int:
    """
    Ask every holder that is due, of every tenant; return how many erasures are still open.

    Where a host's queue asks them, only those that it seems to have lost.
    """
    slack = timedelta(0) if erasure_jobs() is None else LOST
    for reference, tenant_id in open_erasures():
        run_erasure(reference, tenant_id=tenant_id, slack=slack)
    return len(open_erasures())


def run_erasure(
    reference: str,
    *,
    tenant_id: int | None = None,
    only: Sequence[str] | None = None,
    slack: timedelta = timedelta(0),
) -> bool:
    """
    Ask the holders of one erasure that are due; return whether it is finished now.

    Each is asked for itself: one that fails keeps none of the others waiting, and is asked again
    later with a growing pause. Those that succeeded are not asked again.

    Args:
        tenant_id: where it is known; found by the reference otherwise.
        only: names of the holders to ask; None for all.
        slack: ask only who is due for so long.
    """
    if tenant_id is None:
        tenant_id = dict(open_erasures()).get(reference)
        if tenant_id is None:
            return True
    while (attempt := _claim(tenant_id, reference, only, slack)) is not None:
        _ask(attempt)
    _look_after_holds(tenant_id, reference)
    return _finish(tenant_id, reference)


def open_erasures() -> Sequence[tuple[str, int]]:
    """Return the erasures that are not finished, and their tenants, oldest first."""
    with store().cursor() as cursor:
        cursor.execute("SELECT reference, tenant FROM consentful_open_erasures()")
        return list(cursor.fetchall())


def _claim(
    tenant_id: int, reference: str, only: Sequence[str] | None, slack: timedelta
) -> Attempt | None:
    """Take the next holder that is due, so that no twin asks it meanwhile."""
    with unit_of_work(tenant_id=tenant_id, actor=SYSTEM):
        due = ErasureHolder.objects.filter(
            tenant_id=tenant_id, erasure__reference=reference, is_external=True,
            status__in=[Status.PENDING, Status.FAILED], due_at__lte=RawSQL("consentful_now() - %s", [slack]),
        )  # fmt: skip
        if only is not None:
            due = due.filter(holder__in=only)
        row = due.select_for_update(skip_locked=True, of=("self",)).order_by("position").first()
        if row is None:
            return None
        ErasureHolder.objects.filter(pk=row.pk).update(
            attempts=F("attempts") + 1, due_at=RawSQL("consentful_now() + %s", [LEASE])
        )
        erasure = Erasure.objects.get(tenant_id=tenant_id, pk=row.erasure_id)
    return Attempt(
        row.pk, row.holder, _target_of(erasure), erasure, row.attempts + 1, row.found or 0
    )


def _target_of(erasure: Erasure) -> Target:
    login = erasure.login
    name = name_of_login(login)
    return Target(
        tenant_id=erasure.tenant_id,
        subject=erasure.name or "",
        subject_id=erasure.subject_id,
        pseudonym="",
        logins=[] if login is None else [login],
        names=[] if name is None else [name],
        keys=erasure.keys,
        purposes=erasure.purposes,
        written_until=erasure.written_until,
    )


def _ask(attempt: Attempt) -> None:
    """Ask one holder, outside any transaction, and write down what became of it."""
    try:
        result = _erase(attempt)
    except Exception as fault:  # noqa: BLE001  whatever a host's code raises, the others go on
        note(JOBS, logging.WARNING, "job_refused", job="erasure", **describe(fault))
        _write_failure(attempt, fault)
        return
    with unit_of_work(tenant_id=attempt.target.tenant_id, actor=SYSTEM):
        is_settled = result.status in ErasureHolder.SETTLED
        ErasureHolder.objects.filter(pk=attempt.row_id).update(
            status=result.status,
            erased=result.erased,
            held=result.remainder.held,
            kept=result.remainder.kept,
            ground=result.remainder.ground,
            reason=None,
            due_at=None if is_settled else RawSQL("consentful_now() + %s", [LONGEST_PAUSE]),
            finished_at=RawSQL("consentful_now()", []) if is_settled else None,
        )


def _erase(attempt: Attempt) -> Result:
    if attempt.name == SUPPRESSION:
        suppress(attempt.erasure, is_retry=attempt.number > 1)
        return Result(1, NOTHING_LEFT)
    holder = _holder_called(attempt.name)
    before = _note_found(attempt, holder.count(target=attempt.target, store=attempt.name))
    remainder = holder.erase(target=attempt.target, store=attempt.name)
    left = holder.count(target=attempt.target, store=attempt.name)
    if remainder is None:
        return Result(0, Remainder())
    if left != remainder.held and remainder.is_recallable:
        raise HolderFailed(f"After it was asked to erase, {left} things are still there.")
    return Result(max(before - left, 0), remainder)


def _note_found(attempt: Attempt, count: int) -> int:
    """Keep how much there was before the first attempt: should this one be cut short, it is known."""
    if count <= attempt.found:
        return attempt.found
    with unit_of_work(tenant_id=attempt.target.tenant_id, actor=SYSTEM):
        ErasureHolder.objects.filter(pk=attempt.row_id).update(found=count)
    return count


def _holder_called(name: str) -> PersonalData:
    for holder, one in host_stores():
        if one.name == name:
            return holder
    raise HolderFailed("The settings do not name this holder any more.")


def _write_failure(attempt: Attempt, fault: Exception) -> None:
    # What a library says may quote whom it was about: its kind is enough.
    reason = str(fault) if isinstance(fault, HolderFailed) else type(fault).__qualname__
    pause = min(FIRST_PAUSE * 2 ** min(attempt.number - 1, 20), LONGEST_PAUSE)
    with unit_of_work(tenant_id=attempt.target.tenant_id, actor=SYSTEM):
        ErasureHolder.objects.filter(pk=attempt.row_id).update(
            status=Status.FAILED,
            reason=reason[:500],
            due_at=RawSQL("consentful_now() + %s", [pause]),
        )


def _look_after_holds(tenant_id: int, reference: str) -> None:
    """Delete what a legal hold kept from an erasure, as far as the hold has ended."""
    with unit_of_work(tenant_id=tenant_id, actor=SYSTEM):
        row = (
            ErasureHolder.objects.filter(
                tenant_id=tenant_id, erasure__reference=reference, is_external=False,
                status=Status.HELD,
            )
            .select_related("erasure__subject")
            .first()
        )  # fmt: skip
        if row is None or row.erasure.subject is None:
            return
        subject: Subject = row.erasure.subject
    target = Target(
        tenant_id=tenant_id,
        subject=subject.external_id,
        subject_id=subject.pk,
        pseudonym=subject.external_id,
        keys=row.erasure.keys,
        purposes=row.erasure.purposes,
        written_until=row.erasure.written_until,
    )
    with unit_of_work(
        tenant_id=tenant_id, actor=SYSTEM, subjects=[subject.external_id], exclusive=True
    ):
        deleted = preferences_erasure.delete_records(target)
        left = preferences_erasure.records_about(target).count()
        if deleted:
            blank_trail(target)  # keys may name, too
            ErasureHolder.objects.filter(pk=row.pk).update(
                erased=F("erased") + deleted,
                held=left,
                attempts=F("attempts") + 1,
                status=Status.HELD if left else Status.DONE,
                finished_at=None if left else now(),
            )


def _finish(tenant_id: int, reference: str) -> bool:
    """Bring an erasure's own status up to date; forget its names once all holders are settled."""
    with unit_of_work(tenant_id=tenant_id, actor=SYSTEM):
        erasure = Erasure.objects.select_for_update().get(tenant_id=tenant_id, reference=reference)
        if erasure.finished_at is not None:
            return True
        states = set(erasure.holders.values_list("status", flat=True))
        names_needed = erasure.holders.filter(
            Q(is_external=True) & ~Q(status__in=ErasureHolder.SETTLED)
        ).exists()
        if states <= ErasureHolder.SETTLED:
            status, finished = Erasure.Status.DONE, now()
        else:
            status = Erasure.Status.FAILED if Status.FAILED in states else Erasure.Status.PENDING
            finished = None
        changes = {"status": status, "finished_at": finished}
        if finished is not None or not names_needed:
            changes |= {"name": None, "login": None}
        if finished is not None:
            changes |= {"keys": None}
        if any(getattr(erasure, column) != value for column, value in changes.items()):
            Erasure.objects.filter(pk=erasure.pk).update(**changes)
        return finished is not None


def suppress_all() -> int:
    """Add to the list outside the database what was withdrawn in any tenant; return how many."""
    tenants = Tenant.objects.order_by("pk").values_list("pk", flat=True)
    return sum(suppress_withdrawals(tenant_id) for tenant_id in tenants)
