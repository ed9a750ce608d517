"""
Proof that a tenant's trail is whole, and that every live row is the one its last event speaks of.

Must stay generic: what another app keeps beside the trail, it compares itself and appends its
check to `extra_checks`. Everything is read under the row-level security of a tenant that the
caller has announced, in keyset batches, and each comparison of two tables is one statement: the
service goes on writing meanwhile, and two statements would see two states.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.apps import apps
from django.db import connections
from django.db.models import BooleanField
from django.db.models.expressions import RawSQL

from audit.models import Captured, Event, Seal
from audit.sealing import GENESIS, chain_hash, content, salted_digest

#: Rows per statement.
BATCH = 5000
#: Below every id that a table can hold.
_FIRST = -(2**63)
#: Mismatches of one batch among which an exchange of places is looked for.
_MOST_EXCHANGED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    One thing that is not as the trail says.

    Attributes:
        code: what kind of thing, for programs.
        record: noun of the record concerned, as in `Event.record`; a table for `trigger_missing`.
        sentence: names the thing by ids alone, never by a value.
    """

    code: str
    tenant_id: int
    event_id: int | None = None
    record: str | None = None
    record_id: int | None = None
    sentence: str


@dataclass(slots=True)
class Tally:
    """
    What a verification has seen so far.

    Attributes:
        waiting: events that a running transaction keeps from being sealed; no finding.
        transaction: the transaction they wait for.
        advance: called with the number of events and rows after each batch.
    """

    events: int = 0
    rows: int = 0
    waiting: int = 0
    transaction: int | None = None
    advance: Callable[[int], None] = lambda count: None


type Check = Callable[[int, str], Iterable[Finding]]

#: Checks of other apps, each called with a tenant's id and a connection's alias.
extra_checks: list[Check] = []

#: A trigger's function and the bits of `pg_trigger.tgtype`: when it fires, and on what.
type Trigger = tuple[str, int]

BEFORE_INSERT: int = 1 + 2 + 4  # FOR EACH ROW, BEFORE, INSERT
AFTER_INSERT: int = 1 + 4  # FOR EACH ROW, AFTER, INSERT
BEFORE_WRITE: int = 1 + 2 + 4 + 16  # FOR EACH ROW, BEFORE, INSERT, UPDATE
AFTER_CHANGE: int = 1 + 4 + 8 + 16  # FOR EACH ROW, AFTER, INSERT, DELETE, UPDATE
BEFORE_REWRITE: int = 1 + 2 + 8 + 16  # FOR EACH ROW, BEFORE, DELETE, UPDATE
BEFORE_TRUNCATE: int = 2 + 32

#: What makes the trail complete, on every captured table.
CAPTURING: Mapping[str, Trigger] = {
    "consentful_revise": ("consentful_revise", BEFORE_WRITE),
    "consentful_capture": ("consentful_capture", AFTER_CHANGE),
    "consentful_no_truncate": ("consentful_refuse", BEFORE_TRUNCATE),
}
#: What makes the trail itself lasting.
LASTING: Mapping[str, Trigger] = {
    "consentful_insert_only": ("consentful_refuse", BEFORE_REWRITE),
    "consentful_insert_only_all": ("consentful_refuse", BEFORE_TRUNCATE),
}


def captured_models() -> list[type[Captured]]:
    """Return the models of every table under capture, in an order that does not change."""
    models = [
        model
        for model in apps.get_models()
        if issubclass(model, Captured) and not model._meta.proxy
    ]
    return sorted(models, key=lambda model: model.noun)


def verify(tenant_id: int, *, using: str, tally: Tally | None = None) -> list[Finding]:
    """
    Compare one tenant's chain, events and live rows; return what does not fit.

    The tenant must have been announced to the transaction, and its events be sealed before.

    Args:
        tenant_id: 0 stands for the installation: rows that no tenant owns.
        using: alias of the connection whose transaction announced the tenant.
        tally: counts what was seen, and what waits.
    """
    tally = tally or Tally()
    findings = [
        *_check_chain(tenant_id, using, tally),
        *_check_unsealed(tenant_id, using, tally),
        *_check_copies(tenant_id, using),
    ]
    with _in_utc(using):
        for model in captured_models():
            findings += _check_links(model, tenant_id, using)
            findings += _check_rows(model, tenant_id, using, tally)
            findings += _check_absent_rows(model, tenant_id, using)
    findings += _check_capture(using)
    for check in extra_checks:
        findings += check(tenant_id, using)
    return list(dict.fromkeys(findings))


