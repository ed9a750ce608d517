"""
The hash chain over a tenant's events: what a link covers, and the sealer that adds links.

What a link covers is written down twice, here and in ``sql/seal.sql``, so that a check does not
believe the database's own functions.
"""

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import InternalError, connections
from psycopg.errors import ReadOnlySqlTransaction

from audit.models import Event

#: What the first link of every chain follows.
GENESIS = "0" * 64
#: Events sealed in one transaction: each holds the tenant's head and stands in nobody's way for long.
BATCH = 10_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def array_text(items: Sequence[str | None]) -> str:
    """Return a JSON array of texts, character for character as PostgreSQL's `json_build_array`."""
    return json.dumps(items, ensure_ascii=False)


def content(event: Event) -> str:
    """Return the text that a seal covers of an event: the same as `consentful_event_content`."""
    return array_text(
        [
            str(event.pk),
            str(event.tenant_id),
            str((event.at - _EPOCH) // _MICROSECOND),
            str(event.transaction),
            str(event.cluster),
            event.action,
            event.outcome,
            event.record,
            None if event.record_id is None else str(event.record_id),
            None if event.subject_id is None else str(event.subject_id),
            event.actor_id,
            event.purpose,
            _joined(event.changed),
            event.revision_before,
            event.revision_after,
            event.row_digest,
            event.target_digest,
            event.actor_digest,
        ]
    )


def chain_hash(sequence: int, previous: str, content: str) -> str:
    """Return the hash of the link at `sequence` that follows the link with hash `previous`."""
    return _sha256(array_text([str(sequence), previous, content]))


def target_columns(event: Event) -> list[str | None]:
    """Return the readable columns about whom and what the event concerns, in the digest's order."""
    return [
        event.subject,
        event.scope,
        event.key,
        event.on_behalf_of,
        event.reason,
        event.request_id,
    ]


def target_digest(event: Event) -> str:
    """Return the digest that the target's readable columns ought to have, at this very place."""
    return _readable_digest(event, event.target_salt, target_columns(event))


def actor_digest(event: Event) -> str:
    """Return the digest that the actor's readable column ought to have, at this very place."""
    return _readable_digest(event, event.actor_salt, [event.actor])


def _readable_digest(event: Event, salt: str | None, columns: Sequence[str | None]) -> str:
    return _sha256(f"{salt};{array_text([str(event.tenant_id), str(event.pk), *columns])}")


def _joined(names: Sequence[Any]) -> str:
    """Return names as the database joins them, but never the same text for what is no list of names."""
    if all(isinstance(name, str) and name and "," not in name for name in names):
        return ",".join(names)
    return array_text([str(names)])


def seal(tenant_id: int, using: str) -> int:
    """
    Add every event of one tenant that can be sealed to its chain; return how many.

    Call it outside a transaction: each batch then commits by itself, and what this connection
    has not committed keeps nothing waiting. On a replica nothing is sealed: what its primary has
    sealed is what there is.
    """
    total = 0
    while True:
        try:
            with connections[using].cursor() as cursor:
                cursor.execute("SELECT consentful_seal(%s, %s)", [tenant_id, BATCH])
                sealed = int(cursor.fetchone()[0])
        except InternalError as fault:
            if isinstance(fault.__cause__, ReadOnlySqlTransaction):
                return total
            raise
        total += sealed
        if sealed < BATCH:
            return total


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
