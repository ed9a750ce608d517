"""Changes of preferences: one function each, one unit of work each. Who may ask is settled before."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

from django.db.models.expressions import RawSQL

from preferences.decisions import count_delete, count_refusal, count_write
from preferences.exceptions import refusal_of
from preferences.models import Preference, Writer
from preferences.records import COLUMNS, Record
from preferences.selectors import find_declaration
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
from tenants.exceptions import Forbidden, InvalidValue, ServiceError
from tenants.idempotency import IdempotencyKey
from tenants.metrics import count_purged
from tenants.restores import check_current
from tenants.scopes import Scope, check_key
from tenants.times import format_time, parse_time
from tenants.tracing import unit_span
from tenants.units import (
    current_unit,
    record_denied,
    refusing_the_forgotten,
    store,
    unit_of_work,
)

Mode = Literal["create", "replace", "any", "upsert"]

NO_DEADLINE = Deadline(is_given=False, ttl_seconds=None, expires_at=None)


@dataclass(frozen=True, kw_only=True)
class Write:
    """
    One value to store, checked for form. `None` leaves what stands (tags, metadata).

    Attributes:
        mode: ``create``; ``replace`` a live record that has one of `revisions`; ``any`` live
            record; ``upsert`` whatever stands there.
        none_match: tags of If-None-Match; where the live record has one, the answer is 412.
    """

    value: JSONValue
    value_text: str
    mode: Mode = "create"
    revisions: Sequence[str] = ()
    tags: Sequence[str] | None = None
    metadata_text: str | None = None
    provenance_text: str = field(default_factory=lambda: check_provenance(None))
    deadline: Deadline = NO_DEADLINE
    none_match: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a write: the record, whether it is new, whether this is a repeated answer."""

    record: Record
    is_created: bool
    is_replayed: bool = False


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
            "DELETE FROM consentful_preference WHERE tenant_id = %s AND id IN ("
            " SELECT id FROM consentful_preference"
            " WHERE tenant_id = %s AND expires_at <= (SELECT consentful_now())"
            " AND NOT consentful_is_held(held_at, held_until, (SELECT consentful_now()))"
            " ORDER BY expires_at LIMIT %s FOR UPDATE SKIP LOCKED)",
            [tenant_id, tenant_id, most],
        )
        count = int(cursor.rowcount)
    count_purged(count)
    return count


def source_of(caller: Caller, scope: Scope) -> str:
    """Return what provenance says of this caller's writes: the server's word, never the body's."""
    if caller.is_agent:
        return "agent"
    return "user_confirmed" if caller.stands_for(scope.subject) else "operator"


def writer_of(caller: Caller, scope: Scope) -> str:
    """Return as which of a definition's `writers` this caller writes there."""
    if caller.is_agent:
        return Writer.AGENT.value
    if caller.stands_for(scope.subject) or not caller.is_steward:
        return Writer.SUBJECT.value
    return Writer.OPERATOR.value


def fences(scope: Scope) -> Sequence[str]:
    """Return the persons to fence for a write in this scope."""
    return () if scope.subject is None else (scope.subject,)


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
            value_text=write.value_text,
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
            purpose=answer["purpose"],
        ),
        is_created=answer["status"] == 201,
        is_replayed=True,
    )


def _stored(outcome: Outcome | None) -> Outcome:
    """Return the outcome of a write that was not a check alone."""
    if outcome is None:
        raise RuntimeError("The write was checked, not done.")
    return outcome


