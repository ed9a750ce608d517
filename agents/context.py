"""
The facts that one request of a language model may use: asked for by key, chosen without a model.

The product asks, not the model. What goes out is written down, so that it can be told afterwards
which version of which record a model was shown.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from agents.notes import Note, write_notes
from audit.services import Injection, record_event, record_injections
from consent.selectors import get_purpose, list_states
from preferences.lookups import Lookup, look_up
from preferences.models import Definition
from preferences.places import persons_of, readable_scopes
from preferences.readings import note_readings
from preferences.records import Record
from preferences.values import check_value
from tenants.callers import Caller
from tenants.documents import JSONValue, escape
from tenants.exceptions import InvalidKey, ServiceError, ValidationError
from tenants.scopes import Scope, check_key
from tenants.times import format_time
from tenants.units import database, now, unit_of_work

MOST_KEYS = 100
MOST_SCOPES = 20
#: Characters; the smaller one is an empty list.
LEAST_BUDGET = 2
MOST_BUDGET = 1_000_000

Format = Literal["json", "text"]
Reason = Literal["missing", "consent", "purpose", "budget"]
Origin = Literal["stored", "default", "current"]

#: Why a key stays out, by what a read alone would be refused with. An objection and a restriction
#: are the person's own no, as a missing consent is.
REASONS: Mapping[str, Reason] = {
    "consent_required": "consent",
    "objected": "consent",
    "restricted": "consent",
    "purpose_not_allowed": "purpose",
    "not_found": "missing",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """
    One fact that goes out.

    Attributes:
        value_text: JSON text.
        origin: ``current`` is what the request itself said; ``default`` a definition's.
        purpose: slug of what governs it; None where nothing does.
        record: what is stored, where it is `stored`.
    """

    key: str
    value_text: str
    origin: Origin
    purpose: str | None = None
    record: Record | None = None

    def as_json(self) -> str:
        """Return the item as JSON text; a stored value travels through unparsed."""
        record = self.record
        expires_at = record.expires_at if record else None
        facts = {
            "scope": record.scope if record else None,
            "revision": record.revision if record else None,
            "origin": self.origin,
            "purpose": self.purpose,
            "source": record.source if record else None,
            "updated_at": format_time(record.updated_at) if record else None,
            "expires_at": format_time(expires_at) if expires_at else None,
        }
        return f'{{"key": {_text(self.key)}, "value": {self.value_text}, {_text(facts)[1:]}'

    def as_note(self, now: datetime) -> Note:
        """Return the item as a line of a prompt; what is stored nowhere stands since just now."""
        record = self.record
        return Note(
            key=self.key,
            value_text=self.value_text,
            scope=record.scope if record else None,
            source=record.source if record else f"{self.origin}",
            date=(record.updated_at if record else now).date(),
        )


@dataclass(frozen=True, slots=True)
class Omission:
    """A key that was asked for and stays out."""

    key: str
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """
    What one request may use, and what it may not.

    Attributes:
        items: in the order in which the keys were asked for.
        valid_until: when the first of its values or consents ends; None where none does.
        text: the items as text for a prompt, where that was asked for.
    """

    items: Sequence[Item]
    omitted: Sequence[Omission]
    valid_until: datetime | None
    text: str | None = None

    def as_json(self) -> str:
        """Return the context as JSON text, as the HTTP interface answers it."""
        omitted = [{"key": one.key, "reason": one.reason} for one in self.omitted]
        until = format_time(self.valid_until) if self.valid_until else None
        text = "" if self.text is None else f', "text": {_text(self.text)}'
        return (
            f'{{"items": {_listed(self.items)}, "omitted": {_text(omitted)},'
            f' "valid_until": {_text(until)}{text}}}'
        )


def build_context(
    *,
    caller: Caller,
    purpose: str,
    scopes: Sequence[Scope],
    keys: Sequence[str],
    current: Mapping[str, JSONValue] | None = None,
    format: Format = "json",
    budget_chars: int | None = None,
) -> Context:
    """
    Return the facts that may be shown to a language model for one purpose, and write down which.

    For each key the first of these that is there: its value in `current`; the record in the first of
    `scopes` that holds one the caller may read for this purpose now; its definition's default.
    Scopes of other persons that the caller does not stand for are passed over, as `find_effective`
    does. One unit of work under the fences of the persons: once a withdrawal has been answered,
    nothing that rested on it goes out.

    Args:
        purpose: slug. What is governed by another one stays out; what nothing governs does not.
        scopes: 1 to 20, the most special one first.
        keys: 1 to 100; nothing else goes out.
        current: what this request itself says, by key. It wins, and is neither stored nor checked
            against a schema.
        format: ``text`` adds the lines for a prompt.
        budget_chars: code points that the text may have with its frame, or, without a text, the
            JSON text of the items. What does not fit stays out whole.

    Raises:
        NotFound: there is no such purpose.
        ValidationError, InvalidKey, InvalidJSON, InvalidValue, TooLarge: a part is off.
        StoreUnavailable: the database is an older copy that awaits its erasures.
    """
    keys = _check_keys(keys)
    given = _check_current(current or {})
    _check_limits(purpose, scopes, format, budget_chars)
    readable = readable_scopes(caller, scopes)
    persons = persons_of(readable)
    with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor, subjects=persons):
        get_purpose(tenant_id=caller.tenant_id, slug=purpose)
        found = {
            key: Item(key=key, value_text=given[key], origin="current")
            for key in keys
            if key in given
        }
        reasons = _find_stored(caller, readable, keys, purpose, found)
        _find_defaults(caller.tenant_id, {scope.kind for scope in scopes}, purpose, found, reasons)
        candidates = [found[key] for key in keys if key in found]
        if format == "text":
            moment = now()
            text, kept = write_notes(
                [item.as_note(moment) for item in candidates], budget=budget_chars
            )
        else:
            text, kept = None, _fit(candidates, budget_chars)
        items = [candidates[index] for index in kept]
        reasons |= dict.fromkeys(
            {one.key for one in candidates} - {one.key for one in items}, "budget"
        )
        _record(caller, purpose, persons, items)
        valid_until = _find_end(caller.tenant_id, items)
    note_readings(caller, [item.record for item in items if item.record is not None])
    return Context(
        items=items,
        omitted=[Omission(key, reasons[key]) for key in keys if key in reasons],
        valid_until=valid_until,
        text=text,
    )


# What is asked for ---------------------------------------------------------------------------


def _check_keys(keys: Sequence[str]) -> list[str]:
    if not 1 <= len(keys) <= MOST_KEYS:
        raise ValidationError(f"keys are 1 to {MOST_KEYS} keys.", pointer="/keys")
    return list(dict.fromkeys(_key(key, f"/keys/{index}") for index, key in enumerate(keys)))


def _check_current(current: Mapping[str, JSONValue]) -> dict[str, str]:
    """Return the request's own values as canonical text by key."""
    if len(current) > MOST_KEYS:
        raise ValidationError(f"current has at most {MOST_KEYS} members.", pointer="/current")
    given: dict[str, str] = {}
    for name, value in current.items():
        pointer = f"/current/{escape(name)}"
        key = _key(name, pointer)
        if key in given:
            raise ValidationError("The same key stands twice.", pointer=pointer)
        try:
            given[key] = check_value(value)
        except ServiceError as refusal:
            refusal.errors = tuple(replace(one, pointer=pointer) for one in refusal.errors)
            raise
    return given


