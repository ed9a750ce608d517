"""Answers about erasures. Nothing here changes anything."""

from collections.abc import Sequence
from dataclasses import dataclass
from hmac import compare_digest
from typing import Any

from privacy.erasing import count_all
from privacy.holders import stores
from privacy.models import Erasure
from privacy.targets import find_target
from tenants.callers import Caller
from tenants.erasure import new_pseudonym
from tenants.exceptions import NotFound
from tenants.guardians import list_wards
from tenants.pseudonyms import digests_of
from tenants.times import format_time
from tenants.units import unit_of_work


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What one of our stores would lose, were this erased now."""

    holder: str
    holds: str
    count: int


def preview_erasure(
    *,
    caller: Caller,
    subject: str,
    keys: Sequence[str] | None = None,
    purposes: Sequence[str] | None = None,
) -> Sequence[Preview]:
    """Return what would go, store by store, and delete nothing. The caller may see this person's data."""
    with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
        is_own = caller.stands_for(subject) and not caller.is_guardian
        target = find_target(
            tenant_id=caller.tenant_id, subject=subject, pseudonym=new_pseudonym(), keys=keys,
            purposes=purposes, login=caller.user_id if is_own else None,
        )  # fmt: skip
        found = count_all(target)
    return [
        Preview(holder=store.name, holds=store.holds, count=found[store.name])
        for _, store in stores()
        if found.get(store.name)
    ]


def get_erasure(*, caller: Caller, reference: str) -> Erasure:
    """
    Return an erasure that the caller may see, with its holders: a person's own, a guardian's ward's, a
    steward's any.

    Raises:
        NotFound: there is none, or it is another person's.
    """
    if "\x00" in reference:  # which the database refuses as a parameter
        raise NotFound("There is no such erasure here.")
    with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
        try:
            erasure = load_erasure(caller.tenant_id, reference)
        except Erasure.DoesNotExist:
            raise NotFound("There is no such erasure here.") from None
    if not caller.is_steward and not _is_of(erasure, caller):
        raise NotFound("There is no such erasure here.")
    return erasure


def load_erasure(tenant_id: int, reference: str) -> Erasure:
    """Return an erasure with its holders in their order. Inside a unit of work."""
    found = Erasure.objects.filter(tenant_id=tenant_id, reference=reference)
    return found.select_related("subject").prefetch_related("holders").get()


def _is_of(erasure: Erasure, caller: Caller) -> bool:
    persons = {caller.subject, *list_wards(caller)} - {None}
    return any(
        compare_digest(erasure.digest, one)
        for person in persons
        for one in digests_of(caller.tenant_id, person or "")
    )


def pseudonym_of(erasure: Erasure) -> str | None:
    """Return what stands in the place of a forgotten person's name; None for single records."""
    subject = erasure.subject
    return subject.external_id if subject is not None and erasure.is_whole else None


def erasure_as_json(erasure: Erasure) -> dict[str, Any]:
    """Return an erasure as the contract shows it: numbers and times, and nobody's name."""
    return {
        "id": erasure.reference,
        "status": erasure.status,
        "pseudonym": pseudonym_of(erasure),
        "extent": {
            "everything": erasure.is_whole,
            # The keys themselves may say what was forgotten.
            "keys": None if erasure.key_digests is None else len(erasure.key_digests),
            "purposes": erasure.purposes,
            "written_until": erasure.written_until and format_time(erasure.written_until),
        },
        "method": erasure.method,
        "requested_at": format_time(erasure.requested_at),
        "finished_at": erasure.finished_at and format_time(erasure.finished_at),
        "holders": [
            {
                "holder": one.holder,
                "status": one.status,
                "erased": one.erased,
                "held": one.held,
                "kept": one.kept,
                "ground": one.ground,
                "attempts": one.attempts,
                "reason": one.reason,
                "next_attempt_at": one.due_at and format_time(one.due_at),
                "finished_at": one.finished_at and format_time(one.finished_at),
            }
            for one in sorted(erasure.holders.all(), key=lambda one: one.position)
        ],
    }
