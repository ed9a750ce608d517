"""Writing one entry of the ledger: what every kind of decision shares. Inside a unit of work."""

from datetime import datetime

from django.db.models import Max
from django.db.models.expressions import RawSQL

from consent.models import ConsentEntry, Decision, Notice, Objection, Purpose
from consent.selectors import State, list_states
from tenants.callers import Caller
from tenants.exceptions import PermissionDenied, StaleRevision, ValidationError
from tenants.metrics import count_conflict
from tenants.units import store


def method_of(caller: Caller, subject: str, *, deed: str = "decides on consent") -> str:
    """
    Return how the trail and the ledger say that `caller` speaks for `subject`.

    Raises:
        PermissionDenied: an agent, or a member for somebody else.
    """
    if caller.stands_for(subject) and not caller.is_agent:
        return "guardian" if caller.is_guardian else "user_confirmed"
    if caller.is_steward:
        return "operator"
    raise PermissionDenied(
        f"Only the person, or an operator with evidence, {deed}.", about={"subject": subject}
    )


def check_evidence(method: str, evidence: str | None) -> None:
    """
    Refuse what an operator records without saying how it is known.

    Raises:
        ValidationError: there is no evidence.
    """
    if method == "operator" and not (evidence and evidence.strip()):
        raise ValidationError("Say how you know of this decision.", pointer="/evidence")


def ensure_subject(tenant_id: int, subject: str) -> int:
    """Return the number of a person's row, made where it is missing."""
    with store().cursor() as cursor:
        cursor.execute("SELECT consentful_ensure_subject(%s, %s)", [tenant_id, subject])
        return int(cursor.fetchone()[0])


def append_entry(
    caller: Caller, subject: str, purpose: Purpose, decision: Decision | Objection, *, method: str,
    notice: Notice | None = None, expires_at: datetime | None = None, evidence: str | None = None,
) -> ConsentEntry:  # fmt: skip
    """Add one decision; triggers number it and bring the current state after it."""
    if evidence is None and caller.is_guardian:
        evidence = caller.mandate
    return ConsentEntry.objects.create(
        tenant_id=caller.tenant_id, subject_id=ensure_subject(caller.tenant_id, subject),
        purpose=purpose, decision=decision,
        version=notice.version if notice else None, locale=notice.locale if notice else None,
        notice_digest=notice.digest if notice else None, expires_at=expires_at, actor=caller.username,
        method=method, evidence=evidence, at=RawSQL("consentful_now()", []),
    )  # fmt: skip


def state_of(tenant_id: int, subject: str, purpose: str) -> State:
    """Return where a person stands on one purpose that rests on consent."""
    states = list_states(tenant_id=tenant_id, subject=subject, slugs=[purpose])
    return states[0] if states else State(purpose=purpose, status="none")


def shown_notice(purpose: Purpose, version: int, locale: str | None) -> Notice:
    """
    Return the notice that a person was shown.

    Raises:
        ValidationError: the purpose is retired, or there is no such notice.
    """
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


def check_current(purpose: Purpose, notice: Notice, before: State) -> None:
    """
    Refuse consent to a notice that a material one has outdated.

    Raises:
        StaleRevision: names the newest version.
    """
    if notice.version < purpose.required_version:
        newest = purpose.notices.aggregate(newest=Max("version"))["newest"]
        raise stale(f"The notice changed: show version {newest} and ask again.", newest, before)


def stale(detail: str, version: int | None, before: State) -> StaleRevision:
    """Return the conflict that tells a caller where the person stands."""
    count_conflict(StaleRevision.code)
    return StaleRevision(detail, facts={"current": {"version": version, "entry": before.entry}})


def check_deadline(expires_at: datetime | None, *, pointer: str = "/expires_at") -> None:
    """
    Refuse a deadline that has passed or lies too far away.

    Raises:
        ValidationError: it does.
    """
    with store().cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(%s::timestamptz > consentful_now(), true)"
            " AND coalesce(%s::timestamptz < '9999-12-31 00:00:00+00', true)",
            [expires_at, expires_at],
        )
        (is_ahead,) = cursor.fetchone()
    if not is_ahead:
        raise ValidationError(
            "The deadline must lie in the future, before the year 9999.", pointer=pointer
        )
