"""A tenant of its own for every test, with everyone who may call."""

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.factories import Persona, events_of, make_persona, make_tenant
from tests.http.client import API


class World:
    """A fresh tenant and the callers it knows, made when they are first asked for."""

    def __init__(self, catalog: dict[str, Any] | None = None) -> None:
        self.tenant = make_tenant(catalog)
        self.personas: dict[str, Persona] = {}
        self._clients: dict[str, API] = {}

    def __getattr__(self, name: str) -> API:
        if name not in self._clients:
            try:
                persona = self.personas[name] = make_persona(self.tenant, name)
            except LookupError:
                raise AttributeError(name) from None
            self._clients[name] = API(self.tenant.slug, persona.token)
        return self._clients[name]

    @property
    def stranger(self) -> API:
        """Nobody: no credential at all."""
        return API(self.tenant.slug)

    def events(self, *actions: str) -> list[Any]:
        return events_of(self.tenant, *actions)

    @contextlib.contextmanager
    def denied(self, count: int) -> Iterator[None]:
        """Check how many denied events the block leaves."""
        before = len(self.events("access.denied"))
        yield
        found = self.events("access.denied")[before:]
        assert len(found) == count, [(one.actor, one.scope, one.key) for one in found]
        assert all(one.outcome == "denied" for one in found)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def make_world() -> Callable[..., World]:
    return World


class Clock:
    """The database's clock, standing still where a test puts it."""

    def __init__(self, freeze: Callable[[str], None]) -> None:
        self.freeze = freeze
        self.set(datetime.now(UTC).replace(microsecond=0))

    def set(self, moment: datetime) -> None:
        self.now = moment
        self.freeze(f"'{moment.isoformat()}'")

    def move(self, seconds: float) -> None:
        self.set(self.now + timedelta(seconds=seconds))


@pytest.fixture
def frozen(world: World, clock: Callable[[str], None]) -> Clock:
    """A clock that stands still from now on."""
    return Clock(clock)
