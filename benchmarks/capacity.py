"""
What a million people cost: a model of bytes and of processor time, from what is measured here.

``python -m benchmarks.capacity [--records N] [--check N] …`` fills a database, measures, and prints the
model; with ``--check`` it fills a second one and says how far the model was from it. The assumptions about
what people do are options; none of the prices is.
"""

import argparse
import importlib
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import django

#: Tables by what they grow with.
PERSON = ("consentful_subject", "consentful_consent_entry", "consentful_consent_state")
RECORD = ("consentful_preference", "consentful_preference_words")
EVENT = ("consentful_audit_event", "consentful_audit_seal")

#: What an index takes once rows have come in any order, in times of a freshly packed one (measured: 99
#: bytes an entry instead of 59).
GROWN = 1.6
#: Seconds of operations that are timed.
TIMED = 5.0


@dataclass(frozen=True, slots=True)
class Bytes:
    """What one row takes: in the table, and in each of its indexes by name, freshly packed."""

    table: float
    by_index: dict[str, float]

    @property
    def indexes(self) -> float:
        """All indexes together."""
        return sum(self.by_index.values())

    @property
    def grown(self) -> float:
        """The same once the indexes have lost their first order."""
        return self.table + self.indexes * GROWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one database showed: bytes by kind of thing, seconds by operation, and its whole size."""

    person: Bytes
    record: Bytes
    event: Bytes
    seconds: dict[str, float]
    people: int
    records: int
    events: int
    size: int

    @property
    def empty(self) -> float:
        """Bytes of a database in which nobody is."""
        return self.size - self.predict(
            people=self.people, records=self.records, events=self.events, is_grown=False
        )

    def predict(self, *, people: float, records: float, events: float, is_grown: bool) -> float:
        """Return the bytes of a database that holds so many."""
        kinds = ((self.person, people), (self.record, records), (self.event, events))
        return sum(
            (each.grown if is_grown else each.table + each.indexes) * count for each, count in kinds
        )


def main(arguments: Sequence[str]) -> int:
    """Measure, print the model, and hold it against a larger database if asked to."""
    options = read_options(arguments)
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"
    django.setup()
    measured = measure(options.records, is_timed=True)
    say_measured(measured)
    say_model(measured, options)
    if options.check:
        larger = measure(options.check, is_timed=False)
        predicted = measured.empty + measured.predict(
            people=larger.people, records=larger.records, events=larger.events, is_grown=False
        )
        say(
            f"Check: {larger.records:,} records and {larger.events:,} sealed events take"
            f" {larger.size / 1e9:.2f} GB; the model says {predicted / 1e9:.2f} GB"
            f" ({predicted / larger.size - 1:+.1%})."
        )
    return 0


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capacity")
    parser.add_argument(
        "--records", type=int, default=1_000_000, help="in the database that is measured"
    )
    parser.add_argument(
        "--check", type=int, help="records of a second database to check the model with"
    )
    parser.add_argument("--people", type=float, default=1e6)
    parser.add_argument("--records-per-person", type=float, default=10)
    parser.add_argument("--changes", type=float, default=50, help="events per person and year")
    parser.add_argument("--reads", type=float, default=20, help="gated reads per person and day")
    parser.add_argument(
        "--peak", type=float, default=5, help="busiest hour, in times of the average"
    )
    parser.add_argument("--keep-years", type=float, default=2, help="how long events are kept")
    return parser.parse_args(arguments)


def measure(records: int, *, is_timed: bool) -> Measured:
    """Fill a database of its own with so many records and their trail, and measure it."""
    # Not at the top: these need Django's models, which are there from now on.
    copies = importlib.import_module("benchmarks.copies")
    database = importlib.import_module("benchmarks.database")
    with copies.filled_copy(records, is_whole=True) as copy, copies.switched_to(copy.database):
        with database.connect(as_owner=True) as owner:
            people = _one(owner, "SELECT count(*) FROM consentful_subject")
            preferences = _one(owner, "SELECT count(*) FROM consentful_preference")
            events = _one(owner, "SELECT count(*) FROM consentful_audit_event")
            person, record, event = (
                _bytes(owner, PERSON, people),
                _bytes(owner, RECORD, preferences),
                _bytes(owner, EVENT, events),
            )
            size = _one(owner, "SELECT pg_database_size(current_database())")
        seconds = time_operations(copy) if is_timed else {}
    return Measured(
        person=person, record=record, event=event, seconds=seconds, people=people,
        records=preferences, events=events, size=size,
    )  # fmt: skip


def time_operations(copy: Any) -> dict[str, float]:
    """Return the median seconds of a read, a write, and of sealing one event, one after the other."""
    growth = importlib.import_module("benchmarks.growth")
    concurrency = importlib.import_module("benchmarks.concurrency")
    workers = importlib.import_module("benchmarks.workers")
    worker = workers.Worker(0, 1, random.Random(1))  # noqa: S311  no secret
    write = concurrency.prepare_hammering(
        copy.population, next(copy.population.draw(worker.random)), 0
    )
    found = {
        "read": _median(growth.prepare_read(copy.population, worker)),
        "write": _median(write),
    }
    database = importlib.import_module("benchmarks.database")
    with database.connect(as_owner=True) as owner:
        owner.execute(concurrency.BACKLOG, [20_000, list(copy.population.tenants)[:1]])
        seal = concurrency.prepare_sealing(list(copy.population.tenants)[:1])
        began, sealed = time.perf_counter(), 0
        while some := seal():
            sealed += some
        found["seal"] = (time.perf_counter() - began) / max(1, sealed)
    return found


def say_measured(measured: Measured) -> None:
    """Print what was found, per thing."""
    say(
        f"Measured on {measured.records:,} records of {measured.people:,} people and"
        f" {measured.events:,} sealed events (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores):"
    )
    for name in ("person", "record", "event"):
        each: Bytes = getattr(measured, name)
        say(
            f"  {name:7} {each.table:5.0f} bytes of table, {each.indexes:4.0f} of indexes when packed;"
            f" {each.grown:5.0f} in all once grown"
        )
        for index, size in sorted(each.by_index.items(), key=lambda one: -one[1]):
            say(f"    {size:5.0f} {index}")
    for name, seconds in measured.seconds.items():
        say(f"  {name:7} {seconds * 1e6:6,.0f} µs, one after the other")


def say_model(measured: Measured, options: argparse.Namespace) -> None:
    """Print what so many people take of disk, and of processors in the busiest hour."""
    people = options.people
    stored = measured.predict(
        people=people, records=people * options.records_per_person, events=0, is_grown=True
    )
    yearly = measured.predict(people=0, records=0, events=people * options.changes, is_grown=True)
    per_second = options.peak / 86_400
    reads = people * options.reads * per_second
    writes = people * options.changes / 365 * per_second
    busy = {
        "reads": reads * measured.seconds["read"],
        "writes": writes * measured.seconds["write"],
        "sealing": writes * measured.seconds["seal"],
    }
    say(
        f"Model for {people:,.0f} people, {options.records_per_person:g} records each,"
        f" {options.changes:g} events each a year, kept {options.keep_years:g} years,"
        f" {options.reads:g} reads each a day, busiest hour {options.peak:g} times the average:"
    )
    say(f"  people, consents and records  {stored / 1e9:8.1f} GB")
    say(f"  events and their chain        {yearly / 1e9:8.1f} GB a year")
    say(f"  in all                        {(stored + yearly * options.keep_years) / 1e9:8.1f} GB")
    say(
        f"  busiest hour                  {reads:8,.0f} reads and {writes:,.0f} writes a second keep"
        f" {sum(busy.values()):.2f} cores busy ("
        + ", ".join(f"{name} {cores:.2f}" for name, cores in busy.items())
        + "), HTTP not counted"
    )


def say(line: str) -> None:
    """Say it to whoever runs this."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _median(call: Callable[[], object]) -> float:
    latencies = []
    until = time.perf_counter() + TIMED
    while time.perf_counter() < until:
        began = time.perf_counter()
        call()
        latencies.append(time.perf_counter() - began)
    return statistics.median(latencies)


def _bytes(owner: Any, tables: Sequence[str], count: int) -> Bytes:
    (table,) = owner.execute(
        "SELECT sum(pg_table_size(name::regclass)) FROM unnest(%s::text[]) name", [list(tables)]
    ).fetchone()
    indexes = owner.execute(
        "SELECT indexrelid::regclass::text, pg_relation_size(indexrelid) FROM pg_index"
        " WHERE indrelid = ANY (%s::text[]::regclass[])",
        [list(tables)],
    ).fetchall()
    return Bytes(float(table) / count, {name: size / count for name, size in indexes})


def _one(owner: Any, statement: str) -> int:
    return int(owner.execute(statement).fetchone()[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
