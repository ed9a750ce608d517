"""
One attempt at a write or a delete: what is asked of the one SQL function, and what its answer means.

Opens no transaction: without one, the single statement is it. What makes a change of one attempt,
such as an idempotency key, belongs in `preferences.services`.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

from preferences.decisions import count_delete, count_refusal, count_write
from preferences.exceptions import refusal_of
from preferences.models import Writer
from preferences.records import Record
from preferences.selectors import arguments_of_get, find_declaration
from preferences.values import (
    Deadline,
    check_provenance,
)
from tenants.callers import Caller
from tenants.documents import JSONValue
from tenants.exceptions import FieldError, Forbidden, InvalidValue, ServiceError
from tenants.restores import check_current
from tenants.scopes import Scope
from tenants.statements import fetch_row
from tenants.tracing import unit_span
from tenants.units import (
    Unit,
    current_unit,
    record_denied,
    refusing_the_forgotten,
)

Mode = Literal["create", "replace", "any", "upsert", "archive", "restore"]

#: With these a value stays as it is, so it is neither sent nor checked.
RETIRING: Sequence[Mode] = ("archive", "restore")

NO_DEADLINE = Deadline(is_given=False, ttl_seconds=None, expires_at=None)


@dataclass(frozen=True, kw_only=True)
class Write:
    """
    One value to store, checked for form. `None` leaves what stands (tags, metadata).

    Attributes:
        mode: ``create``; ``replace`` a live record that has one of `revisions`; ``any`` live
            record; ``upsert`` whatever stands there; ``archive`` or ``restore`` a record that has one
            of `revisions`, whose value stays.
        none_match: tags of If-None-Match; where the live record has one, the answer is 412.
        imported_as: set where an export is read back, never by a request: which of a definition's
            writers first wrote it. Its provenance then says ``import``.
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
    imported_as: Writer | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a write: the record, whether it is new, whether this is a repeated answer."""

    record: Record
    is_created: bool
    is_replayed: bool = False


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


class DefinitionChanged(Exception):
    """Another process changed the catalogue since this one compiled it: ask again, reloaded."""


def run_put(
    caller: Caller, scope: Scope, key: str, write: Write, *, is_check_only: bool = False
) -> Outcome | None:
    """Call the one SQL function; `is_check_only` stops after the gate."""
    reload = False
    while True:
        arguments, faults = arguments_of_put(
            caller, scope, key, write, is_check_only=is_check_only, reload=reload
        )
        try:
            return conclude_put(
                caller, scope, key, write, _call("put", caller, scope, arguments), faults,
                is_check_only=is_check_only,
            )  # fmt: skip
        except DefinitionChanged:
            reload = True


def arguments_of_put(
    caller: Caller,
    scope: Scope,
    key: str,
    write: Write,
    *,
    is_check_only: bool = False,
    reload: bool = False,
) -> tuple[dict[str, Any], list[FieldError]]:
    """Return the arguments of `consentful_preference_put` and what its schema finds wrong."""
    declaration = find_declaration(
        tenant_id=caller.tenant_id, key=key, kind=scope.kind, reload=reload
    )
    is_checkable = declaration is not None and write.mode not in RETIRING
    faults = declaration.errors(write.value) if declaration and is_checkable else []
    return {
        **arguments_of_get(caller, scope, key),
        "writer": write.imported_as or writer_of(caller, scope),
        "source": "import" if write.imported_as else source_of(caller, scope),
        "actor": caller.username,
        "assumed": declaration and declaration.revision,
        "is_checked": not faults and not is_check_only,
        "mode": write.mode,
        "revisions": list(write.revisions),
        "value": write.value_text,
        "tags": None if write.tags is None else list(write.tags),
        "metadata": write.metadata_text,
        "provenance": write.provenance_text,
        "has_deadline": write.deadline.is_given,
        "ttl": write.deadline.ttl_seconds,
        "deadline": write.deadline.expires_at,
    }, faults


def conclude_put(
    caller: Caller,
    scope: Scope,
    key: str,
    write: Write,
    answer: Sequence[Any] | None,
    faults: Sequence[FieldError],
    *,
    is_check_only: bool = False,
) -> Outcome | None:
    """
    Return what became of a write, or raise its refusal; None for one that was only checked.

    Raises:
        DefinitionChanged: the arguments were made from an older definition.
    """
    outcome, purpose, record = Record.from_answer(answer)
    if outcome == "definition_changed":
        raise DefinitionChanged
    count_write(outcome, scope=scope)
    if outcome == "checked":
        if faults and not is_check_only:
            raise InvalidValue("The value does not fit the schema of its key.", errors=faults)
        return None
    if outcome in ("created", "replaced", "archived", "restored") and record is not None:
        return Outcome(record, is_created=outcome == "created")
    refusal = refusal_of(
        outcome, scope=scope, key=key, purpose=purpose, record=record, value=write.value,
        is_restoring=write.mode == "restore",
    )  # fmt: skip
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
    arguments = arguments_of_delete(caller, scope, key, revisions, is_check_only=is_check_only)
    conclude_delete(caller, scope, key, _call("delete", caller, scope, arguments))


def arguments_of_delete(
    caller: Caller,
    scope: Scope,
    key: str,
    revisions: Sequence[str] | None,
    *,
    is_check_only: bool = False,
) -> dict[str, Any]:
    """Return the arguments of `consentful_preference_delete`."""
    return {
        **arguments_of_get(caller, scope, key),
        "writer": writer_of(caller, scope),
        "revisions": None if revisions is None else list(revisions),
        "is_checked": not is_check_only,
    }


def conclude_delete(caller: Caller, scope: Scope, key: str, answer: Sequence[Any] | None) -> None:
    """Raise the refusal of a delete, if it was refused."""
    outcome, purpose, record = Record.from_answer(answer)
    count_delete(outcome, scope=scope)
    if outcome not in ("deleted", "checked"):
        refusal = refusal_of(outcome, scope=scope, key=key, purpose=purpose, record=record)
        raise _recorded(refusal, caller)


def _call(
    verb: Literal["put", "delete"], caller: Caller, scope: Scope, arguments: Mapping[str, Any]
) -> Sequence[Any] | None:
    people = fences(scope)
    traced: AbstractContextManager[object] = nullcontext()
    if check_unit(caller, people) is None:
        if people:
            check_current()
        # Without a unit around it, this one statement is the transaction.
        traced = unit_span(tenant_id=caller.tenant_id, fenced=len(people))
    with traced, refusing_the_forgotten():
        return fetch_row(
            _STATEMENTS[verb], [caller.tenant_id, caller.actor.as_context(), *arguments.values()]
        )


def check_unit(caller: Caller, subjects: Iterable[str]) -> Unit | None:
    """Return the unit of work that is open: this caller's tenant's, with these persons fenced."""
    unit = current_unit()
    if unit is None:
        return None
    if unit.tenant_id != caller.tenant_id:
        raise RuntimeError("A unit of work of another tenant is open on this connection.")
    if not unit.fences.keys() >= set(subjects):
        raise RuntimeError("Name every subject in the outermost unit of work: fences are ordered.")
    return unit


#: With the types that psycopg cannot guess from a list or a None.
_STATEMENTS = {
    "put": "SELECT * FROM consentful_preference_put(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,"
    " %s, %s::text[], %s, %s::text[], %s, %s, %s, %s::bigint, %s::timestamptz)",
    "delete": "SELECT * FROM consentful_preference_delete(%s, %s, %s, %s, %s, %s, %s, %s,"
    " %s::text[], %s)",
}


def _recorded(refusal: ServiceError, caller: Caller) -> ServiceError:
    """Count a refusal; leave its denied event where no unit of work of this app's will see it."""
    count_refusal(refusal)
    if isinstance(refusal, Forbidden) and current_unit() is None:
        record_denied(refusal, tenant_id=caller.tenant_id, actor=caller.actor)
    return refusal
