"""
Reading an export back in: what of it is stored, what stands already, and what is left out.

All of it is one unit of work under the person's exclusive fence, through the same services as every
request. A dry run does the same and takes it back.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from consent.models import Decision, Notice
from consent.selectors import list_states
from consent.services import decide
from preferences.attempts import Write
from preferences.imports import write_of
from preferences.selectors import list_personal_data
from preferences.services import archive_preference, put_preference
from privacy.documents import Document
from privacy.forgotten import Forgotten, find_forgotten
from tenants.callers import Caller
from tenants.documents import canonical
from tenants.exceptions import (
    AlreadyExists,
    Conflict,
    DuplicateAddress,
    FieldError,
    Forbidden,
    NotFound,
    ServiceError,
    ValidationError,
)
from tenants.models import Tenant
from tenants.roles import Role
from tenants.scopes import Scope, check_key
from tenants.times import parse_time
from tenants.units import now, take_back, unit_of_work

#: Who imports, as the trail and the records name it.
IMPORTER = "import"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """
    What becomes of one consent or record.

    Attributes:
        outcome: ``stored``, ``same`` where that stands already, ``left_out``.
        why: the reason why it is left out.
    """

    kind: Literal["consent", "preference"]
    name: str
    outcome: Literal["stored", "same", "left_out"]
    why: str = ""

    def line(self) -> str:
        """Return the step as a person reads it."""
        sign = {"stored": "+", "same": "=", "left_out": "-"}[self.outcome]
        return f"{sign} {self.kind} {self.name}" + (f": {self.why}" if self.why else "")


@dataclass(frozen=True, slots=True)
class Found:
    """One record of the document, checked for form: its place, key, purpose there, and its write."""

    index: int
    key: str
    purpose: str | None
    write: Write
    is_archived: bool


def import_person(
    *, tenant: Tenant, document: Document, subject: str | None = None, is_dry_run: bool = False
) -> Sequence[Step]:
    """
    Store what an export holds of consents and records, or nothing of it.

    The other parts tell of the past, which happened elsewhere. A consent is taken over where nothing
    newer was decided here and the same notice text still suffices; a record where its purpose is
    open here. What stands here is never overwritten.

    Args:
        subject: the person's id here; None where it is the same.
        is_dry_run: say what would be done.

    Raises:
        ValidationError: items are refused: `errors` names each, and nothing is stored; or the person
            was forgotten after the export was taken.
    """
    here = Scope.of_subject(document.subject if subject is None else subject, creating=True)
    caller = Caller(
        user_id="", username=IMPORTER, tenant_id=tenant.pk, tenant=tenant.slug,
        roles=frozenset({Role.OPERATOR}), subject=None, on_behalf_of=None,
        reason=f"an export of {document.tenant} of {document.taken_at}",
    )  # fmt: skip
    writes = _read_records(document)
    steps: list[Step] = []
    with unit_of_work(
        tenant_id=tenant.pk, actor=caller.actor, subjects=[here.name], exclusive=True
    ):
        forgotten = find_forgotten(
            tenant_id=tenant.pk, subject=here.name, since=parse_time(document.taken_at)
        )
        if forgotten.is_whole:
            raise ValidationError("The person was forgotten after this export was taken.")
        steps += _import_consents(caller, here, document, forgotten)
        steps += _import_records(caller, here, writes, forgotten)
        if is_dry_run:
            take_back()
    return steps


# Consents ------------------------------------------------------------------------------------


def _import_consents(
    caller: Caller, here: Scope, document: Document, forgotten: Forgotten
) -> Iterator[Step]:
    states = {
        state.purpose: state for state in list_states(tenant_id=caller.tenant_id, subject=here.name)
    }
    for index, item in enumerate(document.parts["consents"]):
        name = str(item["purpose"])
        if not item["history"]:
            continue
        entry = item["history"][-1]
        state = states.get(name)
        step = Step(kind="consent", name=name, outcome="left_out")
        if state is None:
            yield replace(step, why="there is no such purpose here that rests on consent")
        elif state.entry == entry["entry"]:
            yield replace(step, outcome="same")
        elif state.since is not None and state.since >= _moment(entry["at"], index):
            yield replace(step, why="something newer was decided here")
        elif forgotten.at is not None and forgotten.at >= _moment(entry["at"], index):
            yield replace(step, why="the person was forgotten here since then")
        else:
            until = entry["expires_at"] and _moment(entry["expires_at"], index)
            yield _decide(caller, here, document, step, entry, until)


def _decide(
    caller: Caller, here: Scope, document: Document, step: Step, entry: dict[str, Any],
    until: datetime | None,
) -> Step:  # fmt: skip
    if entry["decision"] == Decision.GIVEN and not _is_same_notice(caller, step.name, entry):
        return replace(step, why="the notice that was shown is none of those here")
    try:
        after, _ = decide(
            caller=caller, subject=here.name, purpose=step.name,
            decision=Decision(entry["decision"]), version=entry["version"], locale=entry["locale"],
            expires_at=until,
            evidence=f"Told by an export of {document.tenant} of {document.taken_at}: decided at"
            f" {entry['at']}.",
            is_import=True,
        )  # fmt: skip
    except (Conflict, NotFound, ValidationError) as refusal:
        return replace(step, why=refusal.detail)
    return replace(step, outcome="stored", why=after.status)


def _is_same_notice(caller: Caller, purpose: str, entry: dict[str, Any]) -> bool:
    """Whether the text that the person saw is published here under the same version."""
    return Notice.objects.filter(
        tenant_id=caller.tenant_id, purpose__slug=purpose, purpose__tenant_id=caller.tenant_id,
        version=entry["version"], locale=entry["locale"], digest=entry["notice_digest"],
    ).exists()  # fmt: skip


def _moment(text: str, index: int) -> datetime:
    try:
        return parse_time(text)
    except ValueError as fault:
        raise ValidationError(str(fault), pointer=f"/parts/consents/{index}/history") from fault


# Records -------------------------------------------------------------------------------------


def _read_records(document: Document) -> list[Found]:
    """
    Return index, key and write of each record, all checked for form.

    Raises:
        ValidationError: some are refused.
    """
    own = Scope.of_subject(document.subject)
    found: list[Found] = []
    seen: dict[str, int] = {}
    errors: list[FieldError] = []
    for index, item in enumerate(document.parts["preferences"]):
        try:
            scope = Scope.parse(item["scope"], me=None, creating=True)
            if scope != own:
                raise ValidationError("The record is not this person's.", pointer="/scope")
            key = check_key(item["key"], creating=True)
            if key in seen:
                raise DuplicateAddress(
                    f"The address stands at {seen[key]} already.", pointer="/key"
                )
            seen[key] = index
            is_archived = item.get("archived_at") is not None
            found.append(Found(index, key, item["purpose"], write_of(item), is_archived))
        except ServiceError as refusal:
            errors += _located(refusal, index)
    _refuse(errors)
    return found


def _import_records(
    caller: Caller, here: Scope, writes: Sequence[Found], forgotten: Forgotten
) -> Sequence[Step]:
    standing = {
        record.key: record.value_text
        for record in list_personal_data(caller=caller, subject=here.name)
    }
    steps: list[Step] = []
    errors: list[FieldError] = []
    moment = now()
    # In the order of their addresses, like every change of several.
    for one in sorted(writes, key=lambda one: one.key):
        index, key, write = one.index, one.key, one.write
        step = Step(kind="preference", name=key, outcome="left_out")
        until = write.deadline.expires_at
        if until is not None and until <= moment:
            step = replace(step, why="its deadline has passed")
        elif forgotten.has_record(key, one.purpose):
            step = replace(step, why="it was forgotten after this export was taken")
        elif key in standing:
            is_same = standing[key] == canonical(write.value)
            step = replace(step, outcome="same") if is_same else replace(step, why=_KEPT)
        else:
            try:
                _store(caller, here, one)
                step = replace(step, outcome="stored")
            except AlreadyExists:
                step = replace(step, why=_KEPT)
            except Forbidden as refusal:
                if refusal.code not in _GATE:
                    errors += _located(refusal, index)
                step = replace(step, why=refusal.detail)
            except ServiceError as refusal:
                errors += _located(refusal, index)
        steps.append(step)
    _refuse(errors)
    return steps


def _store(caller: Caller, here: Scope, one: Found) -> None:
    """Write a record; what was archived there is out of every read here, too."""
    outcome = put_preference(caller=caller, scope=here, key=one.key, write=one.write)
    if one.is_archived:
        revision = outcome.record.revision
        archive_preference(caller=caller, scope=here, key=one.key, revision=revision)


_KEPT = "another value stands here"
#: What the gate says: no fault of the file.
_GATE = frozenset({"consent_required", "restricted", "objected"})


def _located(refusal: ServiceError, index: int) -> list[FieldError]:
    """Return the errors of a refusal with their place in the document."""
    place = f"/parts/preferences/{index}"
    if not refusal.errors:
        return [FieldError(pointer=place, code=refusal.code, detail=refusal.detail)]
    return [replace(error, pointer=place + error.pointer) for error in refusal.errors]


def _refuse(errors: Sequence[FieldError]) -> None:
    match errors:
        case []:
            return
        case [one]:
            told = f"{one.code}: {one.detail}"
        case _:
            told = f"{len(errors)} parts are refused."
    raise ValidationError(f"Nothing was imported. {told}", errors=errors)
