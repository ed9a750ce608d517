"""One database for the session; every test commits, in a tenant of its own."""

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from tests.factories import Persona, events_of, make_persona, make_tenant
from tests.http.client import API


@pytest.fixture(scope="session", autouse=True)
def committed_database(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Tests commit: what the service does in its own transactions cannot be seen otherwise."""
    with django_db_blocker.unblock():
        yield


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

    def __init__(self) -> None:
        self.now = datetime.now(UTC).replace(microsecond=0)

    def set(self, moment: datetime) -> None:
        self.now = moment
        _replace_clock(f"'{moment.isoformat()}'::timestamptz")

    def move(self, seconds: float) -> None:
        self.set(self.now + timedelta(seconds=seconds))


def _replace_clock(expression: str) -> None:
    with connection.as_owner("clock"), connection.cursor() as cursor:
        cursor.execute(
            "CREATE OR REPLACE FUNCTION consentful_now() RETURNS timestamptz"
            f" LANGUAGE sql VOLATILE PARALLEL SAFE AS $$ SELECT {expression} $$"
        )


@pytest.fixture
def clock(world: World) -> Iterator[Clock]:
    """A clock that stands still from now on; tokens are issued before, they expire too."""
    clock = Clock()
    for name in ("alice", "bob", "agent", "bound", "operator", "owner"):
        getattr(world, name)
    clock.set(clock.now)
    yield clock
    _replace_clock("clock_timestamp()")
