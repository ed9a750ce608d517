"""
Which of many entries matter most: recency, recurrence, relevance, outcome. Pure; reads nothing.

No model has a say: the same entries, terms and time give the same order everywhere.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tenants.documents import JSONValue

#: Days after which recency has fallen to one half.
HALF_LIFE = 14.0
#: What stands for an outcome that nobody told.
UNKNOWN_OUTCOME = 0.5
#: Scores that are closer than this are equal: then place and key decide, not rounding.
GRID = 1e-9

_SECONDS_OF_A_DAY = 86_400
_TOKEN = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """
    How much one entry matters, and why; every number lies between 0 and 1.

    Attributes:
        total: the weighted mean of the four parts.
        recency: halves every two weeks since the last change.
        recurrence: how often it was seen, against the most often seen one, on a logarithmic scale.
        relevance: the share of the terms that its key or value holds.
        outcome: how well it turned out, as told by who wrote it.
    """

    total: float
    recency: float
    recurrence: float
    relevance: float
    outcome: float


def score_entries(
    entries: Sequence[Mapping[str, Any]],
    *,
    terms: Sequence[str] = (),
    now: datetime | str,
    weights: Mapping[str, float] | None = None,
) -> list[Score]:
    """
    Return the score of each entry, in the order of `entries`.

    Args:
        entries: mappings with `key`, `value`, `seen_count` and `updated_at`; `outcome` may be absent.
        terms: words to look for, without regard to case; one that stands twice counts once.
        now: with an offset, as the times of the entries: a datetime, or RFC 3339.
        weights: of `recency`, `recurrence` (or `salience`, its other name), `relevance` and
            `outcome`. One left out is 0; all 0, or None, makes them equal.
    """
    moment = _time(now)
    wanted = {term.lower() for term in terms}
    most = max((int(entry["seen_count"]) for entry in entries), default=0)
    shares = _shares(weights or {})
    found = []
    for entry in entries:
        age = max(0.0, (moment - _time(entry["updated_at"])).total_seconds())
        told = entry.get("outcome")
        parts = (
            0.5 ** (age / _SECONDS_OF_A_DAY / HALF_LIFE),
            math.log1p(int(entry["seen_count"])) / math.log1p(most) if most > 1 else 0.0,
            _relevance(entry, wanted),
            UNKNOWN_OUTCOME if told is None else min(1.0, max(0.0, float(told))),
        )
        total = sum(share * part for share, part in zip(shares, parts, strict=True))
        recency, recurrence, relevance, outcome = parts
        found.append(
            Score(
                total=total,
                recency=recency,
                recurrence=recurrence,
                relevance=relevance,
                outcome=outcome,
            )
        )
    return found


def rank(
    entries: Sequence[Mapping[str, Any]],
    *,
    terms: Sequence[str] = (),
    now: datetime | str,
    weights: Mapping[str, float] | None = None,
    scope_order: Sequence[str] = (),
) -> list[tuple[int, float]]:
    """
    Return (index, score) of every entry, best first.

    Equal scores stand in the order of `scope_order`, scopes that it does not name behind it; then
    by key, then as they came in.

    Args:
        entries: as for `score_entries`, with `scope`.
        scope_order: canonical scopes, the one that goes first first.
    """
    scores = score_entries(entries, terms=terms, now=now, weights=weights)
    return order_by([score.total for score in scores], entries, scope_order)


def order_by(
    totals: Sequence[float], entries: Sequence[Mapping[str, Any]], scope_order: Sequence[str] = ()
) -> list[tuple[int, float]]:
    """Return (index, total) of every entry, best first, equal ones as `rank` says."""
    places: dict[str, int] = {}
    for place, scope in enumerate(scope_order):
        places.setdefault(scope, place)

    def place_of(index: int) -> tuple[int, int, str]:
        entry = entries[index]
        return (
            -round(totals[index] / GRID),
            places.get(str(entry["scope"]), len(scope_order)),
            str(entry["key"]),
        )

    return [(index, totals[index]) for index in sorted(range(len(entries)), key=place_of)]


def diversify(
    entries: Sequence[Mapping[str, Any]],
    ranked: Sequence[tuple[int, float]],
    k: int,
    *,
    weight: float = 0.7,
) -> list[int]:
    """
    Return up to `k` indexes that matter without saying the same, the best one first.

    Each next one is worth its score times `weight`, less the rest of the weight times its likeness
    to the most similar one chosen before (words that both values hold, of all that either holds).

    Args:
        ranked: what `rank` returned; equally worthy ones keep its order.
        weight: 1 asks for the score alone, 0 for difference alone.
    """
    words = {index: _words(entries[index]["value"]) for index, _ in ranked}
    left = dict(ranked)
    likeness = dict.fromkeys(left, 0.0)
    chosen: list[int] = []
    while left and len(chosen) < k:
        # Of equal ones, `max` takes the first: they stand in the order of their rank.
        best = max(
            left,
            key=lambda index: round((weight * left[index] - (1 - weight) * likeness[index]) / GRID),
        )
        del left[best]
        chosen.append(best)
        for index in left:
            likeness[index] = max(likeness[index], _likeness(words[best], words[index]))
    return chosen


def _shares(weights: Mapping[str, float]) -> tuple[float, float, float, float]:
    """Return the weights as shares of one."""
    asked = (
        weights.get("recency", 0),
        weights.get("recurrence", weights.get("salience", 0)),
        weights.get("relevance", 0),
        weights.get("outcome", 0),
    )
    whole = sum(asked)
    if whole <= 0:
        return (0.25, 0.25, 0.25, 0.25)
    recency, recurrence, relevance, outcome = (one / whole for one in asked)
    return (recency, recurrence, relevance, outcome)


def _relevance(entry: Mapping[str, Any], wanted: set[str]) -> float:
    if not wanted:
        return 0.0
    key, text = str(entry["key"]).lower(), text_of(entry["value"]).lower()
    return sum(term in key or term in text for term in wanted) / len(wanted)


def text_of(value: JSONValue) -> str:
    """Return the words of a value: a string as it is, those inside of anything else, one a line."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(text_of(one) for one in value)
    if isinstance(value, dict):
        return "\n".join(text_of(one) for one in value.values())
    return ""


def _words(value: JSONValue) -> frozenset[str]:
    return frozenset(_TOKEN.findall(text_of(value).lower()))


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    either = len(one | other)
    return len(one & other) / either if either else 0.0


def _time(value: datetime | str) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)
