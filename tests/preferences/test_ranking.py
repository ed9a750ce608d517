"""The order of entries and the choice of different ones, exact to a billionth."""

import itertools
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preferences.ranking import diversify, rank, score_entries

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
#: Each row: place of its scope, key, value, times seen, days since its change, outcome.
KNOWN = json.loads((Path(__file__).parent / "ranking.json").read_text("utf-8"))


def entry(**changes: Any) -> dict[str, Any]:
    return {
        "scope": "global", "key": "k", "value": "v", "seen_count": 1, "updated_at": NOW, **changes,
    }  # fmt: skip


def entries_of(case: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "scope": KNOWN["scopes"][place],
            "key": key,
            "value": value,
            "seen_count": seen,
            "updated_at": (NOW - timedelta(days=days)).isoformat(),
            **({} if outcome is None else {"outcome": outcome}),
        }
        for place, key, value, seen, days, outcome in case["rows"]
    ]


@pytest.mark.parametrize("case", KNOWN["cases"], ids=lambda case: case["id"])
def test_the_published_cases(case: dict[str, Any]) -> None:
    names = ("recency", "salience", "relevance", "outcome")
    weights = case["weights"] and dict(zip(names, case["weights"], strict=True))
    entries = entries_of(case)
    ranked = rank(
        entries,
        terms=case["terms"],
        now=NOW.isoformat(),
        weights=weights,
        scope_order=KNOWN["scopes"],
    )
    assert [index for index, _ in ranked] == [index for index, _ in case["best"]]
    for (_, score), (_, expected) in zip(ranked, case["best"], strict=True):
        assert abs(score - expected) < 1e-9
    assert diversify(entries, ranked, len(case["diverse"])) == case["diverse"]


def test_the_parts_of_a_score() -> None:
    old = entry(key="Deploy", value="Never on Friday", seen_count=3,
                updated_at=NOW - timedelta(days=14), outcome=1)  # fmt: skip
    (one, other) = score_entries([old, entry(seen_count=7)], terms=["FRIDAY", "roll"], now=NOW)
    assert (one.recency, one.recurrence, one.relevance, one.outcome) == pytest.approx(
        (0.5, 2 / 3, 0.5, 1.0)
    )
    assert one.total == pytest.approx((0.5 + 2 / 3 + 0.5 + 1) / 4)
    assert (other.recency, other.recurrence, other.relevance, other.outcome) == (1, 1, 0, 0.5)


def test_a_weight_may_be_called_either_name() -> None:
    entries = [entry(seen_count=1), entry(seen_count=9)]
    one = rank(entries, now=NOW, weights={"recurrence": 1})
    assert one == rank(entries, now=NOW, weights={"salience": 1})
    assert one[0] == (1, 1.0)


def test_what_lies_ahead_is_no_more_recent_than_now() -> None:
    assert score_entries([entry(updated_at=NOW + timedelta(days=30))], now=NOW)[0].recency == 1


def test_an_outcome_beyond_its_range_counts_as_its_end() -> None:
    found = score_entries([entry(outcome=7), entry(outcome=-7), entry(outcome=0)], now=NOW)
    assert [one.outcome for one in found] == [1, 0, 0]


def test_words_are_found_inside_of_values_that_are_no_text() -> None:
    entries = [entry(value={"why": ["Flaky", 3]}), entry(value=3), entry(value=None)]
    found = score_entries(entries, terms=["flaky"], now=NOW)
    assert [one.relevance for one in found] == [1, 0, 0]


def test_equal_scores_stand_by_scope_then_key_then_as_they_came() -> None:
    entries = [
        entry(scope="project::x"), entry(scope="elsewhere"), entry(key="b"), entry(key="a"),
        entry(key="b"),
    ]  # fmt: skip
    ranked = rank(entries, now=NOW, scope_order=["global", "project::x"])
    assert [index for index, _ in ranked] == [3, 2, 4, 0, 1]


def test_nothing_is_ranked_and_nothing_chosen() -> None:
    assert rank([], now=NOW) == []
    assert diversify([], [], 3) == []
    assert diversify([entry()], [(0, 1.0)], 0) == []


def test_what_says_the_same_comes_later() -> None:
    entries = [
        entry(key="a", value="run the linter first", seen_count=9),
        entry(key="b", value="Run the linter, first!", seen_count=8),
        entry(key="c", value="pin the base image", seen_count=1),
    ]
    ranked = rank(entries, now=NOW)
    assert [index for index, _ in ranked] == [0, 1, 2]
    assert diversify(entries, ranked, 3) == [0, 2, 1]


ENTRIES = st.lists(
    st.builds(
        entry,
        scope=st.sampled_from(["global", "project::x", "repo::a/b"]),
        key=st.text("abc", min_size=1, max_size=3),
        value=st.text("ab ", max_size=8),
        seen_count=st.integers(1, 50),
        updated_at=st.integers(0, 400).map(lambda days: NOW - timedelta(days=days)),
        outcome=st.none() | st.floats(0, 1),
    ),
    max_size=12,
    unique_by=lambda one: (one["scope"], one["key"]),
)


@given(ENTRIES, st.randoms())
def test_the_order_does_not_depend_on_how_they_come(entries: list[Any], random: Any) -> None:
    shuffled = list(entries)
    random.shuffle(shuffled)
    found = [
        [several[index] for index, _ in rank(several, terms=["a"], now=NOW)]
        for several in (entries, shuffled)
    ]
    # Without an order of scopes, two of one key may stand either way.
    assert [one["key"] for one in found[0]] == [one["key"] for one in found[1]]


@given(ENTRIES)
def test_scores_fall_from_the_best_on_within_their_bounds(entries: list[Any]) -> None:
    scores = [score for _, score in rank(entries, terms=["a", "b"], now=NOW)]
    assert all(0 <= score <= 1 + 1e-12 for score in scores)
    assert all(one >= other - 2e-9 for one, other in itertools.pairwise(scores))


@given(ENTRIES, st.integers(0, 14))
def test_asked_for_scores_alone_the_choice_is_the_rank(entries: list[Any], k: int) -> None:
    ranked = rank(entries, terms=["a"], now=NOW)
    assert diversify(entries, ranked, k, weight=1) == [index for index, _ in ranked][:k]
