"""
Proof that a tenant's chain is whole: each link after the one before it, each event as it was
sealed, and none beside the chain.
"""

from collections.abc import Iterator, Sequence

from django.db import connections
from django.db.models import BooleanField
from django.db.models.expressions import RawSQL

from audit.findings import Finding, Tally, finding, replayed
from audit.models import Cut, Event, Seal
from audit.sealing import GENESIS, actor_digest, chain_hash, content, target_columns, target_digest

#: Rows per statement.
BATCH = 5000
#: Below every id that a table can hold.
_FIRST = -(2**63)
#: Mismatches of one batch among which an exchange of places is looked for.
_MOST_EXCHANGED = 200


def last_cut(tenant_id: int, using: str) -> Cut | None:
    """Return the cut that the chain starts after, if retention ever took a prefix of it."""
    return Cut.objects.using(using).filter(tenant_id=tenant_id).order_by("-sequence").first()


def check_chain(tenant_id: int, using: str, tally: Tally) -> Iterator[Finding]:
    """Compute the whole chain again, link by link in its order, from its start or its last cut."""
    with connections[using].cursor() as cursor:
        # One statement: the sealer moves both at once.
        cursor.execute(
            "SELECT (SELECT max(sequence) FROM consentful_audit_seal WHERE tenant_id = %s),"
            " sequence, hash FROM (SELECT %s::bigint AS tenant) AS asked"
            " LEFT JOIN consentful_audit_head ON tenant_id = tenant",
            [tenant_id, tenant_id],
        )
        last, head_sequence, head_hash = cursor.fetchone()
    cut = last_cut(tenant_id, using)
    start, previous = (cut.sequence, cut.hash) if cut else (0, GENESIS)
    last, expected = last or start, start + 1
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
                yield finding(
                    "seal_deleted", tenant_id,
                    f"Links {expected} to {link.sequence - 1} of the chain are gone.",
                )  # fmt: skip
            elif link.previous != previous:
                yield finding(
                    "chain_broken", tenant_id,
                    f"Link {link.sequence} of the chain does not follow link {link.sequence - 1}.",
                    event_id=link.event_id,
                )  # fmt: skip
            expected, previous = link.sequence + 1, link.hash
            event = events.get(link.event_id)
            if event is None:
                yield finding(
                    "event_deleted", tenant_id,
                    f"Event {link.event_id}, link {link.sequence} of the chain, is gone.",
                    event_id=link.event_id,
                )  # fmt: skip
                continue
            if chain_hash(link.sequence, link.previous, content(event)) != link.hash:
                misfits.append((link, event))
            yield from check_readable(event)
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
            yield finding("head_deleted", tenant_id, "The head of the chain is gone.")
    elif head_sequence > last:
        yield finding(
            "chain_rolled_back", tenant_id,
            f"The chain ends with link {last}, and once had {head_sequence}: its end was rolled back.",
        )  # fmt: skip
    elif head_sequence < last:
        yield finding(
            "head_rolled_back", tenant_id,
            f"The head says {head_sequence} links, and the chain has {last}.",
        )  # fmt: skip
    elif head_hash != last_hash:
        yield finding(
            "head_altered", tenant_id, f"The head does not hold the hash of the last link, {last}."
        )


def _name_misfits(tenant_id: int, misfits: Sequence[tuple[Seal, Event]]) -> Iterator[Finding]:
    """Tell events that exchanged their places from events that were edited."""
    contents = [content(event) for _, event in misfits[:_MOST_EXCHANGED]]
    for link, event in misfits:
        if any(chain_hash(link.sequence, link.previous, one) == link.hash for one in contents):
            yield finding(
                "chain_reordered", tenant_id,
                f"Event {event.pk} took the place of another one, link {link.sequence} of the chain.",
                event=event,
            )  # fmt: skip
        else:
            yield finding(
                "event_edited", tenant_id,
                f"Event {event.pk} is not what link {link.sequence} of the chain sealed.",
                event=event,
            )  # fmt: skip


def check_readable(event: Event) -> Iterator[Finding]:
    """Compare the readable columns with their digests, unless an erasure blanked them."""
    for salt, columns, stored, expected, what in (
        (
            event.target_salt,
            target_columns(event),
            event.target_digest,
            target_digest(event),
            "target",
        ),
        (event.actor_salt, [event.actor], event.actor_digest, actor_digest(event), "actor"),
    ):
        # Blanked together or not at all: without its salt a column proves nothing.
        is_blank = salt is None and not any(column is not None for column in columns)
        if not is_blank and (salt is None or stored != expected):
            yield finding(
                "event_edited", event.tenant_id,
                f"The {what} that event {event.pk} names is not the one that was recorded there.",
                event=event,
            )  # fmt: skip


def check_unsealed(tenant_id: int, using: str, tally: Tally) -> Iterator[Finding]:
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
                yield finding(
                    "event_inserted", tenant_id,
                    f"Event {event.pk} stands outside the chain, where no event can come any more:"
                    " it was inserted, or its link was taken.",
                    event=event,
                )  # fmt: skip
            else:
                tally.waiting += 1
            yield from check_readable(event)
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


def check_copies(tenant_id: int, using: str) -> Iterator[Finding]:
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
        yield replayed(tenant_id, event_id, record, record_id, first)
