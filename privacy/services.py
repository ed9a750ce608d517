"""A person's rights that change something: being forgotten. Each is one unit of work."""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from django.db import transaction
from django.db.models import Q
from django.db.models.expressions import RawSQL

from audit.actors import Actor
from consent.ledger import method_of
from preferences.readings import flush_readings
from privacy.conf import erasure_jobs
from privacy.erasing import SUPPRESSION, erase_ours, record
from privacy.jobs import run_erasure
from privacy.models import Erasure, ErasureHolder
from privacy.selectors import load_erasure
from privacy.targets import find_target
from tenants.callers import Caller
from tenants.erasure import new_pseudonym
from tenants.exceptions import NotFound, PermissionDenied, StaleRevision, ValidationError
from tenants.idempotency import IdempotencyKey
from tenants.models import SLUG
from tenants.pseudonyms import digests_of
from tenants.scopes import Scope, check_key
from tenants.units import database, unit_of_work

#: Keys or purposes that one request may name.
MOST_NAMES = 200


def request_erasure(
    *,
    caller: Caller,
    subject: str,
    keys: Sequence[str] | None = None,
    purposes: Sequence[str] | None = None,
    once: IdempotencyKey | None = None,
) -> tuple[Erasure, bool]:
    """
    Forget a person, or their records of some keys or purposes: true for everyone when it returns.

    Of a whole person every consent is withdrawn first. What is ours is erased and verified in one
    transaction, under the exclusive fence; a host's holders are asked by jobs afterwards.

    Args:
        keys, purposes: only records of these; with both, of these keys for these purposes.
        caller: an operator's carries the reason.

    Returns:
        The erasure, and whether it was there before: the same request, not finished yet.

    Raises:
        PermissionDenied: an agent, an auditor, or a member for somebody else.
        ValidationError: an operator gave no reason, or an empty or overlong list.
        InvalidScope, InvalidKey: a name is malformed.
    """
    subject = Scope.of_subject(subject).name
    check_may_erase(caller, subject)
    if caller.discloses(subject) and caller.reason is None:
        raise ValidationError("Say why another person is forgotten.", pointer="/query/reason")
    keys = _distinct(keys, "/keys")
    purposes = _distinct(purposes, "/purposes")
    keys = None if keys is None else [check_key(key) for key in keys]
    if any(not SLUG.regex.match(slug) for slug in purposes or ()):  # type: ignore[union-attr]
        raise ValidationError(f"A slug has {SLUG.message}", pointer="/purposes")
    flush_readings()  # what this process noted and has not written could name the person afterwards
    try:
        return _request(caller, subject, keys, purposes, once)
    except StaleRevision:
        # A twin forgot the person while this one waited for the fence.
        return _request(caller, subject, keys, purposes, once)


def check_may_erase(caller: Caller, subject: str) -> None:
    """
    Refuse who may not have this person forgotten.

    Raises:
        PermissionDenied: an agent, an auditor, or a member for somebody else.
    """
    if caller.is_agent or not (caller.stands_for(subject) or caller.is_steward):
        raise PermissionDenied(
            "Only the person, or an operator with a reason, has what is held erased.",
            about={"subject": subject},
        )


