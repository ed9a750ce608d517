"""The fixtures of tests over HTTP: a tenant of its own, everyone who may call, a frozen clock."""

from tests.http.conftest import frozen, make_world, owner_does, world

__all__ = ["frozen", "make_world", "owner_does", "world"]
