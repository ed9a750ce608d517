"""A tenant of its own for every test, with everyone who may call."""

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

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

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.set(datetime.now(UTC).replace(microsecond=0))

    def set(self, moment: datetime) -> None:
        self.now = moment
        replace_clock(f"'{moment.isoformat()}'::timestamptz")

    def move(self, seconds: float) -> None:
        self.set(self.now + timedelta(seconds=seconds))


def replace_clock(expression: str) -> None:
    execute_as_owner(
        "CREATE OR REPLACE FUNCTION consentful_now() RETURNS timestamptz"
        f" LANGUAGE sql VOLATILE PARALLEL SAFE AS $$ SELECT {expression} $$"
    )


def execute_as_owner(statement: str) -> None:
    with connection.as_owner(), connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.fixture
def owner_does() -> Callable[[str], None]:
    """Execute a statement as the owner of the tables."""
    return execute_as_owner


@pytest.fixture
def frozen(world: World) -> Iterator[Clock]:
    """A clock that stands still from now on, and runs again after the test."""
    try:
        yield Clock()
    finally:
        replace_clock("clock_timestamp()")
