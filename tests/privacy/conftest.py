"""A tenant of its own for every test, as over HTTP, and a list outside the database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from privacy import suppressions
from privacy.restores import watch
from tests.http.conftest import Clock, World, frozen, make_world, owner_does, world

__all__ = ["Clock", "World", "frozen", "make_world", "owner_does", "world"]


@pytest.fixture
def listed(tmp_path: Path, settings: object) -> Iterator[Path]:
    """The folder in which what must not return is listed."""
    folder = tmp_path / "suppressions"
    settings.CONSENTFUL_SUPPRESSIONS = folder  # type: ignore[attr-defined]
    watch.forget()
    yield folder
    suppressions._known.clear()
    watch.forget()
