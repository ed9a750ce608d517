"""
Charts as SVG, drawn on the server: pure functions from numbers to markup, which know no database.

Every axis begins at zero and every number is drawn, the zeros too. Colours are the style sheet's
(``consentful-chart``), so that light and dark both work; no script, nothing from another host.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from django.utils.safestring import SafeString, mark_safe

WIDTH = 640.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One kind of number, by the labels of its chart."""

    name: str
    values: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """
    Numbers, and what they say: what is drawn and what its table shows.

    Attributes:
        key: its name in the page, for ids.
        text: what it shows, for whoever does not see it.
        head: what the labels are.
        note: what it leaves out, if anything.
    """

    key: str
    title: str
    text: str
    head: str
    labels: Sequence[str]
    series: Sequence[Series]
    note: str = ""

    @property
    def top(self) -> int:
        """The largest of its numbers."""
        return max((value for one in self.series for value in one.values), default=0)

    @property
    def rows(self) -> Sequence[tuple[str, Sequence[int]]]:
        """The lines of its table."""
        return [
            (label, [one.values[place] for one in self.series])
            for place, label in enumerate(self.labels)
        ]


def draw_columns(chart: Chart, *, top: int | None = None) -> SafeString:
    """
    Return upright bars, side by side for each label.

    Args:
        top: what the axis must reach, where several charts are compared; the largest number by
            default.
    """
    left, right, above, height, below = 48.0, 8.0, 14.0, 140.0, 24.0
    ceiling = round_up(chart.top if top is None else top)
    floor = above + height
    step = (WIDTH - left - right) / max(len(chart.labels), 1)
    breadth = step * 0.8 / max(len(chart.series), 1)
    parts = []
    for tick in _ticks(ceiling):
        y = floor - height * tick / ceiling
        parts.append(
            f'<line class="grid" x1="{left:g}" x2="{WIDTH - right:g}" y1="{y:.2f}" y2="{y:.2f}"/>'
            f'<text class="tick" x="{left - 6:g}" y="{y + 4:.2f}" text-anchor="end">{tick}</text>'
        )
    every = -(-len(chart.labels) // 6)
    for place, (label, values) in enumerate(chart.rows):
        start = left + step * place + step * 0.1
        for number, value in enumerate(values):
            size = height * value / ceiling
            parts.append(
                f'<rect class="s{number}" x="{start + breadth * number:.2f}"'
                f' y="{floor - size:.2f}" width="{max(breadth - 1, 1):.2f}" height="{size:.2f}">'
                f"<title>{escape(_named(chart, label, number, value))}</title></rect>"
            )
        if place % every == 0:
            middle = left + step * (place + 0.5)
            parts.append(
                f'<text class="tick" x="{middle:.2f}" y="{floor + 16:g}" text-anchor="middle">'
                f"{escape(label)}</text>"
            )
    return _frame(chart, floor + below, parts)


def draw_bars(chart: Chart) -> SafeString:
    """Return lying bars of one series, each with its label before it and its number behind."""
    left, right, line = 230.0, 56.0, 26.0
    ceiling = round_up(chart.top)
    parts = []
    for place, (label, values) in enumerate(chart.rows):
        value, y = values[0], line * place + 4
        size = (WIDTH - left - right) * value / ceiling
        parts.append(
            f'<text class="label" x="{left - 8:g}" y="{y + 13:g}" text-anchor="end">'
            f"{escape(label)}</text>"
            f'<rect class="s0" x="{left:g}" y="{y:g}" width="{size:.2f}" height="{line - 8:g}">'
            f"<title>{escape(_named(chart, label, 0, value))}</title></rect>"
            f'<text class="tick" x="{left + size + 6:.2f}" y="{y + 13:g}">{value}</text>'
        )
    return _frame(chart, line * len(chart.labels) + 4, parts)


def round_up(number: int) -> int:
    """Return the next of 1, 2, 5, 10, 20, 50 … that is not smaller."""
    size = 1
    while True:
        for digit in (1, 2, 5):
            if digit * size >= number:
                return digit * size
        size *= 10


def _ticks(ceiling: int) -> Sequence[int]:
    return (0, ceiling // 2, ceiling) if ceiling % 2 == 0 else (0, ceiling)


def _named(chart: Chart, label: str, number: int, value: int) -> str:
    return f"{label}, {chart.series[number].name}: {value}"


def _frame(chart: Chart, height: float, parts: Sequence[str]) -> SafeString:
    # Everything that is text was escaped where it was put in.
    return mark_safe(  # noqa: S308
        f'<svg class="consentful-chart" viewBox="0 0 {WIDTH:g} {height:g}" role="img"'
        f' aria-labelledby="{chart.key}-title {chart.key}-text" xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{chart.key}-title">{escape(chart.title)}</title>'
        f'<desc id="{chart.key}-text">{escape(chart.text)}</desc>{"".join(parts)}</svg>'
    )