def run_put(
    caller: Caller, scope: Scope, key: str, write: Write, *, is_check_only: bool = False
) -> Outcome | None:
    """Call the one SQL function; `is_check_only` stops after the gate."""
    reload = False
    while True:
        declaration = find_declaration(
            tenant_id=caller.tenant_id, key=key, kind=scope.kind, reload=reload
        )
        faults = declaration.schema.errors(write.value) if declaration else []
        outcome, purpose, record = _call(
            "put",
            caller,
            scope,
            key,
            writer_of(caller, scope),
            source_of(caller, scope),
            caller.username,
            declaration and declaration.revision,
            not faults and not is_check_only,
            write.mode,
            list(write.revisions),
            write.value_text,
            None if write.tags is None else list(write.tags),
            write.metadata_text,
            write.provenance_text,
            write.deadline.is_given,
            write.deadline.ttl_seconds,
            write.deadline.expires_at,
        )
        if outcome != "definition_changed":
            break
        reload = True  # another process changed the catalogue since this one compiled it
    count_write(outcome, scope=scope)
    if outcome == "checked":
        if faults and not is_check_only:
            raise InvalidValue("The value does not fit the schema of its key.", errors=faults)
        return None
    if outcome in ("created", "replaced") and record is not None:
        return Outcome(record, is_created=outcome == "created")
    refusal = refusal_of(outcome, scope=scope, key=key, purpose=purpose, record=record)
    # Asked for with a precondition that failed (RFC 9110, 13.1.2); else a plain conflict.
    if (
        outcome == "already_exists"
        and record is not None
        and ({"*", record.revision} & set(write.none_match))
    ):
        refusal.status = 412
    raise _recorded(refusal, caller)


def run_delete(
    caller: Caller,
    scope: Scope,
    key: str,
    revisions: Sequence[str] | None,
    *,
    is_check_only: bool = False,
) -> None:
    outcome, purpose, record = _call(
        "delete",
        caller,
        scope,
        key,
        writer_of(caller, scope),
        None if revisions is None else list(revisions),
        not is_check_only,
    )
    count_delete(outcome, scope=scope)
    if outcome not in ("deleted", "checked"):
        refusal = refusal_of(outcome, scope=scope, key=key, purpose=purpose, record=record)
        raise _recorded(refusal, caller)


def _call(
    verb: Literal["put", "delete"], caller: Caller, scope: Scope, key: str, *more: Any
) -> tuple[str, str | None, Record | None]:
    unit = current_unit()
    if unit is not None and unit.tenant_id != caller.tenant_id:
        raise RuntimeError("A unit of work of another tenant is open on this connection.")
    if unit is not None and scope.subject is not None and scope.subject not in unit.fences:
        raise RuntimeError("Name every subject in the outermost unit of work: fences are ordered.")
    if scope.subject is not None and unit is None:
        check_current()
    arguments = [
        caller.tenant_id,
        caller.actor.as_context(),
        str(scope),
        scope.kind,
        scope.subject,
        key,
        caller.agent_id,
        *more,
    ]
    casts = _CASTS[verb]
    # Without a unit around it, this one statement is the transaction.
    traced = (
        nullcontext()
        if unit is not None
        else unit_span(tenant_id=caller.tenant_id, fenced=len(fences(scope)))
    )
    with traced, store().cursor() as cursor, refusing_the_forgotten():
        cursor.execute(
            f"SELECT outcome, purpose, {COLUMNS} FROM consentful_preference_{verb}({casts})",  # noqa: S608  constant text
            arguments,
        )
        outcome, purpose, *row = cursor.fetchone()
    return outcome, purpose, Record.from_row(row, purpose)


#: The types that psycopg cannot guess from a list or a None.
_CASTS = {
    "put": ", ".join(
        ["%s"] * 12
        + ["%s", "%s::text[]", "%s", "%s::text[]", "%s", "%s", "%s", "%s::bigint"]
        + ["%s::timestamptz"]
    ),
    "delete": ", ".join(["%s"] * 8 + ["%s::text[]", "%s"]),
}


def _recorded(refusal: ServiceError, caller: Caller) -> ServiceError:
    """Count a refusal; leave its denied event where no unit of work of this app's will see it."""
    count_refusal(refusal)
    if isinstance(refusal, Forbidden) and current_unit() is None:
        record_denied(refusal, tenant_id=caller.tenant_id, actor=caller.actor)
    return refusal
