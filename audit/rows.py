"""
Proof that each record's events follow each other, and that every live row is the one its last
event speaks of.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.db import connections

from audit.findings import SNAPSHOT, Finding, Tally, replayed
from audit.models import Captured

#: Rows per statement.
BATCH = 5000
#: Below every id that a table can hold.
_FIRST = -(2**63)


def check_links(
    model: type[Captured], tenant_id: int, using: str, *, covered: int
) -> Iterator[Finding]:
    """
    Follow each record from event to event: a version starts where the one before it ended.

    Args:
        covered: the last event that may be a record's first although something came before it,
            which retention took.
    """
    noun = model.noun
    record_id, event_id = _FIRST, _FIRST
    revision: str | None = None
    digest: str | None = None
    seen: dict[str, int] = {}
    while True:
        with connections[using].cursor() as cursor:
            cursor.execute(
                "SELECT record_id, id, action, revision_before, revision_after, row_digest FROM consentful_audit_event"
                " WHERE tenant_id = %s AND record = %s AND (record_id, id) > (%s, %s)"
                " ORDER BY record_id, id LIMIT %s",
                [tenant_id, noun, record_id, event_id, BATCH],
            )
            batch = cursor.fetchall()
        for current, event, action, before, after, own_digest in batch:
            if current != record_id:
                # Behind a cut, the events that led to the first one are gone.
                is_begun = event <= covered
                revision, digest = (before, own_digest) if is_begun else (None, None)
                seen = {}
            record_id, event_id = current, event
            is_snapshot = before == after and action.endswith(SNAPSHOT)
            if after is not None and after in seen and not is_snapshot:
                yield replayed(tenant_id, event, noun, current, seen[after])
                continue
            # A snapshot says that nothing changed.
            if before != revision or (is_snapshot and own_digest != digest):
                yield Finding(
                    code="link_broken",
                    tenant_id=tenant_id,
                    event_id=event,
                    record=noun,
                    record_id=current,
                    sentence=f"Event {event} does not go on where the events of {noun} {current}"
                    " before it ended: one of them is missing, inserted or out of place.",
                )
            revision, digest = after, own_digest
            if after is not None:
                seen[after] = event
        if len(batch) < BATCH:
            return


def check_rows(
    model: type[Captured], tenant_id: int, using: str, tally: Tally
) -> Iterator[Finding]:
    """Compare every live row with the last event about it."""
    noun, last = model.noun, _FIRST
    condition, parameters = owned(model, tenant_id)
    statement = (
        f"SELECT t.id, e.id IS NULL, e.revision_after IS NOT DISTINCT FROM t.revision,"  # noqa: S608  names of the schema alone
        f" e.row_digest IS NOT DISTINCT FROM {_DIGEST}"
        f" FROM {table_of(model, using)} AS t LEFT JOIN LATERAL ("
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


def check_absent_rows(model: type[Captured], tenant_id: int, using: str) -> Iterator[Finding]:
    """Find the records that the trail leaves alive and that have no row."""
    noun, last = model.noun, _FIRST
    condition, parameters = owned(model, tenant_id)
    statement = (
        "SELECT e.record_id, e.id, e.revision_after IS NOT NULL AND t.id IS NULL FROM ("  # noqa: S608  names of the schema alone
        "  SELECT DISTINCT ON (record_id) record_id, id, revision_after"
        "  FROM consentful_audit_event WHERE tenant_id = %s AND record = %s AND record_id > %s"
        f"  ORDER BY record_id, id DESC LIMIT {BATCH}"
        f" ) AS e LEFT JOIN {table_of(model, using)} AS t ON t.id = e.record_id AND {condition}"
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


#: As the table's capture function computes it, without the database's own function: its owner may have replaced
#: that by one that tells what the row once was. The time zone must be UTC: it shows in the text.
_TEXT = (
    "SELECT string_agg(key || '=' || value::text, ';' ORDER BY key COLLATE \"C\")"
    " FROM json_each(to_json(t)) WHERE value::text <> 'null'"
)
_DIGEST = f"encode(sha256(convert_to(t.salt || ';' || ({_TEXT}), 'UTF8')), 'hex')"

_ROW_SENTENCES: Mapping[str, str] = {
    "row_forged": "has no event: it was put there behind the trail's back.",
    "row_edited": "is not what its last event recorded: it was edited behind the trail's back.",
    "row_deleted": "has no row, and no event of its deletion: it was deleted behind the trail's back.",
    "row_rolled_back": "is an older version than its last event recorded: it was put back.",
}


def _name_revision(model: type[Captured], tenant_id: int, row_id: int, using: str) -> Finding:
    """Tell a row that was put back to an older version from one that is no version at all."""
    condition, parameters = owned(model, tenant_id)
    with connections[using].cursor() as cursor:
        cursor.execute(
            f"SELECT e.id FROM {table_of(model, using)} AS t JOIN consentful_audit_event AS e"  # noqa: S608  names of the schema alone
            " ON e.tenant_id = %s AND e.record = %s AND e.record_id = t.id"
            f" AND e.revision_after = t.revision AND e.row_digest = {_DIGEST}"
            f" WHERE {condition} AND t.id = %s ORDER BY e.id LIMIT 1",
            [tenant_id, model.noun, *parameters, row_id],
        )
        found = cursor.fetchone()
    code = "row_rolled_back" if found else "row_edited"
    return _row_finding(code, tenant_id, model.noun, row_id, event_id=found and found[0])


def owned(model: type[Captured], tenant_id: int) -> tuple[str, list[int]]:
    """Return the condition for the rows that capture attributes to a tenant."""
    if model.noun == "tenant":
        return "t.id = %s", [tenant_id]
    if not any(field.column == "tenant_id" for field in model._meta.concrete_fields):
        return ("true" if tenant_id == 0 else "false"), []
    if tenant_id == 0:
        return "t.tenant_id IS NULL", []
    return "t.tenant_id = %s", [tenant_id]


def table_of(model: type[Captured], using: str) -> str:
    return connections[using].ops.quote_name(model._meta.db_table)


@contextmanager
def in_utc(using: str) -> Iterator[None]:
    """Read rows as capture writes them, whichever time zone a host's connection is in."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT current_setting('TimeZone')")
        before = cursor.fetchone()[0]
        cursor.execute("SELECT set_config('TimeZone', 'UTC', true)")
    yield
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT set_config('TimeZone', %s, true)", [before])


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
