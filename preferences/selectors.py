"""Answers about preferences. Nothing here changes a record."""

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from django.db.models import QuerySet

from audit.actors import SYSTEM
from consent.restrictions import list_restricted_keys
from consent.selectors import find_refusal
from preferences.decisions import count_read
from preferences.exceptions import refusal_of
from preferences.models import Definition
from preferences.readings import note_readings
from preferences.records import Record
from preferences.resolution import Effective, resolve
from preferences.schemas import Schema, compile_schema
from preferences.transitions import find_faults, states_of
from tenants.callers import Caller, check_reach
from tenants.documents import JSONValue
from tenants.exceptions import FieldError
from tenants.personal import PIECE
from tenants.restores import check_current
from tenants.scopes import Scope, check_key
from tenants.statements import fetch_row
from tenants.units import store, unit_of_work


def get_preference(*, caller: Caller, scope: Scope, key: str) -> Record:
    """
    Return the live record at one address, in one round trip.

    Raises:
        PermissionDenied: the caller does not reach this person's data.
        ConsentRequired, PurposeNotAllowed: the gate; asked before existence is told.
        NotFound: nothing live stands there.
        StoreUnavailable: the database is an older copy that awaits its erasures.
    """
    key = check_key(key)
    check_reach(caller, scope.subject)
    if scope.subject is not None:
        check_current()
    answer = fetch_row(
        "SELECT * FROM consentful_preference_get(%s, %s, %s, %s, %s, %s)",
        [caller.tenant_id, *arguments_of_get(caller, scope, key).values()],
    )
    return conclude_get(caller, scope, key, answer)


def arguments_of_get(caller: Caller, scope: Scope, key: str) -> dict[str, Any]:
    """Return the arguments of `consentful_preference_get` behind the tenant."""
    return {
        "scope": str(scope),
        "kind": scope.kind,
        "subject": scope.subject,
        "key": key,
        "agent": caller.agent_id,
    }


def conclude_get(caller: Caller, scope: Scope, key: str, answer: Sequence[Any] | None) -> Record:
    """Return the record that a `consentful_answer` holds, or raise the refusal that it tells."""
    outcome, purpose, record = Record.from_answer(answer)
    count_read(outcome, scope=scope, purpose=purpose)
    if outcome != "found" or record is None:
        raise refusal_of(outcome, scope=scope, key=key, purpose=purpose, record=None)
    note_readings(caller, (record,))
    return record


@dataclass(frozen=True, slots=True)
class Declaration:
    """What this process knows of a definition: good while its revision is the stored one."""

    revision: str
    scopes: frozenset[str]
    schema: Schema
    #: What a value's status may be; None where nothing is said of it.
    states: frozenset[str] | None

    def errors(self, value: JSONValue) -> list[FieldError]:
        """Return what is wrong with a value; nothing where it fits."""
        found = self.schema.errors(value)
        return found if found or self.states is None else find_faults(self.states, value)


#: Compiled definitions by (tenant, key); None where there is none. Never trusted: a write names
#: the revision it was checked against, and the database refuses an older one.
_declarations: OrderedDict[tuple[int, str], Declaration | None] = OrderedDict()
_lock = Lock()
_MOST_DECLARATIONS = 4096


def find_declaration(
    *, tenant_id: int, key: str, kind: str, reload: bool = False
) -> Declaration | None:
    """Return the definition of `key` where it names this kind of scope, compiled once."""
    address = (tenant_id, key)
    with _lock:
        known = None if reload else _declarations.get(address)
    if reload or address not in _declarations:
        with unit_of_work(tenant_id=tenant_id, actor=SYSTEM):
            row = Definition.objects.filter(tenant_id=tenant_id, key=key).first()
        known = (
            None
            if row is None
            else Declaration(
                revision=row.revision,
                scopes=frozenset(row.scopes),
                schema=compile_schema(row.schema),
                states=row.transitions and states_of(json.loads(row.transitions)),
            )
        )
        with _lock:
            _declarations[address] = known
            while len(_declarations) > _MOST_DECLARATIONS:
                _declarations.popitem(last=False)
    return known if known is not None and kind in known.scopes else None


@dataclass(frozen=True, slots=True)
class Withheld:
    """A purpose whose matching records were left out, and why. Never how many."""

    purpose: str
    reason: str