def check_triggers(
    table: str, expected: Mapping[str, Trigger], *, using: str, noun: str | None = None
) -> Iterator[Finding]:
    """
    Find the triggers of a table that are absent, disabled or not the ones that were installed.

    Args:
        noun: what the capture trigger must call the record.
    """
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT tgname, tgfoid::regproc::text, tgtype, split_part(encode(tgargs, 'escape'), "
            " '\\000', 1)"
            " FROM pg_trigger WHERE tgrelid = to_regclass(%s) AND NOT tgisinternal"
            " AND tgenabled IN ('O', 'A') AND tgqual IS NULL AND tgattr = ''",
            [table],
        )
        found = {name: (function, kind, argument) for name, function, kind, argument in cursor}
    for name, (function, kind) in expected.items():
        installed = found.get(name, ("", 0, ""))
        is_same = installed[:2] == (function, kind)
        if name == "consentful_capture" and noun is not None:
            is_same = is_same and installed[2] == noun
        if not is_same:
            yield Finding(
                code="trigger_missing",
                tenant_id=0,
                record=table,
                sentence=f"The trigger {name} of the table {table} is absent, disabled or altered.",
            )


# The chain ---------------------------------------------------------------------------------------


def _check_chain(tenant_id: int, using: str, tally: Tally) -> Iterator[Finding]:
    """Compute the whole chain again, link by link in its order."""
    with connections[using].cursor() as cursor:
        # One statement: the sealer moves both at once.
        cursor.execute(
            "SELECT (SELECT max(sequence) FROM consentful_audit_seal WHERE tenant_id = %s),"
            " sequence, hash FROM (SELECT %s::bigint AS tenant) AS asked"
            " LEFT JOIN consentful_audit_head ON tenant_id = tenant",
            [tenant_id, tenant_id],
        )
        last, head_sequence, head_hash = cursor.fetchone()
    last = last or 0
    expected, previous = 1, GENESIS
    while batch := list(
        Seal.objects.using(using)
        .filter(tenant_id=tenant_id, sequence__gte=expected, sequence__lte=last)
        .order_by("sequence")[:BATCH]
    ):
        events = (
            Event.objects.using(using)
            .filter(tenant_id=tenant_id)
            .in_bulk([link.event_id for link in batch])
        )
        misfits: list[tuple[Seal, Event]] = []
        for link in batch:
            if link.sequence != expected:
                yield _finding(
                    "seal_deleted", tenant_id,
                    f"Links {expected} to {link.sequence - 1} of the chain are gone.",
                )  # fmt: skip
            elif link.previous != previous:
                yield _finding(
                    "chain_broken", tenant_id,
                    f"Link {link.sequence} of the chain does not follow link {link.sequence - 1}.",
                    event_id=link.event_id,
                )  # fmt: skip
            expected, previous = link.sequence + 1, link.hash
            event = events.get(link.event_id)
            if event is None:
                yield _finding(
                    "event_deleted", tenant_id,
                    f"Event {link.event_id}, link {link.sequence} of the chain, is gone.",
                    event_id=link.event_id,
                )  # fmt: skip
                continue
            if chain_hash(link.sequence, link.previous, content(event)) != link.hash:
                misfits.append((link, event))
            yield from _check_readable(event)
        yield from _name_misfits(tenant_id, misfits)
        tally.events += len(batch)
        tally.advance(len(batch))
    yield from _check_head(tenant_id, last, previous, head_sequence, head_hash)


def _check_head(
    tenant_id: int, last: int, last_hash: str, head_sequence: int | None, head_hash: str | None
) -> Iterator[Finding]:
    """Compare the end of the chain with the head, which the sealer keeps beside it."""
    if head_sequence is None:
        if last:
            yield _finding("head_deleted", tenant_id, "The head of the chain is gone.")
    elif head_sequence > last:
        yield _finding(
            "chain_rolled_back", tenant_id,
            f"The chain ends with link {last}, and once had {head_sequence}: its end was rolled back.",
        )  # fmt: skip
    elif head_sequence < last:
        yield _finding(
            "head_rolled_back", tenant_id,
            f"The head says {head_sequence} links, and the chain has {last}.",
        )  # fmt: skip
    elif head_hash != last_hash:
        yield _finding(
            "head_altered", tenant_id, f"The head does not hold the hash of the last link, {last}."
        )


