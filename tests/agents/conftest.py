"""The world of the HTTP tests, for agents too."""

from tests.http.conftest import frozen, make_world, owner_does, world

__all__ = ["frozen", "make_world", "owner_does", "world"]
