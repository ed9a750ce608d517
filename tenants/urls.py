"""Routes of the tenant's trail, below ``tenants/{tenant}/``, and of the keys that prove it."""

from django.urls import path

from tenants.trail_views import ChangesView, CheckpointView, ExportView, KeysView, TrailView

urlpatterns = [
    path("keys", KeysView.as_view()),
    path("tenants/<str:tenant>/audit", TrailView.as_view()),
    path("tenants/<str:tenant>/audit/checkpoint", CheckpointView.as_view()),
    path("tenants/<str:tenant>/audit/export", ExportView.as_view()),
    path("tenants/<str:tenant>/changes", ChangesView.as_view()),
]