def _key(text: str, pointer: str) -> str:
    try:
        return check_key(text)
    except InvalidKey as refusal:
        raise InvalidKey(refusal.detail, pointer=pointer) from None


def _check_limits(
    purpose: str, scopes: Sequence[Scope], chosen: str, budget_chars: int | None
) -> None:
    if not purpose:
        raise ValidationError("Name the purpose.", pointer="/purpose")
    if not 1 <= len(scopes) <= MOST_SCOPES:
        raise ValidationError(f"scopes are 1 to {MOST_SCOPES} scopes.", pointer="/scopes")
    if chosen not in ("json", "text"):
        raise ValidationError("The format is json or text.", pointer="/format")
    if budget_chars is not None and not LEAST_BUDGET <= budget_chars <= MOST_BUDGET:
        raise ValidationError(
            f"A budget is {LEAST_BUDGET} to {MOST_BUDGET} characters.", pointer="/budget_chars"
        )


# What is there -------------------------------------------------------------------------------


def _find_stored(
    caller: Caller,
    scopes: Sequence[Scope],
    keys: Sequence[str],
    purpose: str,
    found: dict[str, Item],
) -> dict[str, Reason]:
    """Add the first usable record of each key; return why the others stay out."""
    reasons: dict[str, Reason] = {}
    for scope in scopes:
        # What a more special scope answered is not read again: nobody would be shown it.
        open_keys = [key for key in keys if key not in found]
        for key, one in zip(open_keys, _look_up(caller, scope, open_keys), strict=True):
            reason = _reason_of(one, purpose)
            if one.record is not None and reason is None:
                found[key] = Item(
                    key=key, value_text=one.record.value_text, origin="stored",
                    purpose=one.purpose, record=one.record,
                )  # fmt: skip
            elif reason is not None and reason != "missing":
                reasons.setdefault(key, reason)
    return {key: reasons.get(key, "missing") for key in keys if key not in found}


