"""
The table of events in parts, so that retention drops tables instead of deleting rows.

Works as the owner of the tables alone. What a part is stands in ``sql/partitions.sql``.
"""

from django.db import connections, transaction
from psycopg import sql


def has_parts(*, using: str) -> bool:
    """Whether the table of events is made of parts."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT relkind = 'p' FROM pg_class WHERE oid = 'consentful_audit_event'::regclass"
        )
        return bool(cursor.fetchone()[0])


def split(*, ahead: int, using: str) -> str:
    """
    Close the part that takes new events, and begin the next one; return its name.

    The events that stand are read once, beside whoever writes. What was begun is taken back if
    the last step cannot have its lock.

    Args:
        ahead: the closed part ends so many ids behind the newest event: more than are written
            while this runs.
    """
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT last_value + %s FROM consentful_audit_event_id_seq", [ahead])
        (bound,) = cursor.fetchone()
        cursor.execute("SELECT consentful_bound_part(%s)", [bound])
        part = sql.Identifier(cursor.fetchone()[0])
        is_split = False
        try:
            cursor.execute(_on(part, "VALIDATE CONSTRAINT consentful_event_bounds"))
            cursor.execute("SELECT consentful_split_part(%s)", [bound])
            (name,) = cursor.fetchone()
            is_split = True
        finally:
            if not is_split:
                # It would refuse every event once the ids have come that far.
                cursor.execute(_on(part, "DROP CONSTRAINT IF EXISTS consentful_event_bounds"))
        # Autovacuum looks after each part, and not at the whole.
        cursor.execute("ANALYZE consentful_audit_event")
    return str(name)


def drop_covered(*, using: str) -> int:
    """Drop the oldest parts of which every event is cut; return how many events are gone."""
    total = 0
    while True:
        with transaction.atomic(using=using), connections[using].cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', '0', true)")
            cursor.execute("SELECT consentful_drop_part()")
            (dropped,) = cursor.fetchone()
        if dropped is None:
            return total
        total += dropped


def _on(part: sql.Identifier, what: str) -> sql.Composed:
    return sql.SQL("ALTER TABLE {} " + what).format(part)
