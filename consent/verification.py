"""Proof that the gate is asked of the ledger: the kept state is each last entry, and guarded."""

from collections.abc import Iterator

from django.db import connections

from audit.findings import Finding
from audit.guards import (
    AFTER_CHANGE,
    AFTER_INSERT,
    BEFORE_INSERT,
    BEFORE_REWRITE,
    BEFORE_TRUNCATE,
    BEFORE_WRITE,
    check_triggers,
)
from audit.rows import BATCH
from consent.models import ConsentEntry, ConsentState, Notice, Restriction

#: What keeps the ledger in order and the state after it.
_LEDGER = {
    "consentful_number_entry": ("consentful_number_entry", BEFORE_INSERT),
    "consentful_keep_state": ("consentful_keep_state", AFTER_INSERT),
    "consentful_note_withdrawal": ("consentful_note_withdrawal", AFTER_INSERT),
    "consentful_append_only": ("consentful_keep_entry", BEFORE_REWRITE),
}
_STATE = {"consentful_no_truncate": ("consentful_refuse", BEFORE_TRUNCATE)}
#: What brings a restriction to the rows that the gate reads.
_RESTRICTION = {
    "consentful_date_restriction": ("consentful_date_restriction", BEFORE_WRITE),
    "consentful_keep_restricted": ("consentful_keep_restricted", AFTER_CHANGE),
}
_NOTICE = {"consentful_immutable": ("consentful_refuse", BEFORE_REWRITE)}


def check_consent(tenant_id: int, using: str) -> Iterator[Finding]:
    """
    Compare the current state of each person and purpose with the last entry of the ledger.

    The state is no captured table, and it is what the gate reads: whoever changes it opens a
    purpose without a decision. Registered in `audit.verification.extra_checks`.
    """
    yield from check_triggers(ConsentEntry._meta.db_table, _LEDGER, using=using)
    yield from check_triggers(ConsentState._meta.db_table, _STATE, using=using)
    yield from check_triggers(Notice._meta.db_table, _NOTICE, using=using)
    yield from check_triggers(Restriction._meta.db_table, _RESTRICTION, using=using)
    yield from _check_restrictions(tenant_id, using)
    last = -(2**63)
    while True:
        with connections[using].cursor() as cursor:
            cursor.execute(_SUBJECTS, {"tenant": tenant_id, "last": last})
            until, count = cursor.fetchone()
            if not count:
                return
            cursor.execute(_DIFFERENCES, {"tenant": tenant_id, "last": last, "until": until})
            differences = cursor.fetchall()
        for subject_id, purpose_id, record_id in differences:
            yield Finding(
                code="consent_state_differs",
                tenant_id=tenant_id,
                record="consent",
                record_id=record_id,
                sentence=f"The consent state of subject {subject_id} for purpose {purpose_id} is"
                " not the last entry of the ledger.",
            )
        last = until


def _check_restrictions(tenant_id: int, using: str) -> Iterator[Finding]:
    """Compare what the gate reads about restrictions with those that are in force."""
    with connections[using].cursor() as cursor:
        cursor.execute(_RESTRICTED, {"tenant": tenant_id})
        for (subject_id,) in cursor.fetchall():
            yield Finding(
                code="restriction_differs",
                tenant_id=tenant_id,
                record="subject",
                record_id=subject_id,
                sentence=f"What the gate reads about the restrictions of subject {subject_id} is not"
                " what is in force.",
            )


#: Whom the next batch is about.
_SUBJECTS = f"""
    SELECT max(subject_id), count(*) FROM (
        SELECT subject_id FROM consentful_consent_entry
        WHERE tenant_id = %(tenant)s AND subject_id > %(last)s
        UNION SELECT subject_id FROM consentful_consent_state
        WHERE tenant_id = %(tenant)s AND subject_id > %(last)s
        ORDER BY subject_id LIMIT {BATCH}
    ) AS batch
"""  # noqa: S608  a constant

#: Ledger and state in one statement: a decision moves both at once.
_DIFFERENCES = """
    SELECT subject_id, purpose_id, entry.id
    FROM (
        SELECT DISTINCT ON (subject_id, purpose_id) * FROM consentful_consent_entry
        WHERE tenant_id = %(tenant)s AND subject_id > %(last)s AND subject_id <= %(until)s
        ORDER BY subject_id, purpose_id, sequence DESC
    ) AS entry
    FULL JOIN (
        SELECT * FROM consentful_consent_state
        WHERE tenant_id = %(tenant)s AND subject_id > %(last)s AND subject_id <= %(until)s
    ) AS state USING (subject_id, purpose_id)
    WHERE (state.decision, state.version, state.expires_at, state.since, state.sequence, state.entry)
        IS DISTINCT FROM
        (entry.decision, entry.version, entry.expires_at, entry.at, entry.sequence, entry.entry)
    ORDER BY subject_id, purpose_id
"""

#: Few persons restrict anything, and each is looked at once.
_RESTRICTED = """
    SELECT DISTINCT s.id
    FROM consentful_subject s
    LEFT JOIN (
        SELECT subject_id, CASE WHEN bool_or(key IS NULL) THEN 'all' ELSE 'keys' END AS restricted
        FROM consentful_restriction WHERE tenant_id = %(tenant)s AND lifted_by IS NULL
        GROUP BY subject_id
    ) AS due ON due.subject_id = s.id
    LEFT JOIN consentful_consent_state state
        ON state.tenant_id = s.tenant_id AND state.subject_id = s.id
    WHERE s.tenant_id = %(tenant)s
      AND (s.restricted IS DISTINCT FROM due.restricted
           OR state.id IS NOT NULL AND state.restricted IS DISTINCT FROM due.restricted)
    ORDER BY s.id
"""
