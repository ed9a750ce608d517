"""Routes of the tenant's trail, below ``tenants/{tenant}/``."""

from django.urls import path

from tenants.trail_views import TrailView

urlpatterns = [path("tenants/<str:tenant>/audit", TrailView.as_view())]
