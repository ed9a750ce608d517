"""Charts: what is drawn is what stands in the table, in proportion, readable without seeing it."""

import re
from xml.etree import ElementTree

import pytest

from privacy.charts import Chart, Series, draw_bars, draw_columns, round_up

SVG = "{http://www.w3.org/2000/svg}"


def chart_of(*values: list[int], labels: list[str] | None = None) -> Chart:
    return Chart(
        key="one",
        title="One & two",
        text="What < they > say.",
        head="Week from",
        labels=labels or [f"w{place}" for place in range(len(values[0]))],
        series=[Series(name=f"s{number}", values=one) for number, one in enumerate(values)],
    )


def drawn(svg: str, *, side: str = "height") -> dict[tuple[str, str], tuple[int, float]]:
    """Return what a chart says and shows: the number in words and the length of its bar."""
    found = {}
    for bar in ElementTree.fromstring(svg).iter(f"{SVG}rect"):
        words = bar.find(f"{SVG}title").text
        label, name, number = re.fullmatch(r"(.+), (.+): (\d+)", words).groups()
        found[label, name] = (int(number), float(bar.get(side)))
    return found


def in_table(chart: Chart) -> dict[tuple[str, str], int]:
    return {
        (label, one.name): values[number]
        for label, values in chart.rows
        for number, one in enumerate(chart.series)
    }


@pytest.mark.parametrize("top", [None, 400])
def test_columns_are_the_numbers_of_the_table_in_proportion(top: int | None) -> None:
    chart = chart_of([0, 3, 12, 150], [7, 0, 1, 2], [1, 1, 1, 0])
    found = drawn(draw_columns(chart, top=top))
    assert {key: number for key, (number, _) in found.items()} == in_table(chart)
    scale = 140 / round_up(top or 150)
    for number, length in found.values():
        assert length == pytest.approx(number * scale, abs=0.006)


def test_lying_bars_are_too() -> None:
    chart = chart_of([0, 3, 12, 1000])
    found = drawn(draw_bars(chart), side="width")
    assert {key: number for key, (number, _) in found.items()} == in_table(chart)
    lengths = [length / number for number, length in found.values() if number]
    assert max(lengths) - min(lengths) < 0.01


def test_it_says_what_it_shows_and_escapes_it() -> None:
    chart = chart_of([1], labels=["<script>&"])
    for svg in (draw_columns(chart), draw_bars(chart)):
        assert "<script>" not in svg
        root = ElementTree.fromstring(svg)
        assert root.get("role") == "img"
        named = root.get("aria-labelledby").split()
        assert [root.find(f"{SVG}{one}").get("id") for one in ("title", "desc")] == named
        assert root.find(f"{SVG}title").text == "One & two"
        assert root.find(f"{SVG}desc").text == "What < they > say."
        assert not {one.tag for one in root.iter()} & {f"{SVG}script", f"{SVG}image", f"{SVG}use"}
        assert not re.search(r"style=|href=|on\w+=", svg)


def test_nothing_is_a_chart_too() -> None:
    for svg in (
        draw_columns(chart_of([], [])),
        draw_columns(chart_of([0])),
        draw_bars(chart_of([])),
    ):
        ElementTree.fromstring(svg)


@pytest.mark.parametrize(("number", "top"), [(0, 1), (1, 1), (3, 5), (5, 5), (6, 10), (101, 200)])
def test_an_axis_ends_at_a_round_number(number: int, top: int) -> None:
    assert round_up(number) == top
