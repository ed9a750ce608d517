"""
Every measure by name: what it is compared with, its goal and its stretch. Times nothing.

A new one has its entry here, and is taken by a module of this package with a function
``measure(run)`` that yields a `benchmarks.runs.Reading` for each of the module's entries.
"""

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

    def describe(self, value: float) -> str:
        """Return a number with what it means."""
        match self:
            case Scale.TIME:
                return f"{value:.2f} x"
            case Scale.SPEED:
                return f"{value:.1f} x faster"
            case Scale.RATE:
                return f"{value:.0%}" if value < 1 else f"{value:.1f} x rate"
            case Scale.MILLISECONDS:
                return f"{value:.1f} ms"

    def describe_bound(self, bound: float) -> str:
        """Return a goal with the direction that is better."""
        return f"{'≤' if self.is_lower_better else '≥'} {self.describe(bound)}"

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
        is_long: whether a quick run has no time for it.
    """

    name: str
    module: str
    title: str
    against: str
    scale: Scale
    goal: float
    stretch: float
    is_long: bool = False

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
    name: str,
    module: str,
    title: str,
    against: str,
    scale: Scale,
    goal: float,
    stretch: float,
    *,
    is_long: bool = False,
) -> Measure:
    return Measure(
        name=name, module=module, title=title, against=against, scale=scale, goal=goal,
        stretch=stretch, is_long=is_long,
    )  # fmt: skip


SAVE = "get and save with"
CONSTANT = "a constant Django view behind the same middleware"
SERVED = "a constant view of the same server"
VIEWSET = "Django REST framework's ModelViewSet, TokenAuthentication, django-simple-history"

ALONE = "the same writer alone"
FEW = "the same among 10 thousand"

#: In the order of the report. A module takes all of its measures in one go.
MEASURES = (
    _measure("read-1", "reads", "gated read, 1 connection", SELECT, Scale.TIME, 2.0, 1.6),
    _measure("read-4", "reads", "gated read, 4 workers", SELECT, Scale.TIME, 2.3, 1.8),
    _measure("read-langgraph", "reads", "gated read", "LangGraph's PostgresStore.get", Scale.SPEED, 3, 4),
    _measure("write-1", "writes", "gated write, 1 connection", STATEMENT, Scale.TIME, 2.2, 1.6),
    _measure("write-4", "writes", "gated write, 4 workers", STATEMENT, Scale.TIME, 2.0, 1.5),
    _measure("write-langgraph", "writes", "gated write", "LangGraph's PostgresStore.put: no gate, no revision, no event", Scale.TIME, 2.0, 1.3),
    _measure("write-history", "writes", "gated write", f"{SAVE} django-simple-history", Scale.SPEED, 6, 9),
    _measure("write-auditlog", "writes", "gated write", f"{SAVE} django-auditlog", Scale.SPEED, 8, 12),
    _measure("write-concurrency", "writes", "gated write", f"{SAVE} django-concurrency and django-auditlog", Scale.SPEED, 9, 14),
    _measure("batch", "writes", "batch of 100 writes, per record", "LangGraph's batch of 100 puts, per record", Scale.TIME, 2.5, 1.5),
    _measure("wsgi-get", "stack", "GET through the whole stack, in-process", CONSTANT, Scale.TIME, 5, 3.5),
    _measure("wsgi-put", "stack", "PUT through the whole stack, in-process", CONSTANT, Scale.TIME, 13, 9),
    _measure("http-get", "served", "GET over HTTP, one core, 8 connections", SERVED, Scale.RATE, 0.45, 0.55),
    _measure("http-put", "served", "PUT over HTTP, one core, 8 connections", SERVED, Scale.RATE, 0.25, 0.35),
    _measure("http-get-viewset", "served", "GET over HTTP, one core, 8 connections", VIEWSET, Scale.RATE, 4, 5),
    _measure("http-put-viewset", "served", "PUT over HTTP, one core, 8 connections", VIEWSET, Scale.RATE, 5, 6),
    _measure("withdrawal", "concurrency", "withdrawal beside 16 writers of the same person, p99, and no late write", "idle: told below", Scale.MILLISECONDS, 50, 25),
    _measure("purge", "concurrency", "p99 of a write while expired records are purged", ALONE, Scale.TIME, 3, 2),
    _measure("sealing", "concurrency", "gated write beside the sealer at full load", ALONE, Scale.TIME, 1.1, 1.05),
    _measure("growth-1m", "growth", "gated read among 1 million records", FEW, Scale.TIME, 1.4, 1.2),
    _measure("growth-5m", "growth", "gated read among 5 million records", FEW, Scale.TIME, 1.5, 1.3, is_long=True),
    _measure("depth", "growth", "list of 100 behind 450 thousand others", "the first 100", Scale.TIME, 1.3, 1.1),
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
