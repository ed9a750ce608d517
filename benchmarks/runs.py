"""One run: what its modules are given, and the readings that they give back."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.harness import Effort, Sampler, take_turns, time_of
from benchmarks.measures import find_measure

if TYPE_CHECKING:
    # Needs the peers, which are installed where benchmarks run; ratios are checked elsewhere too.
    from benchmarks.population import Population

#: The candidate of this name is the floor; its copy runs along as one more.
FLOOR = "floor"
TWIN = "twin"


@dataclass(frozen=True, slots=True)
class Run:
    """How thorough a run is, and what it stands on."""

    effort: Effort
    population: "Population"

    def twinned[T](self, candidates: Mapping[str, T]) -> dict[str, T]:
        """Return the candidates and the twin of their floor."""
        return {**candidates, TWIN: candidates[FLOOR]}


@dataclass(frozen=True, slots=True)
class Pair:
    """The names of the two candidates that a measure compares."""

    candidate: str
    against: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """
    What came out for one measure.

    Attributes:
        value: in the measure's own scale.
        median, p99: seconds per record of what was timed; `against_median` of its floor or peer.
        twin: what came out for two copies of the floor in the same slices; None without a floor.
        note: what a reader must know besides.
    """

    measure: str
    value: float
    median: float
    p99: float
    per_second: float
    against_median: float | None = None
    twin: float | None = None
    note: str = ""


def compare(
    run: Run,
    samplers: Mapping[str, Sampler],
    pairs: Mapping[str, Pair],
    *,
    longer: float = 1.0,
) -> Iterator[Reading]:
    """
    Let the candidates take turns, and yield a reading for each measure named in `pairs`.

    Args:
        longer: how many times as long as the run's own a slice must be, for what takes long.
    """
    series = take_turns(samplers, rounds=run.effort.rounds, seconds=run.effort.seconds * longer)
    twin = series[TWIN].against(series[FLOOR], time_of) if TWIN in series else None
    for name, pair in pairs.items():
        mine, its = series[pair.candidate], series[pair.against]
        yield Reading(
            measure=name,
            value=mine.against(its, find_measure(name).scale.comparison),
            median=mine.median,
            p99=mine.p99,
            per_second=mine.per_second,
            against_median=its.median,
            twin=twin,
        )
