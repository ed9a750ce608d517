"""
Whether a receipt of an erasure is genuine and the database still is as it says.

Looks at the rows themselves, by the pseudonym and by digests: nobody's name is needed for it.
"""

from collections.abc import Iterator
from typing import Any

from audit.actors import SYSTEM
from audit.models import Event
from audit.signing import Keys
from consent.models import ConsentEntry, ConsentState, Decision
from preferences.erasure import held
from preferences.models import Preference
from privacy.erasing import key_digest
from privacy.models import Erasure
from privacy.receipts import read_receipt, statement
from privacy.selectors import load_erasure
from tenants.models import IdempotencyRecord, Subject, Tenant, Tombstone
from tenants.units import unit_of_work


def verify_receipt(text: str, keys: Keys) -> list[str]:
    """
    Return what does not fit, one sentence each.

    Raises:
        ProofRefused: the receipt is none, or no key of `keys` signed it.
    """
    said = read_receipt(text, keys)
    tenant = Tenant.objects.filter(pk=said["tenant_id"]).first()
    if tenant is None:
        return [f"There is no tenant {said['tenant_id']} here."]
    with unit_of_work(tenant_id=tenant.pk, actor=SYSTEM):
        try:
            erasure = load_erasure(tenant.pk, said["erasure"])
        except Erasure.DoesNotExist:
            return [
                "The database does not know this erasure: it is another one, or an older copy"
                " (run reapply_erasures)."
            ]
        return [*_compare(erasure, said, tenant.slug), *_look(erasure)]


def _compare(erasure: Erasure, said: dict[str, Any], slug: str) -> Iterator[str]:
    known = statement(erasure, tenant=slug)
    if erasure.method == "restore" and said["method"] != "restore":
        # Done again after a restore: with another pseudonym, at another time, on other rows.
        known = {name: known[name] for name in ("erasure", "tenant", "tenant_id", "extent")}
    for name, value in known.items():
        if said.get(name) != value:
            yield f"The receipt says something else about `{name}` than the database."


def _look(erasure: Erasure) -> Iterator[str]:
    """Find what should be gone and is there."""
    if erasure.subject_id is None:
        return
    about = {"tenant_id": erasure.tenant_id, "subject_id": erasure.subject_id}
    if not erasure.is_whole:
        yield from _look_for_records(erasure)
        return
    left = {
        "records": Preference.objects.filter(**about),
        "consents in force": ConsentState.objects.filter(**about, decision=Decision.GIVEN),
        "entries with evidence": ConsentEntry.objects.filter(**about, evidence__isnull=False),
        "kept answers": IdempotencyRecord.objects.filter(**about),
        "events that name the person": Event.objects.filter(**about, subject__isnull=False).exclude(
            subject__in=Subject.objects.filter(pk=erasure.subject_id).values("external_id")
        ),
        "rows of the person by name": Subject.objects.filter(pk=erasure.subject_id, erased_at=None),
    }
    for what, rows in left.items():
        if count := rows.count():
            yield f"There are {what}: {count}."
    if not Tombstone.objects.filter(tenant_id=erasure.tenant_id, digest=erasure.digest).exists():
        yield "The name that was forgotten has no tombstone."


def _look_for_records(erasure: Erasure) -> Iterator[str]:
    # What was written later is the person's new decision.
    records = Preference.objects.filter(
        tenant_id=erasure.tenant_id, subject_id=erasure.subject_id or 0,
        created_at__lt=erasure.requested_at,
    )  # fmt: skip
    if erasure.purposes is not None:
        records = records.filter(purpose__slug__in=erasure.purposes)
    if erasure.written_until is not None:
        records = records.filter(updated_at__lte=erasure.written_until)
    digests = erasure.key_digests
    found = [
        record
        for record in records.exclude(pk__in=held(records).values("pk")).only("tenant_id", "key")
        if digests is None or key_digest(erasure.tenant_id, record.key) in digests
    ]
    if found:
        yield f"There are records: {len(found)}."
