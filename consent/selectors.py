"""Answers about purposes and consent. Nothing here changes anything."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from consent.models import ConsentEntry, Purpose
from tenants.callers import Caller
from tenants.exceptions import NotFound
from tenants.metrics import count_gate
from tenants.times import format_time
from tenants.units import store


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A confirmation that was asked for just now; the token only for whom may pass it on."""

    expires_at: datetime
    token: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What one person's newest decision on one purpose means now."""

    purpose: str
    status: str
    version: int | None = None
    since: datetime | None = None
    expires_at: datetime | None = None
    entry: str | None = None
    #: Only in the answer to whoever asked for it.
    pending: Pending | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the state as the contract shows it."""
        return {
            "purpose": self.purpose,
            "status": self.status,
            "version": self.version,
            "since": self.since and format_time(self.since),
            "expires_at": self.expires_at and format_time(self.expires_at),
            "entry": self.entry,
        }


def get_purpose(*, tenant_id: int, slug: str) -> Purpose:
    """
    Return a purpose by its slug, retired ones too. Inside a unit of work.

    Raises:
        NotFound: there is none.
    """
    # No slug holds NUL, which the database would refuse with an error of its own.
    is_possible = "\x00" not in slug
    purpose = is_possible and Purpose.objects.filter(tenant_id=tenant_id, slug=slug).first()
    if not purpose:
        raise NotFound("There is no such purpose in this tenant.")
    return purpose


def list_purposes(*, tenant_id: int) -> QuerySet[Purpose]:
    """Return the purposes in force with their notices, oldest first. Inside a unit of work."""
    return (
        Purpose.objects.filter(tenant_id=tenant_id, retired_at=None)
        .prefetch_related("notices")
        .order_by("pk")
    )


def list_states(
    *, tenant_id: int, subject: str, slugs: Sequence[str] | None = None
) -> Sequence[State]:
    """
    Return one state per purpose whose basis is consent, for a person who may be unknown.

    Retired purposes are listed where the person decided on them. Inside a unit of work.

    Args:
        slugs: only these purposes; None for all.
    """
    wanted = None if slugs is None else list(slugs)
    with store().cursor() as cursor:
        cursor.execute(
            """
            SELECT p.slug, consentful_consent_status(
                       s.decision, s.version, s.expires_at, p.required_version, consentful_now()),
                   s.version, s.since, s.expires_at, s.entry
            FROM consentful_purpose p
            LEFT JOIN consentful_consent_state s
              ON s.tenant_id = p.tenant_id AND s.purpose_id = p.id
             AND s.subject_id = consentful_subject_id(p.tenant_id, %s)
            WHERE p.tenant_id = %s AND p.lawful_basis = 'consent'
              AND (p.retired_at IS NULL OR s.id IS NOT NULL)
              AND (%s::text[] IS NULL OR p.slug = ANY (%s::text[]))
            ORDER BY p.id
            """,
            [subject, tenant_id, wanted, wanted],
        )
        return [
            State(
                purpose=slug,
                status=status,
                version=version,
                since=since,
                expires_at=until,
                entry=entry,
            )
            for slug, status, version, since, until, entry in cursor.fetchall()
        ]


def list_served_purposes(*, caller: Caller) -> Sequence[str]:
    """Return the slugs of the purposes that an agent was given. Inside a unit of work."""
    with store().cursor() as cursor:
        cursor.execute(
            "SELECT slug FROM consentful_purpose WHERE tenant_id = %s AND retired_at IS NULL"
            " AND consentful_serves(tenant_id, %s, id) ORDER BY id",
            [caller.tenant_id, caller.user_id],
        )
        return [slug for (slug,) in cursor.fetchall()]


def list_history(*, tenant_id: int, subject: str, purpose: Purpose) -> QuerySet[ConsentEntry]:
    """Return a person's decisions on one purpose, oldest first. Inside a unit of work."""
    return ConsentEntry.objects.filter(
        tenant_id=tenant_id,
        subject__external_id=subject,
        subject__tenant_id=tenant_id,
        purpose=purpose,
    ).order_by("sequence")


def find_refusal(
    *, caller: Caller, subject: str, purpose_id: int, key: str | None = None
) -> str | None:
    """
    Return the code with which the gate refuses, or None where it is open. Inside a unit.

    Args:
        key: of one record, whose own restriction is asked for too.
    """
    with store().cursor() as cursor:
        cursor.execute(
            "SELECT consentful_gate(%s, %s, %s, %s, consentful_now(), %s)",
            [caller.tenant_id, subject, purpose_id, caller.agent_id, key],
        )
        code: str | None = cursor.fetchone()[0]
    count_gate(code)
    return code
