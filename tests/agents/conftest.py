"""A tenant of its own for every test, as over HTTP."""

from tests.http.conftest import Clock, World, frozen, make_world, owner_does, world

__all__ = ["Clock", "World", "frozen", "make_world", "owner_does", "world"]
