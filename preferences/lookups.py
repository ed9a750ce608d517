"""Reading several keys of one scope at once, each answered as a read of it alone would be."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from preferences.decisions import count_read
from preferences.records import Record
from preferences.selectors import arguments_of_get
from tenants.callers import Caller
from tenants.scopes import Scope
from tenants.statements import fetch_rows


@dataclass(frozen=True, slots=True)
class Lookup:
    """
    What a read of one address comes to.

    Attributes:
        outcome: ``found``, ``not_found``, or the code with which the gate refuses.
        purpose: slug of what governs the address, as far as it was asked.
        record: the live record, where one was found.
    """

    outcome: str
    purpose: str | None
    record: Record | None


def look_up(*, caller: Caller, scope: Scope, keys: Sequence[str]) -> list[Lookup]:
    """
    Return what stands at each key of one scope, in their order and in one round trip.

    Inside a unit of work that fences the scope's person. Notes no reading: whoever shows a record
    says so (`readings.note_readings`), and whoever asks has seen to reach.
    """
    asked = [{"verb": "get", **arguments_of_get(caller, scope, key)} for key in keys]
    answers = fetch_rows(
        "SELECT * FROM consentful_batch(%s, %s, %s::json)",
        (caller.tenant_id, caller.actor.as_context(), json.dumps(asked)),
    )
    found = [Lookup(*Record.from_answer(answer)) for answer in answers]
    for one in found:
        count_read(one.outcome, scope=scope, purpose=one.purpose)
    return found
