"""Answers about preferences. Nothing here changes a record."""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock

from audit.actors import SYSTEM
from preferences.exceptions import refusal_of
from preferences.models import Definition
from preferences.records import COLUMNS, Record
from preferences.schemas import Schema, compile_schema
from tenants.callers import Caller, check_reach
from tenants.scopes import Scope, check_key
from tenants.units import store, unit_of_work


def get_preference(*, caller: Caller, scope: Scope, key: str) -> Record:
    """
    Return the live record at one address, in one round trip.

    Raises:
        PermissionDenied: the caller does not reach this person's data.
        ConsentRequired, PurposeNotAllowed: the gate; asked before existence is told.
        NotFound: nothing live stands there.
    """
    key = check_key(key)
    check_reach(caller, scope.subject)
    with store().cursor() as cursor:
        cursor.execute(
            f"SELECT outcome, purpose, {COLUMNS} FROM"  # noqa: S608  constant text
            " consentful_preference_get(%s, %s, %s, %s, %s, %s)",
            [caller.tenant_id, str(scope), scope.kind, scope.subject, key, caller.agent_id],
        )
        outcome, purpose, *row = cursor.fetchone()
    record = Record.from_row(row, purpose)
    if outcome != "found" or record is None:
        raise refusal_of(outcome, scope=scope, key=key, purpose=purpose, record=None)
    return record


@dataclass(frozen=True, slots=True)
class Declaration:
    """What this process knows of a definition: good while its revision is the stored one."""

    revision: str
    scopes: frozenset[str]
    schema: Schema


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
        known = row and Declaration(
            revision=row.revision, scopes=frozenset(row.scopes), schema=compile_schema(row.schema)
        )
        with _lock:
            _declarations[address] = known
            while len(_declarations) > _MOST_DECLARATIONS:
                _declarations.popitem(last=False)
    return known if known is not None and kind in known.scopes else None
