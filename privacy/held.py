"""What is held about a person, with why and whether it can be changed, for people to read."""

import hmac
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from hashlib import sha256

from django.conf import settings
from django.db.models import Count, Max, Q, QuerySet
from django.db.models.expressions import RawSQL

from consent.models import Purpose
from consent.restrictions import list_restricted_keys
from consent.selectors import find_refusal
from preferences.holds import held
from preferences.models import Definition, Preference, Reading, UndeclaredRule, Writer
from preferences.records import Record
from tenants.callers import Caller
from tenants.documents import JSONValue
from tenants.exceptions import NotFound
from tenants.scopes import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Somebody else who read a record: on how many days, and the last of them."""

    name: str
    days: int
    last_day: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """
    One record about a person.

    Attributes:
        handle: names it in an address, without telling its key.
        title: what it is in words, where its definition says so.
        closed: why it cannot be changed, as a code; None where it can.
        is_restricted: whether the person stopped the use of this one record.
        is_on_hold: whether a legal hold keeps it as it is.
        readers: who else read it lately, the last one first.
    """

    handle: str
    record: Record
    purpose: Purpose
    title: str
    schema: JSONValue
    closed: str | None
    is_restricted: bool = False
    is_on_hold: bool = False
    readers: Sequence[Reader] = field(default=())


def list_held(
    *, caller: Caller, subject: str, after: tuple[int, int] = (0, 0), most: int
) -> list[Held]:
    """
    Return live records by purpose, then in the order of creation. Inside a unit of work.

    Args:
        after: purpose and id of the last record of the page before.
    """
    purpose, last = after
    rows = (
        _rows(caller, subject)
        .filter(Q(purpose_id__gt=purpose) | Q(purpose_id=purpose, pk__gt=last))
        .order_by("purpose_id", "pk")
    )
    return _describe(caller, subject, rows[:most])


def get_held(*, caller: Caller, subject: str, handle: str) -> Held:
    """
    Return one live record by its handle. Inside a unit of work.

    Raises:
        NotFound: it is gone, or was never there.
    """
    for key in _rows(caller, subject).values_list("key", flat=True):
        if hmac.compare_digest(handle_of(caller.tenant_id, subject, key), handle):
            found = _describe(caller, subject, _rows(caller, subject).filter(key=key))
            if found:
                return found[0]
    raise NotFound


def handle_of(tenant_id: int, subject: str, key: str) -> str:
    """Return what stands for a key in an address: keys tell about a person, too."""
    address = f"consentful.page:{tenant_id}:{len(subject)}:{subject}:{key}"
    return hmac.new(settings.SECRET_KEY.encode(), address.encode(), sha256).hexdigest()[:32]


def _rows(caller: Caller, subject: str) -> QuerySet[Preference]:
    return Preference.objects.filter(
        tenant_id=caller.tenant_id, scope=str(Scope.of_subject(subject))
    ).exclude(expires_at__lte=RawSQL("consentful_now()", []))


def _describe(caller: Caller, subject: str, rows: Iterable[Preference]) -> list[Held]:
    rows = list(rows)
    tenant = caller.tenant_id
    definitions = {
        one.key: one
        for one in Definition.objects.filter(
            tenant_id=tenant, key__in=[row.key for row in rows], scopes__contains=["user"]
        )
    }
    rule = UndeclaredRule.objects.filter(tenant_id=tenant, kind="user", is_allowed=True).first()
    # Every one of the tenant's, which has few: most of them are about to be asked for.
    purposes = Purpose.objects.filter(tenant_id=tenant).in_bulk()
    shut = {
        pk: find_refusal(caller=caller, subject=subject, purpose_id=pk) for pk in sorted(purposes)
    }
    restricted = {key for _, key in list_restricted_keys(tenant_id=tenant, subjects=[subject])}
    ids = [row.pk for row in rows]
    on_hold = set(
        held(Preference.objects.filter(tenant_id=tenant, pk__in=ids)).values_list("pk", flat=True)
    )
    readers = _readers(tenant, rows)
    found = []
    for row in rows:
        definition = definitions.get(row.key)
        purpose = purposes[row.purpose_id or 0]  # what is a person's has one
        found.append(
            Held(
                handle=handle_of(caller.tenant_id, subject, row.key),
                record=_record(row, purpose),
                purpose=purpose,
                title=definition.description if definition else "",
                schema=json.loads(definition.schema) if definition else True,
                closed="hold"
                if row.pk in on_hold
                else "guardian"
                if caller.is_guardian
                else _closed(row, definition, rule, shut)
                or ("restricted" if row.key in restricted else None)
                or ("archived" if row.archived_at else None),
                is_restricted=row.key in restricted,
                is_on_hold=row.pk in on_hold,
                readers=readers.get(row.pk, ()),
            )
        )
    return found


def _closed(
    row: Preference,
    definition: Definition | None,
    rule: UndeclaredRule | None,
    shut: dict[int, str | None],
) -> str | None:
    """Return why a write would be refused, in the order in which it would be."""
    governing = definition.purpose_id if definition else rule.purpose_id if rule else None
    if governing is None or (definition is not None and definition.retired_at is not None):
        return "undeclared"
    if definition is not None and Writer.SUBJECT not in definition.writers:
        return "writers"
    return shut[governing] or shut.get(row.purpose_id or 0)


def _readers(tenant_id: int, rows: Sequence[Preference]) -> dict[int, list[Reader]]:
    """Return by record who else read it."""
    found: dict[int, list[Reader]] = {}
    readers = (
        Reading.objects.filter(tenant_id=tenant_id, preference_id__in=[row.pk for row in rows])
        .values_list("preference_id", "reader")
        .annotate(last_day=Max("day"), days=Count("pk"))
        .order_by("-last_day", "reader")
    )
    for record_id, name, last_day, days in readers:
        found.setdefault(record_id, []).append(Reader(name=name, days=days, last_day=last_day))
    return found


def _record(row: Preference, purpose: Purpose) -> Record:
    return Record(
        id=row.pk,
        scope=row.scope,
        key=row.key,
        value_text=row.value,
        revision=row.revision,
        tags=_texts(row.tags),
        metadata_text=row.metadata,
        source=row.source,
        actor=row.actor,
        provenance_text=row.provenance,
        seen_count=row.seen_count,
        created_at=row.created_at,
        updated_at=row.updated_at,
        expires_at=row.expires_at,
        archived_at=row.archived_at,
        purpose=purpose.slug,
    )


def _texts(tags: Sequence[str]) -> Sequence[str]:
    return tuple(tags)
