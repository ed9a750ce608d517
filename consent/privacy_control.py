"""
What Global Privacy Control says about purposes that share data: no, once, until the person says otherwise.

The signal comes with every request of a browser. It is recorded when it is first heard of a person, and
again only for a purpose that has shared data since; what the person decided after that moment stands.
"""

import time
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from consent.ledger import append_entry, ensure_subject
from consent.models import Decision, Objection, Purpose
from tenants.callers import Caller
from tenants.units import store, unit_of_work

METHOD = "gpc"
#: Seconds for which a process asks nothing more about a person whose signal is recorded.
SETTLED = 60.0
_MOST = 10_000

#: When a person (tenant and external id) was last found settled: a request costs no statement then.
_settled: OrderedDict[tuple[int, str], float] = OrderedDict()
_lock = Lock()


def note_privacy_control(caller: Caller) -> None:
    """
    Record the signal that came with a person's own credential: refused, withdrawn or objected.

    Nothing is written where it has been recorded, and where the person said no already.
    """
    if caller.subject is None or _is_settled(caller.tenant_id, caller.subject):
        return
    with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
        due = _list_due(caller.tenant_id, caller.subject)
    if due:
        _record(caller, caller.subject)
    _settle(caller.tenant_id, caller.subject)


def _record(caller: Caller, subject: str) -> None:
    with unit_of_work(
        tenant_id=caller.tenant_id, actor=caller.actor, subjects=[subject], exclusive=True
    ):
        due = _list_due(caller.tenant_id, subject)  # a twin may have been faster
        if not due:
            return
        ensure_subject(caller.tenant_id, subject)
        with store().cursor() as cursor:
            # Before the entries: what is newer than this moment is the person's own word, or ours.
            cursor.execute(
                "UPDATE consentful_subject SET gpc_at = consentful_now()"
                " WHERE tenant_id = %s AND external_id = %s AND gpc_at IS NULL",
                [caller.tenant_id, subject],
            )
        for purpose_id, said in due:
            purpose = Purpose.objects.get(tenant_id=caller.tenant_id, pk=purpose_id)
            if said == "nothing":
                continue
            word = Decision(said) if said in Decision.values else Objection(said)
            append_entry(caller, subject, purpose, word, method=METHOD)


def _list_due(tenant_id: int, subject: str) -> Sequence[tuple[int, str]]:
    """
    Return the purposes about which the signal has not been recorded, and what it says of each.

    "nothing" where the person has said no already: that the signal was heard is still noted, so that a
    consent that comes later is not taken for an earlier one.
    """
    with store().cursor() as cursor:
        cursor.execute(
            """
            SELECT p.id, CASE
                WHEN p.lawful_basis <> 'consent'
                    THEN CASE WHEN s.decision = 'objected' THEN 'nothing' ELSE 'objected' END
                WHEN s.decision = 'given' THEN 'withdrawn'
                WHEN s.decision IN ('refused', 'withdrawn') THEN 'nothing'
                ELSE 'refused' END
            FROM consentful_purpose p
            LEFT JOIN consentful_subject who
              ON who.tenant_id = p.tenant_id AND who.external_id = %s
            LEFT JOIN consentful_consent_state s
              ON s.tenant_id = p.tenant_id AND s.subject_id = who.id AND s.purpose_id = p.id
            WHERE p.tenant_id = %s AND p.is_sharing AND p.retired_at IS NULL
              AND p.lawful_basis IN ('consent', 'legitimate_interest', 'public_interest')
              AND (who.gpc_at IS NULL
                   OR coalesce(s.since < who.gpc_at, true)
                      AND coalesce(s.decision NOT IN ('refused', 'withdrawn', 'objected'), true))
            ORDER BY p.id
            """,
            [subject, tenant_id],
        )
        return list(cursor.fetchall())


def _is_settled(tenant_id: int, subject: str) -> bool:
    with _lock:
        until = _settled.get((tenant_id, subject), 0.0)
    return time.monotonic() < until


def _settle(tenant_id: int, subject: str) -> None:
    with _lock:
        _settled[tenant_id, subject] = time.monotonic() + SETTLED
        _settled.move_to_end((tenant_id, subject))
        while len(_settled) > _MOST:
            _settled.popitem(last=False)
