"""Decisions of persons, and the purposes they decide on."""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib.auth.models import Permission
from django.db.models import Max
from django.db.models.expressions import RawSQL

from audit.actors import Actor
from consent.models import (
    SERVE,
    ConsentEntry,
    Decision,
    Notice,
    Purpose,
    PurposeUserPermission,
)
from consent.selectors import State, get_purpose, list_states
from tenants.callers import Caller
from tenants.erasure import note_return
from tenants.exceptions import PermissionDenied, StaleRevision, ValidationError
from tenants.idempotency import IdempotencyKey
from tenants.metrics import count_conflict
from tenants.scopes import Scope
from tenants.units import store, unit_of_work


def decide(
    *,
    caller: Caller,
    subject: str,
    purpose: str,
    decision: Decision,
    version: int | None = None,
    locale: str | None = None,
    expires_at: datetime | None = None,
    evidence: str | None = None,
    entry: str | None = None,
    once: IdempotencyKey | None = None,
) -> tuple[State, bool]:
    """
    Record what a person decided, under the exclusive fence: true for everyone when it returns.

    Giving adds an entry each time (a renewal). Taking back adds one where something was given or
    nothing was said yet, and changes nothing where the answer was no already.

    Args:
        version: the notice version that was shown; required to give.
        entry: the newest entry that the caller saw; an older one is refused.
        evidence: how an operator knows; at most 2 KiB.

    Returns:
        The state afterwards, and whether this repeats an earlier answer.

    Raises:
        PermissionDenied: an agent, or a member for somebody else.
        NotFound: there is no such purpose.
        ValidationError: the purpose does not rest on consent or is retired, the version or locale
            is unknown, the deadline has passed, or an operator gave no evidence.
        StaleRevision: the version is older than required, or `entry` is not the newest.
    """
    subject = Scope.of_subject(subject, creating=True).name
    is_own = caller.stands_for(subject) and not caller.is_agent
    if not is_own and not caller.is_steward:
        raise PermissionDenied("Only the person, or an operator with evidence, decides on consent.")
    # What is malformed whatever stands there comes before 404, and all of it before 409.
    if not is_own and not (evidence and evidence.strip()):
        raise ValidationError("Say how you know of this decision.", pointer="/evidence")
    if decision == Decision.GIVEN and version is None:
        raise ValidationError(
            "Giving consent names the notice version that was shown.", pointer="/version"
        )
    with unit_of_work(
        tenant_id=caller.tenant_id, actor=caller.actor, subjects=[subject], exclusive=True
    ):
        if once is not None and (answer := once.find_answer()) is not None:
            return _state_of(answer), True
        found = get_purpose(tenant_id=caller.tenant_id, slug=purpose)
        if found.lawful_basis != Purpose.LawfulBasis.CONSENT:
            raise ValidationError(
                f"The purpose {purpose} does not rest on consent.", pointer="/purpose"
            )
        before = _state(caller.tenant_id, subject, purpose)
        notice = None
        if decision == Decision.GIVEN and version is not None:
            notice = _shown_notice(found, version, locale)
            _check_deadline(expires_at)
        if entry is not None and entry != before.entry:
            raise _stale("The person decided anew since you looked.", before.version, before)
        if notice is not None:
            _check_current(found, notice, before)
        elif before.status in ("refused", "withdrawn"):
            if once is not None:
                once.keep_answer(before.as_json(), subject=subject)
            return before, False
        else:
            decision = Decision.REFUSED if before.status == "none" else Decision.WITHDRAWN
            expires_at = None
        _append(
            caller, subject, found, decision, notice=notice, expires_at=expires_at,
            method="user_confirmed" if is_own else "operator", evidence=evidence,
        )  # fmt: skip
        if notice is not None and before.status == "none":
            note_return(tenant_id=caller.tenant_id, subject=subject)
        after = _state(caller.tenant_id, subject, purpose)
        if once is not None:
            once.keep_answer(after.as_json(), subject=subject)
        return after, False


def grant_purposes(*, user_id: Any, tenant_id: int, slugs: Sequence[str], actor: Actor) -> None:
    """
    Let an agent serve purposes, in addition to those it serves.

    Raises:
        NotFound: one of them does not exist; none is granted then.
    """
    with unit_of_work(tenant_id=tenant_id, actor=actor):
        permission = Permission.objects.get(
            codename=SERVE, content_type__app_label=Purpose._meta.app_label
        )
        for purpose in [get_purpose(tenant_id=tenant_id, slug=slug) for slug in slugs]:
            PurposeUserPermission.objects.get_or_create(
                permission=permission, user_id=user_id, content_object=purpose
            )


