"""The service and the model say the same, whatever is asked in whatever order."""

import os
import random
import sys
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.http.conftest import Clock, replace_clock
from tests.properties.machine import Machine

#: Whoever wants to search longer sets PROPERTIES=thorough; a red run prints its seed, which
#: PROPERTIES_SEED repeats.
IS_THOROUGH = os.environ.get("PROPERTIES") == "thorough"
COMMON = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}


@pytest.fixture
def clock() -> Iterator[Clock]:
    """A clock that stands still, starts anew for every example, and runs again after the test."""
    try:
        yield Clock()
    finally:
        replace_clock("clock_timestamp()")


def run(machine: type[Machine], examples: int, steps: int) -> None:
    if IS_THOROUGH:
        number = int(os.environ.get("PROPERTIES_SEED") or random.SystemRandom().randrange(2**32))
        sys.stderr.write(f"PROPERTIES_SEED={number}\n")  # pytest shows it where the test fails
        chosen = settings(
            max_examples=20 * examples, stateful_step_count=2 * steps, database=None, **COMMON
        )
        machine = seed(number)(machine)
    else:
        # The same examples in every run: what is red here is red everywhere.
        chosen = settings(
            max_examples=examples, stateful_step_count=steps, derandomize=True, **COMMON
        )
    run_state_machine_as_test(machine, settings=chosen)


def test_in_process(clock):
    class InProcess(Machine):
        pass

    InProcess.clock = clock
    run(InProcess, examples=5, steps=60)


def test_over_http(clock, server):
    class OverHTTP(Machine):
        pass

    OverHTTP.clock = clock
    with httpx.Client(base_url=server, timeout=30) as wire:
        OverHTTP.wire = wire
        run(OverHTTP, examples=3, steps=50)
