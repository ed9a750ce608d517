"""Many operations in one request: all or nothing, or each for itself."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import Error

from preferences.attempts import (
    DefinitionChanged,
    Outcome,
    Write,
    arguments_of_delete,
    arguments_of_put,
    check_unit,
    conclude_delete,
    conclude_put,
    fences,
)
from preferences.records import Record
from preferences.requests import MEMBERS, read_revisions, read_write
from preferences.selectors import arguments_of_get, conclude_get, get_preference
from preferences.services import (
    answer_of_put,
    delete_preference,
    put_preference,
    replay_put,
)
from tenants.callers import Caller, check_reach
from tenants.exceptions import (
    DuplicateAddress,
    FailedDependency,
    FieldError,
    Forbidden,
    NotFound,
    ServiceError,
    ValidationError,
    all_errors,
)
from tenants.idempotency import IdempotencyKey
from tenants.problems import as_service_error
from tenants.scopes import Scope, check_key
from tenants.statements import fetch_rows
from tenants.times import format_time
from tenants.units import record_denied, unit_of_work
from tenants.views import check_members

MOST_OPERATIONS = 100


@dataclass(slots=True)
class Operation:
    """One operation of a batch, with the refusal of its form where it has one."""

    index: int
    verb: str = ""
    scope: Scope | None = None
    key: str = ""
    write: Write | None = None
    revisions: Sequence[str] | None = None
    refusal: ServiceError | None = None
    #: The failure of the database behind a refusal, for the log.
    fault: Exception | None = None
    #: What a get that found nothing is answered: a result, which undoes no batch.
    absence: ServiceError | None = None
    status: int = 0
    body: str = "null"
    answer: Any = None
    #: The purpose of the record that a get found.
    purpose: str | None = None

    @property
    def is_forbidden(self) -> bool:
        """Whether role or gate refused it."""
        return isinstance(self.refusal, Forbidden)

    @property
    def place(self) -> Scope:
        """The scope of an operation that is well formed."""
        if self.scope is None:
            raise LookupError("This operation names no scope.")
        return self.scope

    @property
    def intent(self) -> Write:
        """The write of a put that is well formed."""
        if self.write is None:
            raise LookupError("This operation writes nothing.")
        return self.write

    @property
    def address(self) -> tuple[str, str]:
        """Where it works; everyone works through addresses in this order."""
        return (str(self.scope) if self.scope else "", self.key)


def read_operations(body: dict[str, Any], caller: Caller) -> list[Operation]:
    """
    Return the operations of a batch; a malformed one carries its refusal.

    Raises:
        ValidationError: no list of 1 to 100 objects.
        DuplicateAddress: an address stands twice; both indexes are named.
    """
    raw = body.get("operations")
    if not isinstance(raw, list) or not 1 <= len(raw) <= MOST_OPERATIONS:
        raise ValidationError(
            f"operations is a list of 1 to {MOST_OPERATIONS} operations.", pointer="/operations"
        )
    if not isinstance(body.get("atomic", True), bool):
        raise ValidationError("atomic is true or false.", pointer="/atomic")
    operations = [_read(index, one, caller) for index, one in enumerate(raw)]
    seen: dict[tuple[str, str], int] = {}
    for operation in operations:
        if operation.scope is None or not operation.key:
            continue
        twin = seen.setdefault(operation.address, operation.index)
        if twin != operation.index:
            detail = f"Operations {twin} and {operation.index} name the same address."
            raise DuplicateAddress(
                detail,
                errors=[
                    FieldError(
                        pointer=f"/operations/{index}", code="duplicate_address", detail=detail
                    )
                    for index in (twin, operation.index)
                ],
            )
    return operations


def run_batch(
    *, caller: Caller, operations: Sequence[Operation], is_atomic: bool,
    once: IdempotencyKey | None = None,
) -> tuple[ServiceError | None, bool]:  # fmt: skip
    """
    Run every operation in the order of addresses and leave its answer on it.

    Returns:
        The refusal that decides the answer of a failed atomic batch, and whether this repeats an
        earlier answer.

    Raises:
        ValidationError: an idempotency key for a batch that reads.
    """
    if once is not None and any(operation.verb == "get" for operation in operations):
        raise ValidationError(
            "An answer that holds values is not kept: a batch with a get takes no Idempotency-Key.",
            pointer="/headers/Idempotency-Key",
        )
    in_order = sorted(operations, key=lambda operation: operation.address)
    if not is_atomic and once is None:
        for operation in in_order:
            _run_alone(caller, operation)
        _record_denials(caller, operations)
        return None, False
    reload = False
    while True:
        try:
            return _run_in_unit(
                caller, operations, in_order, is_atomic=is_atomic, once=once, reload=reload
            )
        except DefinitionChanged:
            reload = True


def _run_in_unit(
    caller: Caller,
    operations: Sequence[Operation],
    in_order: Sequence[Operation],
    *,
    is_atomic: bool,
    once: IdempotencyKey | None,
    reload: bool,
) -> tuple[ServiceError | None, bool]:
    """Run all of them in one transaction, from the start again if the catalogue has changed."""
    subjects = {name for one in operations if one.scope for name in _reachable(caller, one.scope)}
    failed: ServiceError | None = None
    try:
        with unit_of_work(
            tenant_id=caller.tenant_id, actor=caller.actor, subjects=sorted(subjects)
        ):
            if once is not None:
                _attempt(caller, in_order, is_check_only=True, reload=reload)
                if (kept := once.find_answer()) is not None:
                    # Role and gate come before the kept answer, also where they changed.
                    failed = next((one.refusal for one in operations if one.is_forbidden), None)
                    if failed is not None and is_atomic:
                        _name_places(operations)
                        raise failed
                    _replay(caller, operations, kept)
                    return None, True
            _attempt(caller, in_order, reload=reload)
            failed = next((one.refusal for one in operations if one.refusal), None)
            if failed is not None and is_atomic:
                _name_places(operations)
                raise failed
            if once is not None:
                once.keep_answer(
                    [(one.status, one.answer, _kept(one.refusal)) for one in operations]
                )
    except ServiceError as refusal:
        if refusal is not failed:
            raise
        for operation in operations:
            if operation.refusal is None:
                operation.refusal = FailedDependency()
                operation.status, operation.body = 424, "null"
        return refusal, False
    if not is_atomic:
        _record_denials(caller, operations)
    return None, False


def _record_denials(caller: Caller, operations: Sequence[Operation]) -> None:
    """Leave one event for each operation that was refused for itself."""
    _name_places(operations)
    for operation in operations:
        if isinstance(operation.refusal, Forbidden):
            record_denied(operation.refusal, tenant_id=caller.tenant_id, actor=caller.actor)


def _name_places(operations: Sequence[Operation]) -> None:
    """Say in every refusal which record it is about, for its event."""
    for operation in operations:
        if operation.refusal is not None:
            scope = operation.scope
            operation.refusal.about.setdefault("scope", str(scope) if scope else None)
            operation.refusal.about.setdefault("key", operation.key or None)


def _read(index: int, raw: Any, caller: Caller) -> Operation:
    operation = Operation(index)
    try:
        if not isinstance(raw, dict):
            raise ValidationError("An operation is an object.", pointer=f"/operations/{index}")
        if raw.get("op") not in ("get", "put", "delete"):
            raise ValidationError("op is get, put or delete.", pointer=f"/operations/{index}/op")
        operation.verb = raw["op"]
        # In the order of a request alone: the key, `me` that stands for nobody, another person's
        # scope, and only then what is sent.
        operation.key = check_key(raw.get("key"), creating=operation.verb == "put")
        operation.scope = Scope.parse(
            raw.get("scope"), me=caller.subject, creating=operation.verb == "put"
        )
        check_reach(caller, operation.scope.subject)
        known = {
            "get": (), "put": (*MEMBERS, "mode"), "delete": ("revision",),
        }[operation.verb]  # fmt: skip
        check_members(raw, ("op", "scope", "key", *known), f"/operations/{index}")
        if operation.verb != "put":
            _check_reason(caller, operation.scope.subject)
        if operation.verb == "put":
            operation.write = read_write(raw, mode=raw.get("mode"))
        elif raw.get("revision") is not None:
            operation.revisions = read_revisions(raw["revision"], None)[1]
    except ServiceError as refusal:
        operation.refusal = refusal
    return operation


def _check_reason(caller: Caller, subject: str | None) -> None:
    if caller.discloses(subject) and caller.reason is None:
        raise ValidationError(
            "Say why: ?reason= is required for another person's data.", pointer="/query/reason"
        )


def _run_alone(caller: Caller, operation: Operation) -> None:
    if operation.refusal is None and operation.scope is not None:
        try:
            if operation.verb == "get":
                _answer_get(caller, operation, operation.scope)
            elif operation.verb == "put" and operation.write is not None:
                _done_put(operation, put_preference(
                    caller=caller, scope=operation.scope, key=operation.key, write=operation.write
                ))  # fmt: skip
            else:
                delete_preference(
                    caller=caller, scope=operation.scope, key=operation.key,
                    revisions=operation.revisions,
                )  # fmt: skip
                operation.status = 204
        except ServiceError as refusal:
            operation.refusal = refusal
        except Error as fault:
            # A lock timed out, say: what ran before it stands, and is answered as done.
            operation.refusal = as_service_error(fault)
            operation.fault = fault


def _attempt(
    caller: Caller,
    operations: Sequence[Operation],
    *,
    is_check_only: bool = False,
    reload: bool = False,
) -> None:
    """
    Run operations inside the batch's unit, in one round trip; a refusal is kept with its operation.

    Raises:
        DefinitionChanged: what was sent rests on an older catalogue; nothing of it may stay.
    """
    asked = [one for one in operations if one.refusal is None and one.scope is not None]
    calls: list[tuple[Operation, dict[str, Any], list[FieldError]]] = []
    for one in asked:
        try:
            check_reach(caller, one.place.subject)
        except ServiceError as refusal:
            one.refusal = refusal
            continue
        faults: list[FieldError] = []
        if one.verb == "put":
            arguments, faults = arguments_of_put(
                caller, one.place, one.key, one.intent, is_check_only=is_check_only, reload=reload
            )
        elif one.verb == "delete":
            arguments = arguments_of_delete(
                caller, one.place, one.key, one.revisions, is_check_only=is_check_only
            )
        else:
            arguments = arguments_of_get(caller, one.place, one.key)
        calls.append((one, {"verb": one.verb, **arguments}, faults))
    check_unit(caller, [name for one, *_ in calls for name in fences(one.place)])
    answers = fetch_rows(
        "SELECT * FROM consentful_batch(%s, %s, %s::json)",
        (
            caller.tenant_id,
            caller.actor.as_context(),
            json.dumps([arguments for _, arguments, _ in calls], default=format_time),
        ),
    )
    if any(outcome == "definition_changed" for outcome, *_ in answers):
        raise DefinitionChanged
    for (one, _, faults), answer in zip(calls, answers, strict=True):
        try:
            if one.verb == "get":
                _done_get(one, conclude_get(caller, one.place, one.key, answer))
            elif one.verb == "put":
                outcome = conclude_put(
                    caller, one.place, one.key, one.intent, answer, faults,
                    is_check_only=is_check_only,
                )  # fmt: skip
                if outcome is not None:
                    _done_put(one, outcome)
            else:
                conclude_delete(caller, one.place, one.key, answer)
                one.status = 204
        except NotFound as nothing:
            # A result for whoever reads, a refusal for whoever deletes.
            if one.verb == "get":
                one.absence = nothing
            else:
                one.refusal = nothing
        except ServiceError as refusal:
            one.refusal = refusal


def _done_get(operation: Operation, record: Record) -> None:
    operation.status, operation.body = 200, record.as_json()
    operation.purpose = record.purpose


def _answer_get(caller: Caller, operation: Operation, scope: Scope) -> None:
    try:
        _done_get(operation, get_preference(caller=caller, scope=scope, key=operation.key))
    except NotFound as nothing:
        operation.absence = nothing


def _done_put(operation: Operation, outcome: Outcome) -> None:
    operation.answer = answer_of_put(outcome)
    operation.status = 201 if outcome.is_created else 200
    operation.body = outcome.record.as_json()


def _replay(caller: Caller, operations: Sequence[Operation], kept: Any) -> None:
    for operation, (status, answer, problem) in zip(operations, kept, strict=True):
        if operation.is_forbidden:
            continue
        operation.refusal = None if problem is None else _refusal_again(problem)
        operation.status = status
        if answer is not None and operation.write is not None and operation.scope is not None:
            outcome = replay_put(caller, operation.scope, operation.key, operation.write, answer)
            operation.body = outcome.record.as_json()


def _kept(refusal: ServiceError | None) -> dict[str, Any] | None:
    """Return what can be told of a refusal again; no refusal's words hold a value."""
    if refusal is None:
        return None
    errors = [(one.pointer, one.code, one.detail) for one in refusal.errors]
    return {
        "code": refusal.code, "detail": refusal.detail, "facts": refusal.facts, "errors": errors,
    }  # fmt: skip


def _refusal_again(kept: dict[str, Any]) -> ServiceError:
    family = next(one for one in all_errors() if one.code == kept["code"])
    errors = [
        FieldError(pointer=pointer, code=code, detail=detail)
        for pointer, code, detail in kept["errors"]
    ]
    return family(kept["detail"], facts=kept["facts"], errors=errors)


def _reachable(caller: Caller, scope: Scope) -> Sequence[str]:
    try:
        check_reach(caller, scope.subject)
    except ServiceError:
        return ()
    return fences(scope)