#: The columns of a `Record` and its purpose, for lists.
LISTED = (
    "p.id, p.scope, p.key, p.value::text, p.revision, p.tags, p.metadata::text, p.source, p.actor,"
    " p.provenance::text, p.seen_count, p.created_at, p.updated_at, p.expires_at, p.archived_at, u.slug"
)


def list_preferences(
    *,
    caller: Caller,
    scopes: Sequence[Scope],
    with_shared: bool = False,
    keys: Sequence[str] | None = None,
    key_prefix: str | None = None,
    tags: Sequence[str] = (),
    purpose: str | None = None,
    after: int = 0,
    most: int | None = None,
    is_archived: bool = False,
    newest: int | None = None,
) -> tuple[list[Record], list[Withheld]]:
    """
    Return live records in the order of creation, and the purposes that the gate withholds.

    Inside a unit of work that fences the persons of `scopes`: several statements decide, and a
    withdrawal must not be answered between them.

    Args:
        scopes: exact scopes; `with_shared` adds every shared one.
        key_prefix: literal; no character is special.
        tags: all of them must be on a record.
        after: id of the last record of the page before.
        is_archived: list what is archived, and that alone.
        newest: only so many of each exact scope, those created last; in no order, and not noted
            as read: whoever shows some of them does that.
    """
    where = (
        " FROM consentful_preference p LEFT JOIN consentful_purpose u"
        " ON u.tenant_id = p.tenant_id AND u.id = p.purpose_id"
        " WHERE p.tenant_id = %s AND (p.scope = ANY (%s::text[]) OR (%s AND p.subject_id IS NULL))"
        " AND (p.expires_at IS NULL OR p.expires_at > (SELECT consentful_now()))"
        " AND (%s::text[] IS NULL OR p.key = ANY (%s::text[]))"
        " AND (%s::text IS NULL OR p.key ^@ %s::text) AND p.tags::text[] @> %s::text[]"
        " AND (%s::text IS NULL OR u.slug = %s::text)"
        f" AND p.archived_at IS {'NOT ' if is_archived else ''}NULL"
    )
    names = None if keys is None else list(keys)

    def filtered(asked: Sequence[Scope], with_shared: bool) -> list[Any]:
        return [
            caller.tenant_id, [str(scope) for scope in asked], with_shared, names, names,
            key_prefix, key_prefix, list(tags), purpose, purpose,
        ]  # fmt: skip

    filters = filtered(scopes, with_shared)
    # What is nobody's has no gate to be asked, and may be hundreds of thousands of records.
    of_persons = [scope for scope in scopes if scope.subject is not None]
    personal: list[tuple[Any, ...]] = []
    with store().cursor() as cursor:
        if of_persons:
            # The purposes that match decide what is asked of the gate.
            cursor.execute(
                f"SELECT d.scope, d.purpose, d.slug, s.restricted FROM ("  # noqa: S608  constant text
                f" SELECT DISTINCT p.scope, p.subject_id, u.id AS purpose, u.slug{where}"
                "  AND p.subject_id IS NOT NULL) d"
                " JOIN consentful_subject s ON s.tenant_id = %s AND s.id = d.subject_id",
                [*filtered(of_persons, False), caller.tenant_id],
            )
            personal = cursor.fetchall()
        refused: dict[tuple[str, int], Withheld] = {}
        for scope_text, purpose_id, slug, _ in personal:
            code = find_refusal(
                caller=caller, subject=scope_text.removeprefix("user::"), purpose_id=purpose_id
            )
            if code is not None:
                refused[scope_text, purpose_id] = Withheld(slug, code)
        open_pairs = [(scope, one) for scope, one, *_ in personal if (scope, one) not in refused]
        withheld = {(one.purpose, one.reason) for one in refused.values()}
        shut = _list_restricted(caller.tenant_id, personal)
        if shut:
            cursor.execute(
                f"SELECT DISTINCT u.slug{where} AND {_AMONG} AND {_AMONG_KEYS}",
                [*filters, *_columns(open_pairs), *_columns(shut)],
            )
            withheld |= {(slug, "restricted") for (slug,) in cursor.fetchall()}
        gated = (
            f"SELECT {LISTED}{where} AND (p.subject_id IS NULL OR {_AMONG}) AND NOT {_AMONG_KEYS}"
        )
        gates = [*filters, *_columns(open_pairs), *_columns(shut)]
        if newest is None:
            cursor.execute(f"{gated} AND p.id > %s ORDER BY p.id LIMIT %s", [*gates, after, most])
        else:
            # From the end of each scope's index: however much a scope holds, little is read.
            cursor.execute(
                "SELECT one.* FROM unnest(%s::text[]) AS asked (scope) CROSS JOIN LATERAL"  # noqa: S608  constant text
                f" ({gated} AND p.scope = asked.scope ORDER BY p.id DESC LIMIT %s) AS one",
                [[str(scope) for scope in scopes], *gates, newest],
            )
        rows = cursor.fetchall()
    records = [Record.from_row(row, slug) for *row, slug in rows]
    if newest is None:
        note_readings(caller, records)
    return records, [Withheld(*pair) for pair in sorted(withheld)]


