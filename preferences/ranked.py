"""The live records of several scopes, those that matter most first. The arithmetic is `ranking`'s."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from preferences.places import persons_of, readable_scopes
from preferences.ranking import Score, diversify, order_by, score_entries, text_of
from preferences.readings import note_readings
from preferences.records import Record
from preferences.selectors import Withheld, list_preferences
from tenants.callers import Caller
from tenants.exceptions import InvalidScope, ValidationError
from tenants.scopes import Scope
from tenants.units import now, unit_of_work

#: Records that are ranked at most; each scope gives an equal share, those created last.
MOST_RANKED = 500
MAX_TERMS = 32
#: Characters of a term.
MAX_TERM_LENGTH = 100
#: Characters of a value that are compared with those of others.
MOST_COMPARED = 2000


@dataclass(frozen=True, slots=True)
class Ranked:
    """A record, and how much it matters."""

    record: Record
    score: Score

    def as_json(self) -> str:
        """Return the record with its score and the parts of that as JSON text."""
        one = self.score
        return (
            f'{self.record.as_json()[:-1]}, "score": {one.total!r}, "parts": {{'
            f'"recency": {one.recency!r}, "recurrence": {one.recurrence!r}, '
            f'"relevance": {one.relevance!r}, "outcome": {one.outcome!r}}}}}'
        )


def rank_preferences(
    *,
    caller: Caller,
    scopes: Sequence[Scope],
    terms: Sequence[str] = (),
    weights: Mapping[str, float] | None = None,
    limit: int = 50,
    is_diverse: bool = False,
) -> tuple[list[Ranked], list[Withheld]]:
    """
    Return up to `limit` live records of `scopes`, the best first, and what the gate withholds.

    Ranks at most 500 records; where there are more, each scope gives an equal share, those created
    last. The outcome is what the record's metadata say as `outcome`, a number from 0 to 1. Opens
    its own unit of work.

    Args:
        scopes: equally good records stand in their order; those that the caller may not read are
            left out.
        terms, weights: see `ranking.score_entries`.
        is_diverse: choose records that do not say the same (`ranking.diversify`).

    Raises:
        InvalidScope: there is none.
        ValidationError: over 32 terms, or one that has not 1 to 100 characters.
    """
    if not scopes:
        raise InvalidScope("Name at least one scope.", pointer="/query/scope")
    check_terms(terms)
    readable = readable_scopes(caller, scopes)
    records: list[Record] = []
    withheld: list[Withheld] = []
    with unit_of_work(
        tenant_id=caller.tenant_id, actor=caller.actor, subjects=persons_of(readable)
    ):
        if readable:
            records, withheld = list_preferences(
                caller=caller, scopes=readable, newest=max(1, MOST_RANKED // len(readable))
            )
        moment = now()
    entries = [_entry(record) for record in records]
    scores = score_entries(entries, terms=terms, now=moment, weights=weights)
    order = order_by([one.total for one in scores], entries, [str(scope) for scope in readable])
    if is_diverse:
        shortened = [{"value": text_of(entry["value"])[:MOST_COMPARED]} for entry in entries]
        chosen = diversify(shortened, order, limit)
    else:
        chosen = [index for index, _ in order[:limit]]
    note_readings(caller, [records[index] for index in chosen])
    return [Ranked(records[index], scores[index]) for index in chosen], withheld


def check_terms(terms: Sequence[str]) -> None:
    """
    Refuse what no text could hold, or too much of it.

    Raises:
        ValidationError: as `rank_preferences` says.
    """
    if len(terms) > MAX_TERMS:
        raise ValidationError(f"There are at most {MAX_TERMS} terms.", pointer="/query/term")
    if not all(1 <= len(term) <= MAX_TERM_LENGTH for term in terms):
        raise ValidationError(
            f"A term has 1 to {MAX_TERM_LENGTH} characters.", pointer="/query/term"
        )


def _entry(record: Record) -> dict[str, Any]:
    return {
        "scope": record.scope,
        "key": record.key,
        "value": record.value,
        "seen_count": record.seen_count,
        "updated_at": record.updated_at,
        "outcome": _outcome(record),
    }


def _outcome(record: Record) -> float | None:
    """Return the outcome that the metadata tell; None where it is no number from 0 to 1."""
    if '"outcome"' not in record.metadata_text:
        return None
    told = json.loads(record.metadata_text).get("outcome")
    is_number = isinstance(told, int | float) and not isinstance(told, bool)
    return told if is_number and 0 <= told <= 1 else None