def _look_up(caller: Caller, scope: Scope, keys: Sequence[str]) -> list[Lookup]:
    return look_up(caller=caller, scope=scope, keys=keys) if keys else []


def _reason_of(one: Lookup, purpose: str) -> Reason | None:
    """Return why an address gives nothing for this purpose; None where it does."""
    if one.purpose is not None and one.purpose != purpose:
        return "purpose"
    return None if one.outcome == "found" else REASONS[one.outcome]


def _find_defaults(
    tenant_id: int,
    kinds: set[str],
    purpose: str,
    found: dict[str, Item],
    reasons: dict[str, Reason],
) -> None:
    """Move keys that have a default from `reasons` to `found`."""
    if not reasons:
        return
    definitions = Definition.objects.filter(
        tenant_id=tenant_id, key__in=list(reasons), retired_at=None
    ).exclude(default=None)
    for definition in definitions.select_related("purpose"):
        if not kinds & set(definition.scopes):
            continue
        if definition.purpose.slug == purpose:
            found[definition.key] = Item(
                key=definition.key, value_text=str(definition.default), origin="default",
                purpose=purpose,
            )  # fmt: skip
            del reasons[definition.key]
        elif reasons[definition.key] == "missing":
            reasons[definition.key] = "purpose"


# What goes out -------------------------------------------------------------------------------


def _fit(items: Sequence[Item], budget_chars: int | None) -> list[int]:
    """Return the indexes of the items whose JSON text fits, in their order."""
    if budget_chars is None:
        return list(range(len(items)))
    kept: list[int] = []
    size = len(_listed(()))
    for index, item in enumerate(items):
        more = len(item.as_json()) + (len(_BETWEEN) if kept else 0)
        if size + more <= budget_chars:
            size += more
            kept.append(index)
    return kept


def _record(caller: Caller, purpose: str, persons: Sequence[str], items: Sequence[Item]) -> None:
    """Leave an event for each record that goes out, or one that says that none did."""
    shown = [item.record for item in items if item.record is not None]
    if shown:
        record_injections(
            [
                Injection(
                    record_id=one.id, revision=one.revision, subject=Scope.parse(one.scope).subject,
                    scope=one.scope, key=one.key, purpose=one.purpose,
                )
                for one in shown
            ],
            tenant_id=caller.tenant_id, actor=caller.actor, using=database(),
        )  # fmt: skip
    else:
        record_event(
            "context.injected", tenant_id=caller.tenant_id, actor=caller.actor, purpose=purpose,
            subject=persons[0] if len(persons) == 1 else None, using=database(),
        )  # fmt: skip


def _find_end(tenant_id: int, items: Sequence[Item]) -> datetime | None:
    """Return when the first value, or the first consent that lets one out, ends."""
    records = [item.record for item in items if item.record is not None]
    ends = [one.expires_at for one in records]
    purposes: dict[str, set[str]] = {}
    for one in records:
        subject = Scope.parse(one.scope).subject
        if subject is not None and one.purpose is not None:
            purposes.setdefault(subject, set()).add(one.purpose)
    for subject, slugs in purposes.items():
        states = list_states(tenant_id=tenant_id, subject=subject, slugs=sorted(slugs))
        ends += [state.expires_at for state in states]
    return min((end for end in ends if end is not None), default=None)


_text = json.JSONEncoder(ensure_ascii=False).encode
_BETWEEN = ", "


def _listed(items: Sequence[Item]) -> str:
    return f"[{_BETWEEN.join(item.as_json() for item in items)}]"