def revoke_purposes(
    *, user_id: Any, tenant_id: int, actor: Actor, slugs: Sequence[str] | None = None
) -> int:
    """Take purposes from an agent, all of them without `slugs`; return how many it lost."""
    with unit_of_work(tenant_id=tenant_id, actor=actor):
        grants = PurposeUserPermission.objects.filter(user_id=user_id, tenant_id=tenant_id)
        if slugs is not None:
            wanted = [get_purpose(tenant_id=tenant_id, slug=slug) for slug in slugs]
            grants = grants.filter(content_object__in=wanted)
        return grants.delete()[0]


def publish_notice(
    *, purpose: Purpose, version: int, locale: str, text: str, is_material: bool, actor: Actor
) -> Notice:
    """
    Publish one text for good; a material one outdates consent to older versions.

    Raises:
        ValidationError: that version and locale has another text already.
    """
    with unit_of_work(tenant_id=purpose.tenant_id, actor=actor):
        digest = hashlib.sha256(text.encode()).hexdigest()
        there = purpose.notices.filter(version=version, locale=locale).first()
        if there is not None:
            if there.digest != digest:
                raise ValidationError(
                    f"Notice {version} ({locale}) of {purpose.slug} was published with another text:"
                    " give the new text a new version.",
                    pointer="/notices",
                )
            return there
        notice = Notice.objects.create(
            tenant_id=purpose.tenant_id, purpose=purpose, version=version, locale=locale,
            text=text, digest=digest,
        )  # fmt: skip
        # The first notice is what consent needs at least; later ones only when they are material.
        if purpose.required_version == 0 or (is_material and version > purpose.required_version):
            purpose.required_version = version
            Purpose.objects.filter(pk=purpose.pk).update(required_version=version)
        return notice


def _shown_notice(purpose: Purpose, version: int, locale: str | None) -> Notice:
    if purpose.retired_at is not None:
        raise ValidationError(f"The purpose {purpose.slug} is retired.", pointer="/purpose")
    notices = list(purpose.notices.filter(version=version).order_by("pk"))
    if not notices:
        raise ValidationError(f"There is no notice {version} of this purpose.", pointer="/version")
    if locale is None:
        return notices[0]
    for notice in notices:
        if notice.locale == locale:
            return notice
    raise ValidationError(
        f"Notice {version} was not published in this language.", pointer="/locale"
    )


def _check_current(purpose: Purpose, notice: Notice, before: State) -> None:
    if notice.version < purpose.required_version:
        newest = purpose.notices.aggregate(newest=Max("version"))["newest"]
        raise _stale(f"The notice changed: show version {newest} and ask again.", newest, before)


def _stale(detail: str, version: int | None, before: State) -> StaleRevision:
    count_conflict(StaleRevision.code)
    return StaleRevision(detail, facts={"current": {"version": version, "entry": before.entry}})


def _check_deadline(expires_at: datetime | None) -> None:
    with store().cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(%s::timestamptz > consentful_now(), true)"
            " AND coalesce(%s::timestamptz < '9999-12-31 00:00:00+00', true)",
            [expires_at, expires_at],
        )
        (is_ahead,) = cursor.fetchone()
    if not is_ahead:
        raise ValidationError(
            "The deadline must lie in the future, before the year 9999.", pointer="/expires_at"
        )


def _append(
    caller: Caller, subject: str, purpose: Purpose, decision: Decision, *, notice: Notice | None,
    expires_at: datetime | None, method: str, evidence: str | None,
) -> None:  # fmt: skip
    with store().cursor() as cursor:
        cursor.execute("SELECT consentful_ensure_subject(%s, %s)", [caller.tenant_id, subject])
        (subject_id,) = cursor.fetchone()
    ConsentEntry.objects.create(
        tenant_id=caller.tenant_id, subject_id=subject_id, purpose=purpose, decision=decision,
        version=notice.version if notice else None, locale=notice.locale if notice else None,
        notice_digest=notice.digest if notice else None, expires_at=expires_at, actor=caller.username,
        method=method, evidence=evidence, at=RawSQL("consentful_now()", []),
    )  # fmt: skip


def _state(tenant_id: int, subject: str, purpose: str) -> State:
    states = list_states(tenant_id=tenant_id, subject=subject, slugs=[purpose])
    return states[0] if states else State(purpose=purpose, status="none")


def _state_of(answer: dict[str, Any]) -> State:
    from_text = {
        name: datetime.fromisoformat(answer[name]) if answer[name] else None
        for name in ("since", "expires_at")
    }
    return State(**{**answer, **from_text})
