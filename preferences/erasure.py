"""
What an erasure does to records: those about the person are deleted, set by set; where others'
records name it as their writer, the pseudonym stands afterwards.

Runs inside the unit of work of an erasure.
"""

from django.db.models import Q, QuerySet

from preferences import holds
from preferences.models import Preference, Reading
from tenants.personal import Target
from tenants.units import store


def records_about(target: Target) -> QuerySet[Preference]:
    """
    Return the records that the erasure is about, held ones too.

    By their scope and by the person they belong to: the one is checked against the other.
    """
    records = Preference.objects.filter(tenant_id=target.tenant_id).filter(
        Q(scope=target.scope) | Q(subject_id=target.subject_id, subject_id__isnull=False)
    )
    if target.keys is not None:
        records = records.filter(key__in=list(target.keys))
    if target.purposes is not None:
        records = records.filter(purpose__slug__in=list(target.purposes))
    if target.written_until is not None:
        records = records.filter(updated_at__lte=target.written_until)
    return records


def held(records: QuerySet[Preference]) -> QuerySet[Preference]:
    """Return the records under a legal hold, which no erasure touches before the hold ends."""
    return holds.held(records)


def delete_records(target: Target) -> int:
    """Delete the records but for held ones, expired or not, in one statement; return how many."""
    records = records_about(target)
    return records.exclude(pk__in=held(records).values("pk"))._raw_delete(using=records.db)


def hide_held_records(target: Target) -> int:
    """
    Take held records of a forgotten person away from its name; return how many.

    Nobody reads them any more, and the name is free: who comes back under it finds nothing there.
    """
    kept = held(records_about(target))
    kept.filter(actor__in=list(target.names)).update(actor=target.pseudonym)
    return kept.update(scope=f"user::{target.pseudonym}")


def records_written_by(target: Target) -> QuerySet[Preference]:
    """Return others' and shared records that name the person as who wrote them."""
    return Preference.objects.filter(
        tenant_id=target.tenant_id, actor__in=list(target.names)
    ).exclude(pk__in=records_about(target).values("pk"))


def rename_writer(target: Target) -> None:
    """Put the pseudonym in the place of the person's name, in the order in which batches lock."""
    with store().cursor() as cursor:
        cursor.execute(
            "UPDATE consentful_preference SET actor = %s WHERE tenant_id = %s AND id IN ("
            " SELECT id FROM consentful_preference WHERE tenant_id = %s AND actor = ANY (%s::text[])"
            " AND subject_id IS DISTINCT FROM %s ORDER BY scope, key FOR UPDATE)",
            [
                target.pseudonym,
                target.tenant_id,
                target.tenant_id,
                list(target.names),
                target.subject_id,
            ],
        )


def readings_of(target: Target) -> QuerySet[Reading]:
    """Return who else read these records, and what the whole person read of others."""
    readings = Q(preference__in=records_about(target))
    if target.is_whole:
        readings |= Q(subject_id=target.subject_id, subject_id__isnull=False)
        readings |= Q(reader__in=list(target.names))
    return Reading.objects.filter(readings, tenant_id=target.tenant_id)


def delete_readings(target: Target) -> None:
    """Delete the readings of these records; what the person read of others loses its name."""
    if target.is_whole:
        Reading.objects.filter(tenant_id=target.tenant_id, reader__in=list(target.names)).exclude(
            subject_id=target.subject_id or 0
        ).update(reader=target.pseudonym)
    readings_of(target).delete()
