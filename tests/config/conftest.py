"""No process outlives the test that started it."""

from collections.abc import Iterator

import pytest

from tests.config.processes import started


@pytest.fixture(autouse=True)
def ended_processes() -> Iterator[None]:
    yield
    while started:
        process = started.pop()
        if process.poll() is None:
            process.kill()
        process.communicate()
