"""Routes of the tenant's trail, below ``tenants/{tenant}/``."""

urlpatterns: list[object] = []
