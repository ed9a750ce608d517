"""
What a withdrawal sets going where its purpose says so (`on_withdrawal: "erase"`): an erasure of that
purpose, with its holders, retries and receipt.

The ledger notes whose what is to go, and since when; housekeeping has it done here, person by person.
"""

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db import DatabaseError
from django.db.models import F, Max, Min
from django.db.models.expressions import RawSQL
from psycopg.errors import LockNotAvailable

from audit.actors import SYSTEM
from consent.confirmations import purge_confirmations
from consent.models import Withdrawal
from preferences.readings import flush_readings
from privacy.erasing import VerificationFailed, erase_ours, record
from privacy.services import schedule
from privacy.targets import find_target
from tenants.erasure import new_pseudonym
from tenants.exceptions import StaleRevision
from tenants.models import Tenant
from tenants.observation import JOBS, describe, note
from tenants.units import unit_of_work

#: How an erasure says that a withdrawal asked for it.
METHOD = "withdrawal"
#: Persons and purposes that are fetched at once.
PIECE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What of one person is to go."""

    first: int
    subject_id: int
    subject: str
    purpose_id: int
    purpose: str


def purge_all_withdrawn(*, most: int | None = None) -> int:
    """
    Have erased what was withdrawn in every tenant, and drop confirmations that nobody brought in time.

    Args:
        most: erasures per tenant; None for as many as it takes.

    Returns:
        How many erasures that were.
    """
    total = 0
    for tenant_id in Tenant.objects.values_list("pk", flat=True).order_by("pk"):
        purge_confirmations(tenant_id=tenant_id, actor=SYSTEM)
        total += purge_withdrawn(tenant_id=tenant_id, most=most)
    return total


def purge_withdrawn(*, tenant_id: int, most: int | None = None) -> int:
    """
    Erase for every withdrawal of one tenant what was written before it; return how many erasures.

    What was written under consent that came back since stays. A person about whom somebody works just
    now waits for another round.
    """
    done, last = 0, 0
    while most is None or done < most:
        piece = _list_due(tenant_id, after=last)
        for due in piece if most is None else piece[: most - done]:
            last = due.first
            done += _try_to_erase(tenant_id, due)
        if len(piece) < PIECE:
            break
    return done


def _list_due(tenant_id: int, *, after: int) -> Sequence[Due]:
    with unit_of_work(tenant_id=tenant_id, actor=SYSTEM):
        rows = (
            Withdrawal.objects.filter(tenant_id=tenant_id, purged_at=None)
            .values("subject_id", "purpose_id")
            .annotate(first=Min("pk"), name=F("subject__external_id"), slug=F("purpose__slug"))
            .filter(first__gt=after)
            .order_by("first")[:PIECE]
        )
        return [
            Due(
                first=row["first"], subject_id=row["subject_id"], subject=row["name"],
                purpose_id=row["purpose_id"], purpose=row["slug"],
            )
            for row in rows
        ]  # fmt: skip


def _try_to_erase(tenant_id: int, due: Due) -> bool:
    """Erase what is due of one person, unless it has to wait; what cannot be keeps nobody waiting."""
    try:
        return _erase(tenant_id, due)
    except (StaleRevision, VerificationFailed) as fault:
        note(JOBS, logging.WARNING, "job_refused", job="withdrawal", **describe(fault))
    except DatabaseError as fault:
        if not isinstance(fault.__cause__, LockNotAvailable):
            raise
        note(JOBS, logging.WARNING, "job_refused", job="withdrawal", **describe(fault))
    return False


def _erase(tenant_id: int, due: Due) -> bool:
    flush_readings()
    reference = secrets.token_hex(16)
    with unit_of_work(tenant_id=tenant_id, actor=SYSTEM, subjects=[due.subject], exclusive=True):
        rows = Withdrawal.objects.filter(
            tenant_id=tenant_id,
            subject_id=due.subject_id,
            purpose_id=due.purpose_id,
            purged_at=None,
        )
        last = rows.aggregate(last=Max("at"))["last"]
        if last is None:
            return False  # a twin was faster
        target = find_target(
            tenant_id=tenant_id, subject=due.subject, pseudonym=new_pseudonym(),
            purposes=[due.purpose],
        )  # fmt: skip
        target = replace(target, written_until=last)
        results = erase_ours(target, actor=SYSTEM.label, method=METHOD)
        record(target, results, reference=reference, method=METHOD)
        rows.update(purged_at=RawSQL("consentful_now()", []))
        schedule(tenant_id, reference)
    return True
