"""
Double opt-in: consent that is asked for, and given by whoever brings the token.

Between the two nothing is given, and the ledger holds nothing. The token is handed to the host, which
sends it however it reaches the person; it is never sent from here.
"""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db import transaction
from django.db.models.expressions import RawSQL

from audit.actors import Actor
from consent.conf import confirmation_sender
from consent.ledger import (
    append_entry,
    check_current,
    ensure_subject,
    method_of,
    shown_notice,
    state_of,
)
from consent.models import Confirmation, Decision, Notice, Purpose
from consent.selectors import Pending, State, get_purpose
from tenants.callers import Caller
from tenants.exceptions import NotFound, StoreUnavailable, ValidationError
from tenants.idempotency import IdempotencyKey
from tenants.observation import note_fault
from tenants.units import database, store, unit_of_work

#: How long a token may be brought.
LIFETIME = "72 hours"
MOST_EXPIRED = 1000
#: What is said where the sender failed.
NOT_SENT = "The message with the token could not be sent: nothing was asked for. Try again later."


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationRequest:
    """What the host's sender is given: whom to reach, and the token that nobody else sees."""

    tenant: str
    subject: str
    purpose: str
    version: int
    locale: str
    token: str
    expires_at: datetime


def request_confirmation(
    caller: Caller, subject: str, purpose: Purpose, notice: Notice, *, method: str,
    expires_at: datetime | None, evidence: str | None, once: IdempotencyKey | None = None,
) -> Pending:  # fmt: skip
    """
    Keep what was asked for, in place of an earlier request. Inside the unit of the decision.

    The token goes to the host's sender once the transaction has committed. Without one it is
    returned to an operator's credential, and to nobody else: a token in the hand of whoever asked
    would prove nothing. If the sender fails, what was asked for is dropped again, so that the answer,
    503, is true: whoever asked may ask again.

    Args:
        once: under which the answer is kept, and dropped with it.

    Raises:
        ValidationError: nobody would receive the token.
    """
    sender = confirmation_sender()
    if sender is None and method != "operator":
        raise ValidationError(
            "This purpose asks for a confirmation, and nothing here is set up to hand it over: an"
            " operator asks for it, or the host sets CONSENTFUL_CONFIRMATION_SENDER.",
            pointer="/purpose",
        )
    drop_confirmation(caller.tenant_id, subject, purpose)
    token = secrets.token_urlsafe(32)
    row = Confirmation.objects.create(
        tenant_id=caller.tenant_id, subject_id=ensure_subject(caller.tenant_id, subject),
        purpose=purpose, digest=_digest(token), version=notice.version, locale=notice.locale,
        consent_until=expires_at, actor=caller.username, method=method, evidence=evidence,
        at=RawSQL("consentful_now()", []),
        expires_at=RawSQL("consentful_now() + %s::interval", [LIFETIME]),
    )  # fmt: skip
    row.refresh_from_db()
    if sender is None:
        return Pending(expires_at=row.expires_at, token=token)
    asked = ConfirmationRequest(
        tenant=caller.tenant, subject=subject, purpose=purpose.slug, version=notice.version,
        locale=notice.locale, token=token, expires_at=row.expires_at,
    )  # fmt: skip
    transaction.on_commit(partial(_send, sender, asked, caller, row.pk, once), using=database())
    return Pending(expires_at=row.expires_at, token=None)


def _send(
    sender: Callable[[ConfirmationRequest], object], asked: ConfirmationRequest, caller: Caller,
    row_id: int, once: IdempotencyKey | None,
) -> None:  # fmt: skip
    """
    Hand the token over, after the commit; what nobody was told of is dropped again.

    Raises:
        StoreUnavailable: the sender failed.
    """
    try:
        sender(asked)
    except Exception as fault:
        note_fault(fault, request_id=caller.request_id)
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            Confirmation.objects.filter(tenant_id=caller.tenant_id, pk=row_id).delete()
            if once is not None:
                once.drop_answer()
        raise StoreUnavailable(NOT_SENT, headers={"Retry-After": "30"}) from fault


def drop_confirmation(tenant_id: int, subject: str, purpose: Purpose) -> None:
    """Make a pending token worthless: the person asked anew, or said no. Inside a unit of work."""
    Confirmation.objects.filter(
        tenant_id=tenant_id, subject__external_id=subject, subject__tenant_id=tenant_id,
        purpose=purpose,
    ).delete()  # fmt: skip


def list_pending(*, tenant_id: int, subject: str) -> dict[str, datetime]:
    """Return by purpose until when a token that a person was sent may be brought. Inside a unit."""
    rows = Confirmation.objects.filter(
        tenant_id=tenant_id, subject__external_id=subject, subject__tenant_id=tenant_id
    ).exclude(expires_at__lte=RawSQL("consentful_now()", []))
    return dict(rows.values_list("purpose__slug", "expires_at"))


def confirm(*, caller: Caller, subject: str, purpose: str, token: str) -> State:
    """
    Give the consent that was asked for, with its token; once.

    Whoever asks has the credential of the person, of a guardian or of an operator (the host that
    shows the page behind the link); the token is what proves that the person was reached.

    Raises:
        PermissionDenied: an agent, or a member for somebody else.
        NotFound: no such token is pending: it was used, replaced, has expired, or never was.
        StaleRevision: a material notice came since the person was asked.
    """
    method_of(caller, subject, deed="confirms it")
    with unit_of_work(
        tenant_id=caller.tenant_id, actor=caller.actor, subjects=[subject], exclusive=True
    ):
        found = get_purpose(tenant_id=caller.tenant_id, slug=purpose)
        row = (
            Confirmation.objects.filter(
                tenant_id=caller.tenant_id, subject__external_id=subject,
                subject__tenant_id=caller.tenant_id, purpose=found, digest=_digest(token),
            )
            .exclude(expires_at__lte=RawSQL("consentful_now()", []))
            .first()
        )  # fmt: skip
        if row is None:
            raise NotFound("No such confirmation is pending: ask for consent again.")
        if found.lawful_basis != Purpose.LawfulBasis.CONSENT:
            raise ValidationError(
                f"The purpose {purpose} does not rest on consent.", pointer="/purpose"
            )
        notice = shown_notice(found, row.version, row.locale)
        check_current(found, notice, state_of(caller.tenant_id, subject, purpose))
        row.delete()
        append_entry(
            caller, subject, found, Decision.GIVEN, method="double_opt_in", notice=notice,
            expires_at=row.consent_until, evidence=row.evidence,
        )  # fmt: skip
        return state_of(caller.tenant_id, subject, purpose)


def purge_confirmations(*, tenant_id: int, actor: Actor) -> int:
    """Delete requests whose token has expired; return how many. For housekeeping."""
    with unit_of_work(tenant_id=tenant_id, actor=actor), store().cursor() as cursor:
        cursor.execute(
            "WITH due AS MATERIALIZED ("
            " SELECT id FROM consentful_confirmation WHERE tenant_id = %s"
            " AND expires_at <= (SELECT consentful_now()) LIMIT %s FOR UPDATE SKIP LOCKED)"
            " DELETE FROM consentful_confirmation c USING due WHERE c.tenant_id = %s AND c.id = due.id",
            [tenant_id, MOST_EXPIRED, tenant_id],
        )
        return int(cursor.rowcount)


def _digest(token: str) -> str:
    # 32 random bytes need no salt.
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
