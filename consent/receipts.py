"""
Consent receipts, named as in ISO/IEC TS 27560, signed so that anyone can check them later.

A receipt tells one decision and those before it, as the ledger holds them, so asking again gives the same
text. Of the standard's fields it holds those that can be known from here; a controller's address, the
recipients and the places of storage stand in the notice, whose text it quotes.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from audit.signing import sign
from consent.models import ConsentEntry, Notice, Purpose
from consent.selectors import get_purpose, list_history
from tenants.callers import Caller
from tenants.exceptions import NotFound
from tenants.models import Tenant
from tenants.times import format_time

#: The header's `typ`: a receipt cannot be passed off as anything else that is signed.
KIND = "consentful-consent-receipt"
SCHEMA = "ISO/IEC TS 27560:2023"

#: The states of an entry in the words of the Data Privacy Vocabulary, which maps the standard's.
STATES: Mapping[str, str] = {
    "given": "ConsentGiven",
    "refused": "ConsentRefused",
    "withdrawn": "ConsentWithdrawn",
    "objected": "Objected",
    "objection_lifted": "ObjectionLifted",
}


def issue_receipt(
    *, caller: Caller, subject: str, purpose: str, entry: str | None, withdraw_at: str
) -> tuple[dict[str, Any], str, str]:
    """
    Return a receipt, the thumbprint of the key that signed it, and it as compact JWS. Inside a unit.

    Args:
        entry: the decision to be receipted; None for the newest.
        withdraw_at: the address where consent is withdrawn.

    Raises:
        NotFound: there is no such purpose or decision.
        SigningKeyMissing, ProofRefused: nothing can be signed here.
    """
    found = get_purpose(tenant_id=caller.tenant_id, slug=purpose)
    entries = list(list_history(tenant_id=caller.tenant_id, subject=subject, purpose=found))
    names = [one.entry for one in entries]
    if not entries or (entry is not None and entry not in names):
        raise NotFound("There is no such decision.")
    told = entries if entry is None else entries[: names.index(entry) + 1]
    receipt = _receipt(caller.tenant_id, subject, found, told, withdraw_at)
    key, jws = sign(receipt, kind=KIND)
    return receipt, key, jws


def _receipt(
    tenant_id: int, subject: str, purpose: Purpose, told: list[ConsentEntry], withdraw_at: str
) -> dict[str, Any]:
    tenant = Tenant.objects.get(pk=tenant_id)
    last = told[-1]
    notice = _notice_of(purpose, told)
    return {
        "schema_version": SCHEMA,
        "receipt_id": last.entry,
        "record_id": told[0].entry,
        "pii_principal_id": subject,
        "pii_processing": {
            "privacy_notice": notice
            and {
                "version": notice.version,
                "text": notice.text,
                "digest": f"sha-256:{notice.digest}",
            },
            "language": notice and notice.locale,
            "purposes": [
                {
                    "purpose": purpose.title,
                    "purpose_id": purpose.slug,
                    "lawful_basis": purpose.lawful_basis,
                    "pii_controllers": [tenant.slug],
                    "recipient_third_parties": bool(purpose.is_sharing),
                    "withdrawal_method": withdraw_at,
                    "on_withdrawal": purpose.on_withdrawal,
                }
            ],
        },
        "party_identification": [
            {
                "party_id": tenant.slug,
                "party_name": tenant.name or tenant.slug,
                "party_role": "controller",
            }
        ],
        "event": [_event(one, subject) for one in told],
    }


def _event(entry: ConsentEntry, subject: str) -> dict[str, Any]:
    is_own = entry.method in ("user_confirmed", "double_opt_in", "gpc")
    return {
        "event_id": entry.entry,
        "event_time": format_time(entry.at),
        "validity_duration": _duration(entry.at, entry.expires_at),
        "valid_until": entry.expires_at and format_time(entry.expires_at),
        # Who expressed it: the person, or whoever did so for them.
        "entity_id": subject if is_own else entry.actor,
        "event_type": "explicit" if entry.method != "gpc" else "expressed",
        "event_state": STATES[entry.decision],
        "expression_method": entry.method,
        "notice_version": entry.version,
        "notice_digest": entry.notice_digest and f"sha-256:{entry.notice_digest}",
    }


def _notice_of(purpose: Purpose, told: list[ConsentEntry]) -> Notice | None:
    """Return the text behind the newest consent among `told`; a withdrawal is of that one."""
    for entry in reversed(told):
        if entry.version is not None:
            return purpose.notices.filter(version=entry.version, locale=entry.locale).first()
    return None


def _duration(start: datetime, end: datetime | None) -> str | None:
    """Return an ISO 8601 duration in seconds; None for a consent without an end."""
    return None if end is None else f"PT{int((end - start).total_seconds())}S"
