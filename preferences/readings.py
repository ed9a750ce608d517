"""
Who else read a person's records: noted beside the read, kept as one row per record, reader and day.

A read is noted in this process after its answer is known, and written with others a moment later, in
one statement on another thread: the hot read stays one statement. One's own reading leaves nothing.
"""

import logging
import os
from collections import OrderedDict
from collections.abc import Iterable
from datetime import UTC, date, datetime
from threading import Lock, Timer

from django.db import connections
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from audit.actors import SYSTEM
from preferences.conf import readings_kept
from preferences.models import Reading
from preferences.records import Record
from tenants.callers import Caller
from tenants.observation import JOBS, describe, note
from tenants.scopes import Scope
from tenants.units import store, unit_of_work

#: Seconds after which a noted reading is written.
DELAY = 1.0
#: Readings that wait at most. While the store is away, the oldest make room.
MOST_WAITING = 10_000
#: Readings of today that this process knows to be written, so that it writes none of them again.
MOST_KNOWN = 50_000
#: How often a reading is tried whose record somebody else is changing just then.
ATTEMPTS = 5

#: The tenant's id, the record's, and the reader.
type Noted = tuple[int, int, str]

_PERSONAL = str(Scope.of_subject("x")).removesuffix("x")

#: What waits, with how often it was tried.
_waiting: OrderedDict[Noted, int] = OrderedDict()
_known: OrderedDict[tuple[date, Noted], None] = OrderedDict()
_lock = Lock()
_timer: Timer | None = None


def note_readings(caller: Caller, records: Iterable[Record]) -> None:
    """Note that `caller` was shown these records. What is shared, or the caller's own, is nobody's to know."""
    today = datetime.now(UTC).date()
    for record in records:
        if not record.scope.startswith(_PERSONAL):
            continue
        if not caller.is_agent and caller.stands_for(record.scope.removeprefix(_PERSONAL)):
            continue
        noted = (caller.tenant_id, record.id, caller.username)
        if (today, noted) in _known:
            continue
        with _lock:
            _waiting.setdefault(noted, 0)
            while len(_waiting) > MOST_WAITING:
                _waiting.popitem(last=False)
            _wake()


def flush_readings() -> None:
    """Write what this process has noted so far, one statement per tenant. Outside a unit of work."""
    with _lock:
        noted = dict(_waiting)
        _waiting.clear()
    try:
        for tenant_id in dict.fromkeys(tenant_id for tenant_id, _, _ in noted):
            theirs = {one: attempts for one, attempts in noted.items() if one[0] == tenant_id}
            _write(tenant_id, theirs)
            noted = {one: attempts for one, attempts in noted.items() if one not in theirs}
    except Exception:
        with _lock:  # for the next time, in their old order
            for one, attempts in reversed(noted.items()):
                _waiting.setdefault(one, attempts)
                _waiting.move_to_end(one, last=False)
        raise


def note_disclosure(*, caller: Caller, subject: str) -> None:
    """Note that all of a person's records were shown to somebody else. Inside a unit of work."""
    with store().cursor() as cursor:
        cursor.execute(
            "INSERT INTO consentful_reading (tenant_id, subject_id, preference_id, reader, day, at)"
            " SELECT tenant_id, subject_id, id, %s,"
            "  (consentful_now() AT TIME ZONE 'UTC')::date, consentful_now()"
            " FROM (SELECT tenant_id, subject_id, id FROM consentful_preference"
            "  WHERE tenant_id = %s AND scope = %s"
            "  AND (expires_at IS NULL OR expires_at > (SELECT consentful_now()))"
            "  ORDER BY id FOR KEY SHARE SKIP LOCKED) AS shown"
            " ON CONFLICT DO NOTHING",
            [caller.username, caller.tenant_id, str(Scope.of_subject(subject))],
        )


def readings_about(*, tenant_id: int, subject: str) -> QuerySet[Reading]:
    """Return who else read what about one person. Inside a unit of work or a snapshot."""
    about = Reading.objects.filter(
        tenant_id=tenant_id,
        # The id first: the rows of one person are found by it.
        subject_id=RawSQL("consentful_subject_id(%s, %s)", [tenant_id, subject]),
    )
    return about.select_related("preference__purpose").only(
        # Not the values, which nobody asks for here.
        "reader", "day", "at", "preference__scope", "preference__key", "preference__purpose__slug",
    )  # fmt: skip


def purge_readings(*, tenant_id: int) -> int:
    """Drop the readings of one tenant that are older than they are kept. Inside a unit of work."""
    return Reading.objects.filter(
        tenant_id=tenant_id,
        day__lt=RawSQL("(consentful_now() AT TIME ZONE 'UTC' - %s)::date", [readings_kept()]),
    ).delete()[0]


def _write(tenant_id: int, noted: dict[Noted, int]) -> None:
    """
    Write the readings of one tenant.

    A record that is being written or deleted just then is passed over, since whoever does that
    must not wait for us, nor we for them in a circle; it is tried again.
    """
    with unit_of_work(tenant_id=tenant_id, actor=SYSTEM), store().cursor() as cursor:
        cursor.execute(
            """
            WITH held AS (
                SELECT id, subject_id FROM consentful_preference
                WHERE tenant_id = %s AND id = ANY (%s::bigint[]) AND subject_id IS NOT NULL
                ORDER BY id FOR KEY SHARE SKIP LOCKED
            ), written AS (
                INSERT INTO consentful_reading
                    (tenant_id, subject_id, preference_id, reader, day, at)
                SELECT %s, held.subject_id, held.id, noted.reader,
                       (consentful_now() AT TIME ZONE 'UTC')::date, consentful_now()
                FROM unnest(%s::bigint[], %s::text[]) AS noted (record, reader)
                JOIN held ON held.id = noted.record
                ON CONFLICT DO NOTHING
            )
            SELECT id FROM held
            """,
            [
                tenant_id, [one[1] for one in noted], tenant_id,
                [one[1] for one in noted], [one[2] for one in noted],
            ],
        )  # fmt: skip
        held = {record_id for (record_id,) in cursor.fetchall()}
    today = datetime.now(UTC).date()
    with _lock:
        for one, attempts in noted.items():
            if one[1] in held:
                _known[today, one] = None
            elif attempts + 1 < ATTEMPTS:  # else it is most likely gone
                _waiting.setdefault(one, attempts + 1)
                _wake()
        while len(_known) > MOST_KNOWN:
            _known.popitem(last=False)


def _wake() -> None:
    """Have what waits written soon. Whoever calls holds the lock."""
    global _timer
    if _timer is None:
        _timer = Timer(DELAY, _flush_in_background)
        _timer.daemon = True
        _timer.start()


def _flush_in_background() -> None:
    global _timer
    with _lock:
        _timer = None
    try:
        flush_readings()
    except Exception as fault:  # noqa: BLE001  nobody waits for it: it is tried with the next one
        note(JOBS, logging.WARNING, "job_refused", job="flush_readings", **describe(fault))
    finally:
        connections.close_all()  # this thread's own, which ends here


def _start_anew() -> None:
    """A forked process has none of its parent's threads, and leaves it what the parent noted."""
    global _timer, _lock
    _lock = Lock()
    _timer = None
    _waiting.clear()


os.register_at_fork(after_in_child=_start_anew)
