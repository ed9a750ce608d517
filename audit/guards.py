"""
The triggers that make the trail complete and lasting: which there must be, and whether they are.
"""

from collections.abc import Iterator, Mapping

from django.apps import apps
from django.db import connections

from audit.capture import OUTDATED
from audit.findings import Finding
from audit.models import Captured, Cut, Event, Seal

#: A trigger's function and the bits of `pg_trigger.tgtype`: when it fires, and on what.
type Trigger = tuple[str, int]

BEFORE_INSERT: int = 1 + 2 + 4  # FOR EACH ROW, BEFORE, INSERT
AFTER_INSERT: int = 1 + 4  # FOR EACH ROW, AFTER, INSERT
BEFORE_WRITE: int = 1 + 2 + 4 + 16  # FOR EACH ROW, BEFORE, INSERT, UPDATE
AFTER_CHANGE: int = 1 + 4 + 8 + 16  # FOR EACH ROW, AFTER, INSERT, DELETE, UPDATE
BEFORE_REWRITE: int = 1 + 2 + 8 + 16  # FOR EACH ROW, BEFORE, DELETE, UPDATE
BEFORE_TRUNCATE: int = 2 + 32

#: What makes the trail complete, on every captured table, beside the capture function of each.
CAPTURING: Mapping[str, Trigger] = {
    "consentful_revise": ("consentful_revise", BEFORE_WRITE),
    "consentful_no_truncate": ("consentful_refuse", BEFORE_TRUNCATE),
}
#: What makes the trail itself lasting: the trigger of each table that guards its rows.
LASTING: Mapping[type[Event] | type[Seal] | type[Cut], str] = {
    Event: "consentful_keep_event",
    Seal: "consentful_keep_seal",
    Cut: "consentful_refuse",
}


def captured_models() -> list[type[Captured]]:
    """Return the models of every table under capture, in an order that does not change."""
    models = [
        model
        for model in apps.get_models()
        if issubclass(model, Captured) and not model._meta.proxy
    ]
    return sorted(models, key=lambda model: model.noun)


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
            yield _missing(name, table)


def _missing(name: str, table: str) -> Finding:
    return Finding(
        code="trigger_missing",
        tenant_id=0,
        record=table,
        sentence=f"The trigger {name} of the table {table} is absent, disabled or altered.",
    )


def check_capture(using: str) -> Iterator[Finding]:
    """Find the triggers that are not in force: whatever happens meanwhile leaves no trace."""
    for model in captured_models():
        expected = dict(CAPTURING) | {
            "consentful_capture": (f"consentful_capture_{model.noun}", AFTER_CHANGE)
        }
        yield from check_triggers(model._meta.db_table, expected, using=using, noun=model.noun)
    with connections[using].cursor() as cursor:
        cursor.execute(OUTDATED)
        altered = [table for table, *_ in cursor.fetchall()]
    for table in altered:
        yield _missing("consentful_capture", table)
    for trail, function in LASTING.items():
        expected = {
            "consentful_insert_only": (function, BEFORE_REWRITE),
            "consentful_insert_only_all": ("consentful_refuse", BEFORE_TRUNCATE),
        }
        if trail is Seal:
            expected["consentful_follow"] = ("consentful_follow", BEFORE_INSERT)
        for table in _with_parts(trail._meta.db_table, using):
            yield from check_triggers(table, expected, using=using)


def _with_parts(table: str, using: str) -> list[str]:
    """Return a table and the parts that it is made of: a trigger can rest on one of them alone."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = to_regclass(%s)"
            " ORDER BY inhrelid",
            [table],
        )
        return [table, *(name for (name,) in cursor.fetchall())]
