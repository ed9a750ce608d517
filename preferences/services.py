"""Changes of preferences: one function each, one unit of work each. Who may ask is settled before."""

from collections.abc import Sequence
from typing import Any

from django.db.models.expressions import RawSQL

from preferences.attempts import (
    NO_DEADLINE,
    RETIRING,
    Mode,
    Outcome,
    Write,
    fences,
    run_delete,
    run_put,
)
from preferences.models import Preference
from preferences.records import Record
from preferences.values import (
    Deadline,
    check_metadata,
    check_provenance,
    check_revision,
    check_tags,
    check_value,
)
from tenants.callers import Caller, check_reach
from tenants.documents import JSONValue
from tenants.idempotency import IdempotencyKey
from tenants.metrics import count_purged
from tenants.scopes import Scope, check_key
from tenants.times import format_time, parse_time
from tenants.units import (
    store,
    unit_of_work,
)


def set_preference(
    *,
    caller: Caller,
    scope: Scope,
    key: str,
    value: JSONValue,
    revision: str | None = None,
    upsert: bool = False,
    ttl_seconds: int | None = None,
    tags: Sequence[str] | None = None,
    metadata: JSONValue = None,
    provenance: JSONValue = None,
) -> Outcome:
    """
    Store one value: create it, replace the version `revision`, or either with `upsert`.

    Args:
        ttl_seconds: the record is gone after so many seconds; None leaves it to the definition.

    Raises:
        ServiceError: every refusal of the contract, see `put_preference`.
    """
    mode: Mode = "upsert" if upsert else "create" if revision is None else "replace"
    return put_preference(
        caller=caller,
        scope=scope,
        key=key,
        write=Write(
            value=value,
            value_text=check_value(value),
            mode=mode,
            revisions=() if revision is None else (check_revision(revision),),
            tags=None if tags is None else check_tags(list(tags)),
            metadata_text=None if metadata is None else check_metadata(metadata),
            provenance_text=check_provenance(provenance),
            deadline=NO_DEADLINE
            if ttl_seconds is None
            else Deadline(is_given=True, ttl_seconds=ttl_seconds, expires_at=None),
        ),
    )


def put_preference(
    *, caller: Caller, scope: Scope, key: str, write: Write, once: IdempotencyKey | None = None
) -> Outcome:
    """
    Store one value, in one round trip where no idempotency key is given.

    Raises:
        PermissionDenied: the person is out of the caller's reach, or the caller is no writer.
        UndeclaredKey: nothing in force governs the key there.
        PurposeNotAllowed, ConsentRequired: the gate.
        IdempotencyMismatch: the key came with another request before.
        InvalidValue, InvalidTTL: the definition's schema or bounds.
        StaleRevision, AlreadyExists: another version stands there than the caller assumed.
    """
    key = check_key(key, creating=True)
    check_reach(caller, scope.subject)
    if once is None:
        return _stored(run_put(caller, scope, key, write))
    with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor, subjects=fences(scope)):
        run_put(caller, scope, key, write, is_check_only=True)
        answer = once.find_answer()
        if answer is not None:
            return replay_put(caller, scope, key, write, answer)
        outcome = _stored(run_put(caller, scope, key, write))
        once.keep_answer(answer_of_put(outcome), subject=scope.subject)
        return outcome


def archive_preference(
    *, caller: Caller, scope: Scope, key: str, revision: str, once: IdempotencyKey | None = None
) -> Outcome:
    """
    Retire one record from every read and list without losing it. Who may write it may do so.

    Access, export, erasure, expiry and deletion still see it. Its value and times stay.

    Raises:
        ServiceError: as `put_preference`.
        StaleRevision: no live record of this revision stands there, or it is archived already.
    """
    return put_preference(
        caller=caller, scope=scope, key=key, write=_retiring("archive", revision), once=once
    )


def restore_preference(
    *, caller: Caller, scope: Scope, key: str, revision: str, once: IdempotencyKey | None = None
) -> Outcome:
    """
    Bring an archived record back as it was.

    Raises:
        ServiceError: as `put_preference`.
        StaleRevision: no record of this revision stands there.
        AlreadyExists: it is not archived.
    """
    return put_preference(
        caller=caller, scope=scope, key=key, write=_retiring("restore", revision), once=once
    )


def _retiring(mode: Mode, revision: str) -> Write:
    return Write(value=None, value_text="null", mode=mode, revisions=(check_revision(revision),))