def _request(
    caller: Caller, subject: str, keys: Sequence[str] | None, purposes: Sequence[str] | None,
    once: IdempotencyKey | None,
) -> tuple[Erasure, bool]:  # fmt: skip
    # A guardian's login is not the person's: nothing of the guardian's own goes.
    is_own = caller.stands_for(subject) and not caller.is_guardian
    pseudonym = new_pseudonym()
    is_whole = keys is None and purposes is None
    actor = _actor(caller, subject, pseudonym if is_whole else None)
    reference = secrets.token_hex(16)
    with unit_of_work(tenant_id=caller.tenant_id, actor=actor, subjects=[subject], exclusive=True):
        if once is not None and (answer := once.find_answer()) is not None:
            return load_erasure(caller.tenant_id, answer["id"]), True
        open_one = _find_open(caller.tenant_id, subject, keys, purposes)
        if open_one is not None:
            return open_one, True
        target = find_target(
            tenant_id=caller.tenant_id, subject=subject, pseudonym=pseudonym, keys=keys,
            purposes=purposes, login=caller.user_id if is_own else None,
        )  # fmt: skip
        method = method_of(caller, subject)
        results = erase_ours(target, actor=actor.label, method=method)
        record(target, results, reference=reference, method=method)
        if once is not None:
            once.keep_answer({"id": reference})
        schedule(caller.tenant_id, reference)
    with unit_of_work(tenant_id=caller.tenant_id, actor=actor):
        return load_erasure(caller.tenant_id, reference), False


def schedule(tenant_id: int, reference: str) -> None:
    """
    See to what follows the commit: the list of what must not return at once, the rest by jobs.

    A process that dies in between leaves rows that say what is yet to be done.
    """
    transaction.on_commit(
        partial(run_erasure, reference, tenant_id=tenant_id, only=[SUPPRESSION]),
        using=database(), robust=True,
    )  # fmt: skip
    give_to_queue = erasure_jobs()
    if give_to_queue is not None:
        give_to_queue(reference)


def retry_erasure(*, caller: Caller, reference: str) -> Erasure:
    """
    Have the holders that failed asked again now, and not after their pause.

    Whoever asks them, the host's queue or housekeeping, does so right after. One that is being asked
    for the first time is left alone.

    Raises:
        PermissionDenied: no operator asks.
        NotFound: there is no such erasure that is unfinished.
    """
    if not caller.is_steward:
        raise PermissionDenied("Only an operator has holders asked again.")
    with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
        found = Erasure.objects.filter(
            tenant_id=caller.tenant_id, reference=reference, finished_at=None
        ).first()
        if found is None:
            raise NotFound("There is no such erasure that is unfinished.")
        ErasureHolder.objects.filter(
            tenant_id=caller.tenant_id, erasure=found, is_external=True,
            status=ErasureHolder.Status.FAILED,
        ).update(due_at=RawSQL("consentful_now()", []))  # fmt: skip
        schedule(caller.tenant_id, reference)
        return found


def _find_open(
    tenant_id: int, subject: str, keys: Sequence[str] | None, purposes: Sequence[str] | None
) -> Erasure | None:
    """Return the same request, where it was made before and is not finished."""
    same = Q(keys=keys) if keys is not None else Q(keys=None)
    same &= Q(purposes=purposes) if purposes is not None else Q(purposes=None)
    return (
        Erasure.objects.filter(
            same, tenant_id=tenant_id, digest__in=digests_of(tenant_id, subject),
            is_whole=keys is None and purposes is None, finished_at=None, written_until=None,
        )
        .exclude(name=None)
        .prefetch_related("holders")
        .first()
    )  # fmt: skip


def _actor(caller: Caller, subject: str, pseudonym: str | None) -> Actor:
    """
    Return who the trail says did it: an operator or a guardian by name, who forgets itself by none.

    What is written after the trail was blanked must not bring the person's name back.

    Args:
        pseudonym: what takes the name's place, where everything about the person goes.
    """
    if caller.is_guardian:
        return caller.actor if pseudonym is None else replace(caller.actor, on_behalf_of=pseudonym)
    if pseudonym is not None and caller.stands_for(subject):
        return Actor(label=pseudonym)
    reason = caller.reason and caller.reason.replace(subject, "[the person]")
    return replace(caller.actor, reason=reason)


def _distinct(names: Sequence[str] | None, pointer: str) -> Sequence[str] | None:
    if names is None:
        return None
    if not 1 <= len(names) <= MOST_NAMES:
        raise ValidationError(f"Name 1 to {MOST_NAMES} of them, or leave it out.", pointer=pointer)
    return sorted(set(names))
