"""Tenants and callers as the tests of the HTTP interface have them, and a client of MCP."""

from collections.abc import Callable

import pytest

from tests.agents.client import MCP
from tests.http.conftest import Clock, World, frozen, make_world, owner_does, world

__all__ = ["Clock", "World", "connect", "frozen", "make_world", "owner_does", "world"]


@pytest.fixture
def connect(world: World) -> Callable[..., MCP]:
    """Return an MCP client of one of the world's callers, by name."""

    def connect(name: str, **more: object) -> MCP:
        return MCP(world.tenant.slug, getattr(world, name).token, **more)

    return connect
