"""Routes for agents, below ``tenants/{tenant}/``."""

from typing import Any

urlpatterns: list[Any] = []
