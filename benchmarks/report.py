"""What a run found, as a table for people and as JSON for programs."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import django
from rich.console import Console
from rich.table import Table

from benchmarks.database import connect, time_waits
from benchmarks.harness import TWIN_LEAST, TWIN_MOST, is_trusted
from benchmarks.measures import Measure, find_measure
from benchmarks.runs import Reading

#: The share of the machine that others may use without spoiling every ratio.
BUSY_MOST = 0.25

COLUMNS = ("measure", "median", "p99", "per second", "result", "goal", "stretch", "holds", "twin")


def describe(
    readings: Sequence[Reading],
    machine: Mapping[str, Any],
    *,
    seconds: float,
    busy: float,
    is_quick: bool,
) -> dict[str, Any]:
    """
    Return the run as JSON's types.

    Args:
        machine: as of `describe_machine`.
        busy: the share of the machine that others used before the run.
    """
    return {
        "quick": is_quick,
        "seconds": round(seconds, 1),
        "trusted": are_trusted(readings, busy=busy),
        "machine": dict(machine),
        "measures": [_describe(reading, find_measure(reading.measure)) for reading in readings],
    }


def describe_machine(busy: float) -> dict[str, Any]:
    """Return what numbers depend on besides the code."""
    with connect() as session:
        server = session.info.server_version
    return {
        "cores": os.cpu_count(),
        "busy": round(busy, 2),
        "python": platform.python_version(),
        "django": django.get_version(),
        "postgresql": f"{server // 10000}.{server % 10000}",
        **time_waits(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def are_trusted(readings: Sequence[Reading], *, busy: float) -> bool:
    """Whether the machine was free, and every twin came out close enough to its floor."""
    return busy <= BUSY_MOST and all(
        is_trusted(one.twin) for one in readings if one.twin is not None
    )


def all_hold(readings: Sequence[Reading]) -> bool:
    """Whether every goal was met."""
    return all(find_measure(one.measure).holds(one.value) for one in readings)


def print_report(
    console: Console,
    readings: Sequence[Reading],
    machine: Mapping[str, Any],
    *,
    seconds: float,
    busy: float,
) -> None:
    """Print the table, and what must be known before anyone believes it."""
    table = Table(*COLUMNS, title="Consentful's benchmarks")
    for column in table.columns[1:]:
        column.justify = "right"
    for reading in readings:
        measure = find_measure(reading.measure)
        table.add_row(
            f"{measure.title}\n[dim]{measure.name}: {measure.against}[/dim]",
            format_time(reading.median),
            format_time(reading.p99),
            f"{reading.per_second:,.0f}",
            measure.scale.describe(reading.value),
            measure.scale.describe_bound(measure.goal),
            measure.scale.describe_bound(measure.stretch),
            verdict(measure, reading.value),
            "" if reading.twin is None else f"{reading.twin:.2f}",
        )
    console.print(table)
    for reading in readings:
        if reading.note:
            console.print(f"{reading.measure}: {reading.note}")
    facts = ", ".join(f"{name} {fact}" for name, fact in machine.items())
    console.print(f"Took {seconds:.0f} seconds ({facts}).")
    if busy > BUSY_MOST:
        console.print(
            "No ratio can be trusted: others used the machine before the run began. What takes more"
            " steps than its floor waits more often then, and comes out much slower than it is."
        )
    restless = [one for one in readings if one.twin is not None and not is_trusted(one.twin)]
    if restless:
        names = ", ".join(one.measure for one in restless)
        console.print(
            f"These ratios cannot be trusted: {names}. Two copies of the same floor differed by more"
            f" than {TWIN_LEAST} to {TWIN_MOST} there, so the machine was busy with something else."
        )


def verdict(measure: Measure, value: float) -> str:
    """Return whether the goal is met, in a word."""
    if measure.reaches_stretch(value):
        return "stretch"
    return "yes" if measure.holds(value) else "NO"


def format_time(seconds: float) -> str:
    """Return a latency in the unit that suits it."""
    return f"{seconds * 1e3:.1f} ms" if seconds >= 0.01 else f"{seconds * 1e6:,.0f} µs"


def write_json(path: Path, report: dict[str, Any]) -> None:
    """Write the same for programs."""
    path.write_text(json.dumps(report, indent=2) + "\n", "utf-8")


def _describe(reading: Reading, measure: Measure) -> dict[str, Any]:
    return {
        "name": measure.name,
        "title": measure.title,
        "against": measure.against,
        "scale": measure.scale.value,
        "value": round(reading.value, 4),
        "goal": measure.goal,
        "stretch": measure.stretch,
        "holds": measure.holds(reading.value),
        "median_us": round(reading.median * 1e6, 2),
        "p99_us": round(reading.p99 * 1e6, 2),
        "per_second": round(reading.per_second, 1),
        "against_median_us": None
        if reading.against_median is None
        else round(reading.against_median * 1e6, 2),
        "twin": None if reading.twin is None else round(reading.twin, 4),
        "note": reading.note,
    }
