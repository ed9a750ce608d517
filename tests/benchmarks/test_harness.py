"""The arithmetic of the benchmarks. Nothing here asks how fast anything is."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.cores import find_busy_share
from benchmarks.harness import (
    Effort,
    Series,
    Slice,
    is_trusted,
    percentile,
    rate_of,
    speed_of,
    take_turns,
    time_of,
)
from benchmarks.measures import MEASURES, Measure, Scale, find_measure
from benchmarks.report import all_hold, are_trusted, verdict
from benchmarks.runs import FLOOR, TWIN, Pair, Reading, Run, compare

ROOT = Path(__file__).resolve().parents[2]


def series(*medians: float, records: int = 1) -> Series:
    return Series([slice_of(one, records=records) for one in medians])


def slice_of(median: float, *, records: int = 1) -> Slice:
    return Slice(
        latencies=[median / 2, median, median * 9], per_second=records / median, records=records
    )


def test_a_ratio_is_taken_within_each_round_and_its_median_counts() -> None:
    floor = series(1.0, 1.0, 10.0, 1.0, 1.0)
    candidate = series(2.0, 3.0, 20.0, 50.0, 1.5)
    # 2, 3, 2, 50 and 1.5: what was slow for both in the third round says nothing.
    assert candidate.against(floor, time_of) == 2.0
    # Neither the ratio of all medians, 3, nor the best round, 1.5.
    assert candidate.median / floor.median == 3.0


def test_times_speeds_and_rates_point_in_their_own_directions() -> None:
    slow, fast = slice_of(4.0), slice_of(1.0)
    assert time_of(slow, fast) == 4.0
    assert speed_of(fast, slow) == 4.0
    assert rate_of(slow, fast) == 0.25


def test_a_batch_is_counted_by_its_records() -> None:
    batch, single = slice_of(100.0, records=100), slice_of(2.0)
    assert batch.median == 1.0
    assert time_of(batch, single) == 0.5
    assert Series([batch]).p99 == 9.0


@pytest.mark.parametrize(
    ("numbers", "percent", "found"),
    [
        ([5.0], 99, 5.0),
        ([float(one) for one in range(100, 0, -1)], 99, 99.0),
        ([float(one) for one in range(1, 1001)], 99, 990.0),
        ([1.0, 2.0, 3.0], 50, 2.0),
    ],
)
def test_percentiles(numbers: Sequence[float], percent: int, found: float) -> None:
    assert percentile(numbers, percent) == found


def test_rounds_of_two_series_must_be_the_same_ones() -> None:
    with pytest.raises(ValueError, match="shorter"):
        series(1.0, 1.0).against(series(1.0), time_of)


@pytest.mark.parametrize(
    ("twin", "expected"), [(1.0, True), (0.85, True), (1.15, True), (0.84, False), (1.16, False)]
)
def test_a_twin_that_is_far_off_takes_the_trust_away(twin: float, expected: bool) -> None:
    assert is_trusted(twin) is expected
    readings = [reading("read-1", 1.0), reading("read-4", 1.0, twin=twin)]
    assert are_trusted(readings, busy=0.0) is expected


def test_a_machine_that_others_use_takes_the_trust_away() -> None:
    assert are_trusted([reading("read-1", 1.0)], busy=0.25)
    assert not are_trusted([reading("read-1", 1.0)], busy=0.26)


def test_the_busy_share_is_a_share() -> None:
    assert 0.0 <= find_busy_share(0.2) <= 1.0


def test_everyone_has_one_turn_in_each_round_and_no_order_is_kept() -> None:
    turns: list[str] = []

    def sampler(name: str, seconds: float) -> Slice:
        assert seconds == 0.5
        turns.append(name)
        return slice_of(1.0)

    names = ["a", "b", "c", "d"]
    samplers = {name: lambda seconds, name=name: sampler(name, seconds) for name in names}
    taken = take_turns(samplers, rounds=20, seconds=0.5)
    rounds = [tuple(turns[at : at + 4]) for at in range(0, 80, 4)]
    assert all(sorted(one) == names for one in rounds)
    assert len(set(rounds)) > 10
    assert {len(one.slices) for one in taken.values()} == {20}


def test_a_reading_has_the_ratio_of_its_own_scale_and_the_twin_of_its_floor() -> None:
    run = Run(Effort(rounds=3, seconds=0.0, tenants=0, people_per_tenant=0), None)  # type: ignore[arg-type]
    samplers = {
        FLOOR: lambda seconds: slice_of(1.0),
        TWIN: lambda seconds: slice_of(1.1),
        "ours": lambda seconds: slice_of(2.0),
        "peer": lambda seconds: slice_of(8.0),
    }
    pairs = {"read-1": Pair("ours", FLOOR), "read-langgraph": Pair("ours", "peer")}
    first, second = compare(run, samplers, pairs)
    assert (first.measure, first.value, first.against_median) == ("read-1", 2.0, 1.0)
    assert (second.measure, second.value, second.against_median) == ("read-langgraph", 4.0, 8.0)
    assert first.twin == second.twin == 1.1


def test_the_floor_and_its_twin_are_the_same() -> None:
    floor = object()
    run = Run(Effort(rounds=1, seconds=0.0, tenants=0, people_per_tenant=0), None)  # type: ignore[arg-type]
    assert run.twinned({FLOOR: floor, "ours": object()})[TWIN] is floor


# The measures ----------------------------------------------------------------------------------


def reading(name: str, value: float, twin: float | None = 1.0) -> Reading:
    return Reading(measure=name, value=value, median=1.0, p99=1.0, per_second=1.0, twin=twin)


def test_measures_have_names_of_their_own_and_modules_that_exist() -> None:
    names = [measure.name for measure in MEASURES]
    assert len(names) == len(set(names))
    for measure in MEASURES:
        assert (ROOT / "benchmarks" / f"{measure.module}.py").is_file(), measure.module


def test_a_stretch_is_never_easier_than_its_goal() -> None:
    for measure in MEASURES:
        assert measure.holds(measure.stretch), measure.name


@pytest.mark.parametrize(
    ("scale", "value", "expected"),
    [
        (Scale.TIME, 2.0, "stretch"), (Scale.TIME, 3.0, "yes"), (Scale.TIME, 3.1, "NO"),
        (Scale.MILLISECONDS, 2.1, "yes"), (Scale.MILLISECONDS, 9.0, "NO"),
        (Scale.SPEED, 2.0, "NO"), (Scale.SPEED, 3.0, "yes"), (Scale.SPEED, 4.0, "stretch"),
        (Scale.RATE, 2.9, "NO"), (Scale.RATE, 3.0, "yes"), (Scale.RATE, 9.0, "stretch"),
    ],
)  # fmt: skip
def test_what_holds(scale: Scale, value: float, expected: str) -> None:
    stretch = 2.0 if scale.is_lower_better else 4.0
    measure = Measure(
        name="any", module="any", title="", against="", scale=scale, goal=3.0, stretch=stretch
    )
    assert verdict(measure, value) == expected


def test_one_goal_that_is_missed_fails_the_gate() -> None:
    goal = find_measure("read-1").goal
    assert all_hold([reading("read-1", goal)])
    assert not all_hold([reading("read-1", goal), reading("read-4", 99.0)])


def test_goals_say_which_way_is_better() -> None:
    assert Scale.TIME.describe_bound(2.2) == "≤ 2.20 x"
    assert Scale.SPEED.describe_bound(6) == "≥ 6.0 x faster"
    assert Scale.RATE.describe_bound(0.45) == "≥ 45%"
    assert Scale.RATE.describe_bound(4) == "≥ 4.0 x rate"
    assert Scale.MILLISECONDS.describe_bound(50) == "≤ 50.0 ms"


# The workers -----------------------------------------------------------------------------------

#: In a process of its own: a test run has threads, which a fork would not take along.
PROGRAM = """
from benchmarks.workers import Candidate, WorkerFailed, working

def prepare(worker):
    calls = []
    def call():
        calls.append(worker.number)
    return call

def fail(worker):
    return lambda: 1 // worker.number  # the first worker's number is 0

candidates = {"fine": Candidate(prepare=prepare, records=10), "bad": Candidate(prepare=fail)}
with working(candidates, count=2) as samplers:
    taken = samplers["fine"](0.05)
    assert len(taken.latencies) > 2, taken
    # Records, not calls, and of both workers: the seconds of the two passed side by side.
    assert taken.per_second > 10 * len(taken.latencies) / sum(taken.latencies), taken.per_second
    try:
        samplers["bad"](0.05)
    except WorkerFailed as failure:
        assert "ZeroDivisionError" in str(failure)
        print("noticed")
    # And the workers are still there.
    samplers["fine"](0.01)
"""


def test_workers_add_up_and_a_failure_in_one_is_told() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "noticed"), ran.stderr