def delete_preference(
    *,
    caller: Caller,
    scope: Scope,
    key: str,
    revisions: Sequence[str] | None = None,
    once: IdempotencyKey | None = None,
) -> bool:
    """
    Delete one record, whatever its consent; expired ones that are not purged yet too.

    Args:
        revisions: delete only a live record that has one of these; ``*`` stands for any.

    Returns:
        Whether this repeats an earlier answer.

    Raises:
        PermissionDenied, PurposeNotAllowed: the caller may not forget this record.
        StaleRevision: a live record with one of `revisions` does not stand there.
        NotFound: nothing stands there.
    """
    key = check_key(key)
    check_reach(caller, scope.subject)
    if once is None:
        run_delete(caller, scope, key, revisions)
        return False
    with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor, subjects=fences(scope)):
        run_delete(caller, scope, key, revisions, is_check_only=True)
        if once.find_answer() is not None:
            return True
        run_delete(caller, scope, key, revisions)
        once.keep_answer({"status": 204})
        return False


def purge_expired(*, tenant_id: int, actor: Any, most: int = 1000) -> int:
    """
    Delete up to `most` records of one tenant whose deadline has passed; return how many.

    Rows that somebody is working on are skipped, so that a purge neither waits nor deadlocks; and
    those that a hold keeps.
    """
    with unit_of_work(tenant_id=tenant_id, actor=actor), store().cursor() as cursor:
        cursor.execute(
            # Materialized: looked up again for each row, it would lock and delete more than `most`.
            "WITH gone AS MATERIALIZED (SELECT id FROM consentful_preference"
            " WHERE tenant_id = %s AND expires_at <= (SELECT consentful_now())"
            " AND NOT consentful_is_held(held_at, held_until, (SELECT consentful_now()))"
            " ORDER BY expires_at LIMIT %s FOR UPDATE SKIP LOCKED)"
            " DELETE FROM consentful_preference p USING gone WHERE p.tenant_id = %s AND p.id = gone.id",
            [tenant_id, most, tenant_id],
        )
        count = int(cursor.rowcount)
    count_purged(count)
    return count


def answer_of_put(outcome: Outcome) -> dict[str, Any]:
    """Return what an idempotency record keeps of a write: no value, no words of the writer."""
    record = outcome.record
    return {
        "status": 201 if outcome.is_created else 200,
        "id": record.id,
        "revision": record.revision,
        "purpose": record.purpose,
        "source": record.source,
        "actor": record.actor,
        "seen_count": record.seen_count,
        "created_at": format_time(record.created_at),
        "updated_at": format_time(record.updated_at),
        "expires_at": record.expires_at and format_time(record.expires_at),
        "archived_at": record.archived_at and format_time(record.archived_at),
    }


def replay_put(
    caller: Caller, scope: Scope, key: str, write: Write, answer: dict[str, Any]
) -> Outcome:
    """Build the first answer again: what it kept, the repeated request, the record if unchanged."""
    row = (
        Preference.objects.filter(
            tenant_id=caller.tenant_id, scope=str(scope), key=key, revision=answer["revision"]
        )
        # An expired record reads like none, here too.
        .exclude(expires_at__lte=RawSQL("consentful_now()", []))
        .first()
    )
    return Outcome(
        record=Record(
            id=answer["id"],
            scope=str(scope),
            key=key,
            value_text=_value_again(write, row),
            revision=answer["revision"],
            tags=write.tags if write.tags is not None else row.tags if row else (),
            metadata_text=write.metadata_text or (row.metadata if row else "{}"),
            source=answer["source"],
            actor=answer["actor"],
            provenance_text=row.provenance if row else write.provenance_text,
            seen_count=answer["seen_count"],
            created_at=parse_time(answer["created_at"]),
            updated_at=parse_time(answer["updated_at"]),
            expires_at=answer["expires_at"] and parse_time(answer["expires_at"]),
            archived_at=parse_time(since) if (since := answer.get("archived_at")) else None,
            purpose=answer["purpose"],
        ),
        is_created=answer["status"] == 201,
        is_replayed=True,
    )


def _value_again(write: Write, row: Preference | None) -> str:
    """Return the value of a repeated answer: what was sent, or what the record still holds."""
    if write.mode not in RETIRING:
        return write.value_text
    return row.value if row else "null"


def _stored(outcome: Outcome | None) -> Outcome:
    """Return the outcome of a write that was not a check alone."""
    if outcome is None:
        raise RuntimeError("The write was checked, not done.")
    return outcome