def _name_misfits(tenant_id: int, misfits: Sequence[tuple[Seal, Event]]) -> Iterator[Finding]:
    """Tell events that exchanged their places from events that were edited."""
    contents = [content(event) for _, event in misfits[:_MOST_EXCHANGED]]
    for link, event in misfits:
        if any(chain_hash(link.sequence, link.previous, one) == link.hash for one in contents):
            yield _finding(
                "chain_reordered", tenant_id,
                f"Event {event.pk} took the place of another one, link {link.sequence} of the chain.",
                event=event,
            )  # fmt: skip
        else:
            yield _finding(
                "event_edited", tenant_id,
                f"Event {event.pk} is not what link {link.sequence} of the chain sealed.",
                event=event,
            )  # fmt: skip


def _check_readable(event: Event) -> Iterator[Finding]:
    """Compare the readable columns with their digests, unless an erasure blanked them."""
    target = [
        event.subject,
        event.scope,
        event.key,
        event.on_behalf_of,
        event.reason,
        event.request_id,
    ]
    for salt, items, digest, what in (
        (event.target_salt, target, event.target_digest, "target"),
        (event.actor_salt, [event.actor], event.actor_digest, "actor"),
    ):
        if salt is None:
            # Blanked together or not at all: without its salt a column proves nothing.
            is_whole = not any(item is not None for item in items)
        else:
            is_whole = salted_digest(salt, items) == digest
        if not is_whole:
            yield _finding(
                "event_edited", event.tenant_id,
                f"The {what} that event {event.pk} names is not the one that was recorded.",
                event=event,
            )  # fmt: skip


# Events ------------------------------------------------------------------------------------------


def _check_unsealed(tenant_id: int, using: str, tally: Tally) -> Iterator[Finding]:
    """Tell events that wait to be sealed from those that the sealer never gets to see."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT pg_snapshot_xmin(now)::text::bigint, pg_snapshot_xmax(now)::text::bigint"
            " FROM pg_current_snapshot() AS now"
        )
        oldest, youngest = cursor.fetchone()
    last = _FIRST
    while (
        batch := list(
            Event.objects.using(using)
            .filter(tenant_id=tenant_id, seal=None, pk__gt=last)
            .annotate(is_passed=RawSQL(_IS_PASSED, [], BooleanField()))  # noqa: S611  a constant
            .order_by("pk")[:BATCH]
        )
    ):
        for event in batch:
            if event.is_passed:
                yield _finding(
                    "event_inserted", tenant_id,
                    f"Event {event.pk} stands outside the chain, where no event can come any more:"
                    " it was inserted, or its link was taken.",
                    event=event,
                )  # fmt: skip
            else:
                tally.waiting += 1
            yield from _check_readable(event)
        last = batch[-1].pk
        tally.events += len(batch)
        tally.advance(len(batch))
    if oldest < youngest:
        tally.transaction = oldest
    else:
        tally.waiting = 0  # nothing runs: they are younger than the last seal, that is all


#: Whether the sealer passed an event by, or it claims a transaction that has not begun. Asked in
#: the statement that reads the event, since the sealer goes on meanwhile.
_IS_PASSED = """
    EXISTS (
        SELECT FROM consentful_audit_head AS head
        WHERE head.tenant_id = consentful_audit_event.tenant_id
          AND head.cluster = consentful_cluster()
          AND consentful_audit_event.transaction < head.horizon
          AND consentful_audit_event.id < head.resume
    ) OR consentful_audit_event.cluster = consentful_cluster()
     AND consentful_audit_event.transaction
         >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint
"""


def _check_copies(tenant_id: int, using: str) -> Iterator[Finding]:
    """Find events that were written twice: every genuine one has salts, so digests, of its own."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT e.id, e.record, e.record_id, twice.first FROM consentful_audit_event e JOIN ("
            " SELECT actor_digest, min(id) AS first FROM consentful_audit_event"
            " WHERE tenant_id = %s GROUP BY actor_digest HAVING count(*) > 1) AS twice"
            " ON twice.actor_digest = e.actor_digest AND e.id > twice.first"
            " WHERE e.tenant_id = %s ORDER BY e.id",
            [tenant_id, tenant_id],
        )
        copies = cursor.fetchall()
    for event_id, record, record_id, first in copies:
        yield _replayed(tenant_id, event_id, record, record_id, first)


