"""Objecting to a purpose that rests on somebody's interest (GDPR article 21). Entries of the ledger."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from consent.ledger import append_entry, check_evidence, method_of
from consent.models import Objection, Purpose
from consent.selectors import get_purpose
from tenants.callers import Caller
from tenants.exceptions import NotFound, ValidationError
from tenants.scopes import Scope
from tenants.times import format_time
from tenants.units import store, unit_of_work

#: The two grounds of article 6(1) against which article 21 gives a right.
OPEN_TO_OBJECTION = frozenset(
    {Purpose.LawfulBasis.LEGITIMATE_INTEREST, Purpose.LawfulBasis.PUBLIC_INTEREST}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """Where a person stands on one purpose that can be objected to."""

    purpose: str
    status: str
    since: datetime | None = None
    entry: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as the contract shows it."""
        return {
            "purpose": self.purpose,
            "status": self.status,
            "since": self.since and format_time(self.since),
            "entry": self.entry,
        }


def object_to(
    *, caller: Caller, subject: str, purpose: str, evidence: str | None = None,
    method: str | None = None,
) -> Stand:  # fmt: skip
    """
    Record that a person objects: the purpose is shut for them when this returns. Repeating adds nothing.

    Args:
        evidence: how an operator knows.
        method: how it was said, where not by the caller's own words (``gpc``).

    Raises:
        PermissionDenied: an agent, or a member for somebody else.
        NotFound: there is no such purpose.
        ValidationError: the purpose is none that can be objected to, or an operator gave no
            evidence.
    """
    own = method_of(caller, subject, deed="objects")
    check_evidence(own, evidence)
    return _say(caller, subject, purpose, Objection.OBJECTED, method or own, evidence)


def lift_objection(
    *, caller: Caller, subject: str, purpose: str, reason: str | None = None
) -> Stand:
    """
    Record that an objection no longer stands: taken back, or overridden with a reason (article 21(1)).

    Raises:
        PermissionDenied: an agent, or a member for somebody else.
        NotFound: there is no such purpose, or no objection stands.
        ValidationError: an operator gave no reason.
    """
    method = method_of(caller, subject, deed="lifts an objection")
    if method == "operator" and not (reason and reason.strip()):
        raise ValidationError("Say why: the person reads it.", pointer="/query/reason")
    return _say(caller, subject, purpose, Objection.LIFTED, method, reason)


def list_stands(
    *, tenant_id: int, subject: str, slugs: Sequence[str] | None = None
) -> Sequence[Stand]:
    """
    Return where a person stands on each purpose that can be objected to. Inside a unit of work.

    Purposes that cannot, or no longer, are listed where the person objected.
    """
    wanted = None if slugs is None else list(slugs)
    with store().cursor() as cursor:
        cursor.execute(
            """
            SELECT p.slug, CASE WHEN s.decision = ANY (%s::text[]) THEN s.decision ELSE 'none' END,
                   s.since, s.entry
            FROM consentful_purpose p
            LEFT JOIN consentful_consent_state s
              ON s.tenant_id = p.tenant_id AND s.purpose_id = p.id
             AND s.subject_id = consentful_subject_id(p.tenant_id, %s)
            WHERE p.tenant_id = %s
              AND (p.retired_at IS NULL AND p.lawful_basis = ANY (%s::text[])
                   OR p.lawful_basis <> 'consent' AND s.decision = ANY (%s::text[]))
              AND (%s::text[] IS NULL OR p.slug = ANY (%s::text[]))
            ORDER BY p.id
            """,
            [Objection.values, subject, tenant_id, sorted(OPEN_TO_OBJECTION), Objection.values,
             wanted, wanted],
        )  # fmt: skip
        return [
            Stand(purpose=slug, status=status)
            if status == "none"
            else Stand(purpose=slug, status=status, since=since, entry=entry)
            for slug, status, since, entry in cursor.fetchall()
        ]


def _say(
    caller: Caller, subject: str, slug: str, word: Objection, method: str, evidence: str | None
) -> Stand:
    subject = Scope.of_subject(subject, creating=True).name
    with unit_of_work(
        tenant_id=caller.tenant_id, actor=caller.actor, subjects=[subject], exclusive=True
    ):
        purpose = get_purpose(tenant_id=caller.tenant_id, slug=slug)
        if purpose.lawful_basis not in OPEN_TO_OBJECTION:
            raise ValidationError(
                "Consent is withdrawn, not objected to."
                if purpose.lawful_basis == Purpose.LawfulBasis.CONSENT
                else f"The basis of {slug} gives no right to object (GDPR article 21).",
                pointer="/purpose",
            )
        before = _stand(caller.tenant_id, subject, slug)
        is_objected = before.status == Objection.OBJECTED
        if word == Objection.LIFTED and not is_objected:
            raise NotFound("No objection to this purpose stands.")
        if word == Objection.OBJECTED and is_objected:
            return before
        append_entry(caller, subject, purpose, word, method=method, evidence=evidence)
        return _stand(caller.tenant_id, subject, slug)


def _stand(tenant_id: int, subject: str, slug: str) -> Stand:
    (found,) = list_stands(tenant_id=tenant_id, subject=subject, slugs=[slug]) or [
        Stand(purpose=slug, status="none")
    ]
    return found
