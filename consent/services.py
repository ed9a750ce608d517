"""Decisions of persons, and the purposes they decide on."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.contrib.auth.models import Permission
from django.db.models.expressions import RawSQL

from audit.actors import Actor
from consent.confirmations import drop_confirmation, request_confirmation
from consent.ledger import (
    append_entry,
    check_current,
    check_deadline,
    check_evidence,
    method_of,
    shown_notice,
    stale,
    state_of,
)
from consent.models import SERVE, Decision, Notice, Purpose, PurposeUserPermission
from consent.selectors import Pending, State, get_purpose
from tenants.callers import Caller
from tenants.erasure import note_return
from tenants.exceptions import ValidationError
from tenants.idempotency import IdempotencyKey
from tenants.scopes import Scope
from tenants.times import format_time
from tenants.units import unit_of_work


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
    is_import: bool = False,
) -> tuple[State, bool]:
    """
    Record what a person decided, under the exclusive fence: true for everyone when it returns.

    Giving adds an entry each time (a renewal). Taking back adds one where something was given or
    nothing was said yet, and changes nothing where the answer was no already. Where the purpose asks
    for a confirmation, giving only asks for it (`confirmations`): the state says so in `pending`.

    Args:
        version: the notice version that was shown; required to give.
        entry: the newest entry that the caller saw; an older one is refused.
        is_import: it repeats what an export told, which the entry's method then says.
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
    # Also refuses who may not; an import is a steward's.
    method = method_of(caller, subject)
    if is_import:
        method = "import"
    # What is malformed whatever stands there comes before 404, and all of it before 409.
    check_evidence(method, evidence)
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
        before = state_of(caller.tenant_id, subject, purpose)
        notice = None
        if decision == Decision.GIVEN and version is not None:
            notice = shown_notice(found, version, locale)
            check_deadline(expires_at)
        if entry is not None and entry != before.entry:
            raise stale("The person decided anew since you looked.", before.version, before)
        if notice is not None:
            check_current(found, notice, before)
        else:
            drop_confirmation(caller.tenant_id, subject, found)
            decision = Decision.REFUSED if before.status == "none" else Decision.WITHDRAWN
            expires_at = None
        if notice is not None and found.is_confirmed:
            pending = request_confirmation(
                caller, subject, found, notice, method=method, expires_at=expires_at,
                evidence=evidence, once=once,
            )  # fmt: skip
            after = replace(before, pending=pending)
        elif notice is None and before.status in ("refused", "withdrawn"):
            after = before
        else:
            append_entry(
                caller, subject, found, decision, notice=notice, expires_at=expires_at,
                method=method, evidence=evidence,
            )  # fmt: skip
            if notice is not None and before.status == "none":
                note_return(tenant_id=caller.tenant_id, subject=subject)
            after = state_of(caller.tenant_id, subject, purpose)
        if once is not None:
            once.keep_answer(_answer_of(after), subject=subject)
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
            text=text, digest=digest, created_at=RawSQL("consentful_now()", []),
        )  # fmt: skip
        # The first notice is what consent needs at least; later ones only when they are material.
        if purpose.required_version == 0 or (is_material and version > purpose.required_version):
            purpose.required_version = version
            Purpose.objects.filter(pk=purpose.pk).update(required_version=version)
        return notice


def _answer_of(state: State) -> dict[str, Any]:
    """Return what an idempotency record keeps: of a pending token, when it ends and not the token."""
    if state.pending is None:
        return state.as_json()
    return {**state.as_json(), "pending": format_time(state.pending.expires_at)}


def _state_of(answer: dict[str, Any]) -> State:
    from_text = {
        name: datetime.fromisoformat(answer[name]) if answer[name] else None
        for name in ("since", "expires_at")
    }
    until = answer.get("pending")
    pending = Pending(expires_at=datetime.fromisoformat(until), token=None) if until else None
    return State(**{**answer, **from_text, "pending": pending})