def _check_links(model: type[Captured], tenant_id: int, using: str) -> Iterator[Finding]:
    """Follow each record from event to event: a version starts where the one before it ended."""
    noun = model.noun
    record_id, event_id = _FIRST, _FIRST
    revision: str | None = None
    seen: dict[str, int] = {}
    while True:
        with connections[using].cursor() as cursor:
            cursor.execute(
                "SELECT record_id, id, revision_before, revision_after FROM consentful_audit_event"
                " WHERE tenant_id = %s AND record = %s AND (record_id, id) > (%s, %s)"
                " ORDER BY record_id, id LIMIT %s",
                [tenant_id, noun, record_id, event_id, BATCH],
            )
            batch = cursor.fetchall()
        for current, event, before, after in batch:
            if current != record_id:
                revision, seen = None, {}
            record_id, event_id = current, event
            if after is not None and after in seen:
                yield _replayed(tenant_id, event, noun, current, seen[after])
                continue
            if before != revision:
                yield Finding(
                    code="link_broken",
                    tenant_id=tenant_id,
                    event_id=event,
                    record=noun,
                    record_id=current,
                    sentence=f"Event {event} does not go on where the events of {noun} {current}"
                    " before it ended: one of them is missing, inserted or out of place.",
                )
            revision = after
            if after is not None:
                seen[after] = event
        if len(batch) < BATCH:
            return


# Live rows ---------------------------------------------------------------------------------------


def _check_rows(
    model: type[Captured], tenant_id: int, using: str, tally: Tally
) -> Iterator[Finding]:
    """Compare every live row with the last event about it."""
    noun, last = model.noun, _FIRST
    condition, parameters = _owned(model, tenant_id)
    statement = (
        f"SELECT t.id, e.id IS NULL, e.revision_after IS NOT DISTINCT FROM t.revision,"  # noqa: S608  names of the schema alone
        f" e.row_digest IS NOT DISTINCT FROM {_DIGEST}"
        f" FROM {_table(model, using)} AS t LEFT JOIN LATERAL ("
        "  SELECT id, revision_after, row_digest FROM consentful_audit_event"
        "  WHERE tenant_id = %s AND record = %s AND record_id = t.id ORDER BY id DESC LIMIT 1"
        f" ) AS e ON true WHERE {condition} AND t.id > %s ORDER BY t.id LIMIT {BATCH}"
    )
    while True:
        with connections[using].cursor() as cursor:
            cursor.execute(statement, [tenant_id, noun, *parameters, last])
            batch = cursor.fetchall()
        for row_id, is_unheard_of, is_current, is_same in batch:
            if is_unheard_of:
                yield _row_finding("row_forged", tenant_id, noun, row_id)
            elif not is_current:
                yield _name_revision(model, tenant_id, row_id, using)
            elif not is_same:
                yield _row_finding("row_edited", tenant_id, noun, row_id)
        tally.rows += len(batch)
        tally.advance(len(batch))
        if len(batch) < BATCH:
            return
        last = batch[-1][0]


def _check_absent_rows(model: type[Captured], tenant_id: int, using: str) -> Iterator[Finding]:
    """Find the records that the trail leaves alive and that have no row."""
    noun, last = model.noun, _FIRST
    condition, parameters = _owned(model, tenant_id)
    statement = (
        "SELECT e.record_id, e.id, e.revision_after IS NOT NULL AND t.id IS NULL FROM ("  # noqa: S608  names of the schema alone
        "  SELECT DISTINCT ON (record_id) record_id, id, revision_after"
        "  FROM consentful_audit_event WHERE tenant_id = %s AND record = %s AND record_id > %s"
        f"  ORDER BY record_id, id DESC LIMIT {BATCH}"
        f" ) AS e LEFT JOIN {_table(model, using)} AS t ON t.id = e.record_id AND {condition}"
        " ORDER BY e.record_id"
    )
    while True:
        with connections[using].cursor() as cursor:
            cursor.execute(statement, [tenant_id, noun, last, *parameters])
            batch = cursor.fetchall()
        for record_id, event_id, is_absent in batch:
            if is_absent:
                yield _row_finding("row_deleted", tenant_id, noun, record_id, event_id=event_id)
        if len(batch) < BATCH:
            return
        last = batch[-1][0]


