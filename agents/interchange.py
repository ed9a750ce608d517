"""
Shared scopes as JSON lines: written whole, and read back through the same services as every request.

A person's scope is not among them: that is what a person's own export is for, with its consents.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Any, Literal

from audit.actors import Actor
from preferences.attempts import Write
from preferences.imports import write_of
from preferences.records import Record
from preferences.selectors import list_preferences
from preferences.services import put_preference
from tenants.callers import Caller
from tenants.documents import canonical, read
from tenants.exceptions import (
    AlreadyExists,
    FieldError,
    InvalidScope,
    ServiceError,
    ValidationError,
)
from tenants.models import Tenant
from tenants.roles import Role
from tenants.scopes import Scope, check_key
from tenants.times import format_time
from tenants.units import now, take_back, unit_of_work

FORMAT = "consentful-scopes"
VERSION = 1
#: Records per statement of an export.
PIECE = 1000


def caller_of_terminal(tenant: Tenant, name: str, *, reason: str | None = None) -> Caller:
    """Return an operator who works on the database itself, as the trail names it."""
    return Caller(
        user_id="", username=name, tenant_id=tenant.pk, tenant=tenant.slug,
        roles=frozenset({Role.OPERATOR}), subject=None, on_behalf_of=None, reason=reason,
    )  # fmt: skip


def check_shared(scope: Scope) -> Scope:
    """
    Return a scope that is nobody's.

    Raises:
        InvalidScope: it is a person's.
    """
    if scope.subject is not None:
        raise InvalidScope(
            "This is about shared scopes. A person's data has an export of its own.",
            pointer="/scope",
        )
    return scope


# Out -----------------------------------------------------------------------------------------


@contextmanager
def shared_records(
    *, tenant: Tenant, actor: Actor, scopes: Sequence[Scope] | None = None
) -> Iterator[tuple[Iterator[Record], datetime]]:
    """
    Enter a unit of work that yields the live records of shared scopes, and the time.

    Args:
        scopes: None for every shared scope of the tenant.

    Raises:
        InvalidScope: a scope is a person's.
    """
    for scope in scopes or ():
        check_shared(scope)
    caller = caller_of_terminal(tenant, actor.label)
    with unit_of_work(tenant_id=tenant.pk, actor=actor):
        yield _pages(caller, scopes), now()


def _pages(caller: Caller, scopes: Sequence[Scope] | None) -> Iterator[Record]:
    after = 0
    while True:
        found, _ = list_preferences(
            caller=caller, scopes=scopes or (), with_shared=scopes is None, after=after, most=PIECE
        )
        yield from found
        if len(found) < PIECE:
            return
        after = found[-1].id


def export_lines(
    *, tenant: Tenant, actor: Actor, scopes: Sequence[Scope] | None = None
) -> Iterator[str]:
    """
    Yield a heading, one record a line, and an end that counts them and proves all of it.

    Arguments and errors as for `shared_records`.
    """
    digest = hashlib.sha256()
    count = 0
    with shared_records(tenant=tenant, actor=actor, scopes=scopes) as (records, at):
        heading = {
            "format": FORMAT, "version": VERSION, "tenant": tenant.slug, "at": format_time(at),
        }  # fmt: skip
        for line in chain([json.dumps(heading)], map(Record.as_json, records)):
            digest.update(line.encode("utf-8") + b"\n")
            count += 1
            yield line
    yield json.dumps({"records": count - 1, "sha256": digest.hexdigest()})


# In ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One record to store, checked for form. `place` says where it stood, for messages."""

    place: str
    scope: Scope
    key: str
    write: Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What becomes of one record: ``stored``, ``same`` where it stands already, ``left_out``."""

    scope: str
    key: str
    outcome: Literal["stored", "same", "left_out"] = "left_out"
    why: str = ""

    def line(self) -> str:
        """Return the step as a person reads it."""
        sign = {"stored": "+", "same": "=", "left_out": "-"}[self.outcome]
        return f"{sign} {self.scope}/{self.key}" + (f": {self.why}" if self.why else "")


@dataclass(slots=True)
class Reader:
    """Collects items and what is wrong with them, so that one run names every fault."""

    items: list[Item] = field(default_factory=list)
    errors: list[FieldError] = field(default_factory=list)
    _seen: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, place: str, given: dict[str, Any]) -> None:
        """Check one record in the form that the API answers with."""
        try:
            scope = check_shared(Scope.parse(_text(given, "scope"), me=None, creating=True))
            key = check_key(_text(given, "key"), creating=True)
            first = self._seen.setdefault((str(scope), key), place)
            if first != place:
                raise ValidationError(f"The address stands in {first} already.", pointer="/key")
            self.items.append(Item(place=place, scope=scope, key=key, write=write_of(given)))
        except ServiceError as refusal:
            self.refuse(place, refusal)

    def refuse(self, place: str, refusal: ServiceError) -> None:
        """Note a refusal at its place."""
        for error in refusal.errors or (
            FieldError(pointer="", code=refusal.code, detail=refusal.detail),
        ):
            self.errors.append(replace(error, pointer=f"{place} {error.pointer}".strip()))

    def conclude(self) -> list[Item]:
        """
        Return the items.

        Raises:
            ValidationError: some were refused; `errors` names each.
        """
        if self.errors:
            first = self.errors[0]
            raise ValidationError(
                f"Nothing was imported. {first.code}: {first.detail}"
                if len(self.errors) == 1
                else f"Nothing was imported. {len(self.errors)} parts are refused.",
                errors=self.errors,
            )
        return self.items


def _text(given: dict[str, Any], name: str) -> str:
    text = given.get(name)
    if not isinstance(text, str):
        raise ValidationError("This is a text.", pointer=f"/{name}")
    return text


def read_lines(lines: Iterable[bytes]) -> list[Item]:
    """
    Return the records of an export, all of them checked for form.

    Raises:
        ValidationError: it is no such export, was cut or changed, or records are refused.
    """
    reader = Reader()
    digest = hashlib.sha256()
    end: dict[str, Any] | None = None
    count = 0
    for number, line in enumerate(lines, start=1):
        place = f"line {number}"
        if end is not None:
            raise ValidationError(f"{place}: something follows the end of the export.")
        try:
            given = read(line.rstrip(b"\r\n"))
        except ServiceError as refusal:
            raise ValidationError(f"{place} is not JSON: {refusal.detail}") from refusal
        if not isinstance(given, dict):
            raise ValidationError(f"{place} is no object.")
        if number == 1:
            if (given.get("format"), given.get("version")) != (FORMAT, VERSION):
                raise ValidationError(
                    f"The first line does not begin an export in {FORMAT} {VERSION}."
                )
        elif set(given) == {"records", "sha256"}:
            end = given
            continue
        else:
            count += 1
            reader.add(place, given)
        digest.update(line.rstrip(b"\r\n") + b"\n")
    if end is None:
        raise ValidationError("The export was cut: its last line is missing.")
    if end != {"records": count, "sha256": digest.hexdigest()}:
        raise ValidationError("The export was changed: its last line does not fit the others.")
    return reader.conclude()


def import_items(
    *, tenant: Tenant, actor: Actor, items: Sequence[Item], is_dry_run: bool = False
) -> Sequence[Step]:
    """
    Store records, all or none of them. What stands already is never overwritten.

    Args:
        is_dry_run: say what would be done.

    Raises:
        ValidationError: records are refused by their definitions; `errors` names each.
    """
    caller = caller_of_terminal(tenant, actor.label, reason=actor.reason)
    reader = Reader()
    steps: list[Step] = []
    with unit_of_work(tenant_id=tenant.pk, actor=actor):
        moment = now()
        # In the order of their addresses, like every change of several.
        for item in sorted(items, key=lambda one: (str(one.scope), one.key)):
            try:
                steps.append(_import(caller, item, moment))
            except ServiceError as refusal:
                reader.refuse(item.place, refusal)
        reader.conclude()
        if is_dry_run:
            take_back()
    return steps


def _import(caller: Caller, item: Item, now: datetime) -> Step:
    step = Step(scope=str(item.scope), key=item.key)
    until = item.write.deadline.expires_at
    if until is not None and until <= now:
        return replace(step, why="its deadline has passed")
    standing, _ = list_preferences(caller=caller, scopes=[item.scope], keys=[item.key])
    if standing:
        if standing[0].value_text == canonical(item.write.value):
            return replace(step, outcome="same")
        return replace(step, why="another value stands here")
    try:
        put_preference(caller=caller, scope=item.scope, key=item.key, write=item.write)
    except AlreadyExists:
        return replace(step, why="another value stands here")
    return replace(step, outcome="stored")
