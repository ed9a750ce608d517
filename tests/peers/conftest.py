"""A tenant in which a person remembers anything, and callers that act for that person."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections

from tenants.callers import Caller, find_caller
from tests.http.conftest import World, frozen, make_world, owner_does, world

__all__ = ["frozen", "make_world", "owner_does", "world"]


@pytest.fixture
def caller(world: World) -> Caller:
    """Alice, who needs nobody's consent for her own undeclared keys here."""
    return caller_of(world, "alice")


def caller_of(world: World, name: str, **more: Any) -> Caller:
    getattr(world, name)
    found = find_caller(tenant=world.tenant.slug, user_id=str(world.personas[name].user.pk))
    assert found is not None
    return found


@pytest.fixture
def closing() -> Iterator[None]:
    """Close what the thread of asynchronous calls has opened."""
    yield
    from asgiref.sync import async_to_sync, sync_to_async

    async_to_sync(sync_to_async(connections.close_all))()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