_AMONG = "(p.scope, p.purpose_id) IN (SELECT * FROM unnest(%s::text[], %s::bigint[]))"
_AMONG_KEYS = "(p.scope, p.key) IN (SELECT * FROM unnest(%s::text[], %s::text[]))"


def _columns(pairs: Sequence[tuple[str, Any]]) -> tuple[list[str], list[Any]]:
    return [one for one, _ in pairs], [other for _, other in pairs]


def _list_restricted(tenant_id: int, personal: Sequence[Any]) -> list[tuple[str, str]]:
    """Return scope and key of the single records that are restricted; asked only where some are."""
    scopes = {scope for scope, _, _, restricted in personal if restricted is not None}
    found = list_restricted_keys(
        tenant_id=tenant_id, subjects=[scope.removeprefix("user::") for scope in sorted(scopes)]
    )
    return [(f"user::{subject}", key) for subject, key in found]


def list_personal_data(*, caller: Caller, subject: str, key: str | None = None) -> list[Record]:
    """
    Return every live record about a person, whatever the gate says. Inside a unit of work.

    Args:
        key: only the record of this key.
    """
    return list(personal_records(tenant_id=caller.tenant_id, subject=subject, key=key))


def personal_records(
    *, tenant_id: int, subject: str, key: str | None = None, piece: int = PIECE
) -> Iterator[Record]:
    """
    Yield every live record about a person in pieces. Inside a unit of work or a snapshot.

    Args:
        key: only the record of this key.
        piece: records per statement.
    """
    last = 0
    while True:
        with store().cursor() as cursor:
            cursor.execute(
                f"SELECT {LISTED} FROM consentful_preference p LEFT JOIN consentful_purpose u"  # noqa: S608
                " ON u.tenant_id = p.tenant_id AND u.id = p.purpose_id"
                " WHERE p.tenant_id = %s AND p.scope = %s AND p.id > %s"
                " AND (%s::text IS NULL OR p.key = %s::text)"
                " AND (p.expires_at IS NULL OR p.expires_at > (SELECT consentful_now()))"
                " ORDER BY p.id LIMIT %s",
                [tenant_id, str(Scope.of_subject(subject)), last, key, key, piece],
            )
            rows = cursor.fetchall()
        for *row, slug in rows:
            yield Record.from_row(row, slug)
        if len(rows) < piece:
            return
        last = rows[-1][0]


def list_definitions(*, tenant_id: int) -> QuerySet[Definition]:
    """Return the definitions in force, in the order of their keys. Inside a unit of work."""
    return (
        Definition.objects.filter(tenant_id=tenant_id, retired_at=None)
        .select_related("purpose")
        .order_by("key")
    )


def find_effective(
    *,
    caller: Caller,
    scopes: Sequence[Scope],
    kinds: Iterable[str],
    keys: Sequence[str] | None = None,
) -> tuple[Sequence[Effective], list[Withheld]]:
    """
    Return what applies over `scopes` in the caller's order, then the definitions' defaults.

    Inside a unit of work that fences their persons. Scopes out of the caller's reach are left out by whoever calls.

    Args:
        kinds: of scope that were asked for, those out of reach included: their defaults apply.
        keys: only these; None for every key found there and every default of `kinds`.
    """
    records, withheld = list_preferences(caller=caller, scopes=scopes, keys=keys)
    defaults = {
        definition.key: definition.default
        for definition in list_definitions(tenant_id=caller.tenant_id)
        if definition.default is not None and set(kinds) & set(definition.scopes)
    }
    stored = {(record.scope, record.key): record for record in records}
    if keys is None:
        keys = sorted({key for _, key in stored} | set(defaults))
    return resolve([str(scope) for scope in scopes], stored, defaults, keys), withheld
