"""Every measure by name: what it is compared with, its goal and its stretch. Times nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from benchmarks.harness import Comparison, rate_of, speed_of, time_of


class Scale(Enum):
    """What the number of a measure means, and which way is better."""

    TIME = "times as long"
    SPEED = "times faster"
    RATE = "of the rate"
    MILLISECONDS = "ms"

    @property
    def is_lower_better(self) -> bool:
        """Whether a smaller number is a better one."""
        return self in (Scale.TIME, Scale.MILLISECONDS)

    @property
    def comparison(self) -> Comparison:
        """
        What makes the number of two slices.

        Raises:
            LookupError: milliseconds stand for themselves.
        """
        comparisons: dict[Scale, Callable[..., float]] = {
            Scale.TIME: time_of,
            Scale.SPEED: speed_of,
            Scale.RATE: rate_of,
        }
        return comparisons[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """
    One number that is watched.

    Attributes:
        module: the module of `benchmarks` that takes it.
        title, against: what is timed, and the floor or the peer in the same run.
    """

    name: str
    module: str
    title: str
    against: str
    scale: Scale
    goal: float
    stretch: float

    def holds(self, value: float) -> bool:
        """Whether the goal is met."""
        return self._is_within(value, self.goal)

    def reaches_stretch(self, value: float) -> bool:
        """Whether the stretch is met too."""
        return self._is_within(value, self.stretch)

    def _is_within(self, value: float, bound: float) -> bool:
        return value <= bound if self.scale.is_lower_better else value >= bound


SELECT = "one prepared select that joins value and consent"
STATEMENT = "one prepared statement: gate, compare-and-set, audit row"


def _measure(
    name: str, module: str, title: str, against: str, scale: Scale, goal: float, stretch: float
) -> Measure:
    return Measure(
        name=name, module=module, title=title, against=against, scale=scale, goal=goal,
        stretch=stretch,
    )  # fmt: skip


#: In the order of the report. A module takes all of its measures in one go.
MEASURES = (
    _measure("read-1", "reads", "gated read, 1 connection", SELECT, Scale.TIME, 2.0, 1.6),
    _measure("read-4", "reads", "gated read, 4 workers", SELECT, Scale.TIME, 2.3, 1.8),
    _measure("read-langgraph", "reads", "gated read", "LangGraph's PostgresStore.get", Scale.SPEED, 3, 4),
)  # fmt: skip


def find_measure(name: str) -> Measure:
    """
    Return the measure of that name.

    Raises:
        LookupError: there is none.
    """
    for measure in MEASURES:
        if measure.name == name:
            return measure
    raise LookupError(f"There is no measure {name}.")