#: As `consentful_capture` computes it. The time zone must be UTC: it shows in the row's text.
_DIGEST = (
    "encode(sha256(convert_to(t.salt || ';' || consentful_row_text(to_json(t)), 'UTF8')), 'hex')"
)

_ROW_SENTENCES: Mapping[str, str] = {
    "row_forged": "has no event: it was put there behind the trail's back.",
    "row_edited": "is not what its last event recorded: it was edited behind the trail's back.",
    "row_deleted": "has no row, and no event of its deletion: it was deleted behind the trail's back.",
    "row_rolled_back": "is an older version than its last event recorded: it was put back.",
}


def _name_revision(model: type[Captured], tenant_id: int, row_id: int, using: str) -> Finding:
    """Tell a row that was put back to an older version from one that is no version at all."""
    condition, parameters = _owned(model, tenant_id)
    with connections[using].cursor() as cursor:
        cursor.execute(
            f"SELECT e.id FROM {_table(model, using)} AS t JOIN consentful_audit_event AS e"  # noqa: S608  names of the schema alone
            " ON e.tenant_id = %s AND e.record = %s AND e.record_id = t.id"
            f" AND e.revision_after = t.revision AND e.row_digest = {_DIGEST}"
            f" WHERE {condition} AND t.id = %s ORDER BY e.id LIMIT 1",
            [tenant_id, model.noun, *parameters, row_id],
        )
        found = cursor.fetchone()
    code = "row_rolled_back" if found else "row_edited"
    return _row_finding(code, tenant_id, model.noun, row_id, event_id=found and found[0])


def _owned(model: type[Captured], tenant_id: int) -> tuple[str, list[int]]:
    """Return the condition for the rows that capture attributes to a tenant."""
    if model.noun == "tenant":
        return "t.id = %s", [tenant_id]
    if not any(field.column == "tenant_id" for field in model._meta.concrete_fields):
        return ("true" if tenant_id == 0 else "false"), []
    if tenant_id == 0:
        return "t.tenant_id IS NULL", []
    return "t.tenant_id = %s", [tenant_id]


def _table(model: type[Captured], using: str) -> str:
    return connections[using].ops.quote_name(model._meta.db_table)


@contextmanager
def _in_utc(using: str) -> Iterator[None]:
    """Read rows as capture writes them, whichever time zone a host's connection is in."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT current_setting('TimeZone')")
        before = cursor.fetchone()[0]
        cursor.execute("SELECT set_config('TimeZone', 'UTC', true)")
    yield
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT set_config('TimeZone', %s, true)", [before])


# What guards them --------------------------------------------------------------------------------


def _check_capture(using: str) -> Iterator[Finding]:
    """Find the triggers that are not in force: whatever happens meanwhile leaves no trace."""
    for model in captured_models():
        yield from check_triggers(model._meta.db_table, CAPTURING, using=using, noun=model.noun)
    for trail in (Event, Seal):
        yield from check_triggers(trail._meta.db_table, LASTING, using=using)


def _finding(
    code: str,
    tenant_id: int,
    sentence: str,
    *,
    event: Event | None = None,
    event_id: int | None = None,
) -> Finding:
    return Finding(
        code=code,
        tenant_id=tenant_id,
        event_id=event.pk if event else event_id,
        record=event.record if event else None,
        record_id=event.record_id if event else None,
        sentence=sentence,
    )


def _replayed(
    tenant_id: int, event_id: int, record: str | None, record_id: int | None, first: int
) -> Finding:
    return Finding(
        code="event_replayed",
        tenant_id=tenant_id,
        event_id=event_id,
        record=record,
        record_id=record_id,
        sentence=f"Event {event_id} is a copy of event {first}.",
    )


def _row_finding(
    code: str, tenant_id: int, noun: str, row_id: int, *, event_id: int | None = None
) -> Finding:
    return Finding(
        code=code,
        tenant_id=tenant_id,
        event_id=event_id,
        record=noun,
        record_id=row_id,
        sentence=f"{noun} {row_id} {_ROW_SENTENCES[code]}",
    )
