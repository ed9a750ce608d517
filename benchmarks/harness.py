"""
The method: candidates take turns in short slices, and ratios are taken within each round.

Here belongs what turns timings into ratios that can be trusted, and nothing of what is timed.

A machine is never equally fast for long. So every candidate gets a slice of every round, in an
order that is drawn anew; a candidate is compared with its floor in the same round alone; and
the median of those ratios is what counts. An exact copy of the floor, its twin, runs along as one
more candidate: how far its ratio is from 1 says how much the machine can be trusted just now.
"""

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

#: A twin's ratio beyond these says that the machine was too restless.
TWIN_LEAST, TWIN_MOST = 0.85, 1.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """
    What one candidate did in its turn of one round.

    Attributes:
        latencies: seconds of each call.
        per_second: records per second, of all workers together.
        records: how many records one call stands for, a batch's size.
    """

    latencies: Sequence[float]
    per_second: float
    records: int = 1

    @property
    def median(self) -> float:
        """Seconds per record in the middle."""
        return statistics.median(self.latencies) / self.records


#: Works for so many seconds, and tells of it.
type Sampler = Callable[[float], Slice]

#: One number of two slices of the same round.
type Comparison = Callable[[Slice, Slice], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long a run takes: rounds of slices, and how much data it stands on."""

    rounds: int
    #: Of one slice.
    seconds: float
    tenants: int
    people_per_tenant: int
    is_quick: bool = False


FULL = Effort(rounds=15, seconds=0.4, tenants=10, people_per_tenant=1000)
QUICK = Effort(rounds=5, seconds=0.2, tenants=4, people_per_tenant=250, is_quick=True)


@dataclass(frozen=True, slots=True)
class Series:
    """All slices of one candidate, in the order of the rounds."""

    slices: Sequence[Slice]

    @property
    def median(self) -> float:
        """Seconds per record: the median of the rounds' medians."""
        return statistics.median(one.median for one in self.slices)

    @property
    def p99(self) -> float:
        """Seconds per record that one call of a hundred exceeds, over all rounds."""
        return percentile([each / one.records for one in self.slices for each in one.latencies], 99)

    @property
    def per_second(self) -> float:
        """Records per second: the median of the rounds."""
        return statistics.median(one.per_second for one in self.slices)

    def against(self, floor: "Series", comparison: Comparison) -> float:
        """Return the median, over the rounds, of this series compared with its floor."""
        pairs = zip(self.slices, floor.slices, strict=True)
        return statistics.median(comparison(mine, its) for mine, its in pairs)


def time_of(candidate: Slice, floor: Slice) -> float:
    """Return how many times the floor's time the candidate takes."""
    return candidate.median / floor.median


def speed_of(candidate: Slice, peer: Slice) -> float:
    """Return how many times faster than its peer the candidate is."""
    return peer.median / candidate.median


def rate_of(candidate: Slice, floor: Slice) -> float:
    """Return the candidate's records per second as a multiple of the floor's."""
    return candidate.per_second / floor.per_second


def percentile(numbers: Sequence[float], percent: int) -> float:
    """Return the smallest number that `percent` of a hundred do not exceed."""
    ordered = sorted(numbers)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def is_trusted(twin: float) -> bool:
    """Whether a twin came out close enough to what it is a copy of."""
    return TWIN_LEAST <= twin <= TWIN_MOST


def take_turns(
    samplers: Mapping[str, Sampler], *, rounds: int, seconds: float, seed: int = 1
) -> dict[str, Series]:
    """
    Give every candidate one slice per round, in an order that is drawn for each round.

    A fixed order would let whatever comes periodically always hit the same candidate.
    """
    order = random.Random(seed)  # noqa: S311  no secret: a run can be repeated
    slices: dict[str, list[Slice]] = {name: [] for name in samplers}
    for _ in range(rounds):
        turn = list(samplers)
        order.shuffle(turn)
        for name in turn:
            slices[name].append(samplers[name](seconds))
    return {name: Series(those) for name, those in slices.items()}
