"""
Runs the benchmarks: ``python -m benchmarks [--quick] [--only MODULE …] [--json FILE] [--gate]``.

Makes a database of its own, fills it, lets each module take its measures, drops it again.
"""

import argparse
import importlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import django
from rich.console import Console

from benchmarks.harness import FULL, QUICK
from benchmarks.measures import MEASURES

MODULES = tuple(dict.fromkeys(measure.module for measure in MEASURES))


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for, and return the exit status."""
    options = read_options(arguments)
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"
    django.setup()
    # Not at the top: these need Django's models, which are there from now on.
    database = importlib.import_module("benchmarks.database")
    cores = importlib.import_module("benchmarks.cores")
    population = importlib.import_module("benchmarks.population")
    runs = importlib.import_module("benchmarks.runs")
    report = importlib.import_module("benchmarks.report")

    began = time.monotonic()
    busy = cores.find_busy_share()
    console = Console(width=None if sys.stdout.isatty() else 160)
    readings = []
    effort = QUICK if options.quick else FULL
    with database.fresh_database():
        tell(f"Storing the records of {effort.tenants * effort.people_per_tenant} people ...")
        run = runs.Run(effort, population.populate(effort))
        for name in options.only or MODULES:
            tell(f"Measuring {name} ...")
            taken = list(importlib.import_module(f"benchmarks.{name}").measure(run))
            check_complete(name, [reading.measure for reading in taken], is_quick=options.quick)
            readings += taken
        seconds = time.monotonic() - began
        machine = report.describe_machine(busy)
        report.print_report(console, readings, machine, seconds=seconds, busy=busy)
        if options.json:
            told = report.describe(
                readings, machine, seconds=seconds, busy=busy, is_quick=options.quick
            )
            report.write_json(options.json, told)
    if not options.gate:
        return 0
    return 0 if report.all_hold(readings) and report.are_trusted(readings, busy=busy) else 1


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure speed.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, on fewer records")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    parser.add_argument(
        "--only", nargs="+", choices=MODULES, metavar="MODULE", help=f"of {', '.join(MODULES)}"
    )
    parser.add_argument(
        "--gate", action="store_true", help="fail where a goal is missed or a twin is off"
    )
    return parser.parse_args(arguments)


def check_complete(module: str, taken: Sequence[str], *, is_quick: bool) -> None:
    """
    See to it that nothing is left out unnoticed.

    Raises:
        RuntimeError: the module took other measures than it is said to take.
    """
    declared = [
        measure.name
        for measure in MEASURES
        if measure.module == module and not (is_quick and measure.is_long)
    ]
    if sorted(taken) != sorted(declared):
        raise RuntimeError(f"benchmarks.{module} took {taken}, and was to take {declared}.")


def tell(words: str) -> None:
    """Say on standard error what is going on."""
    print(words, file=sys.stderr, flush=True)  # noqa: T201  a program that talks to a terminal


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
