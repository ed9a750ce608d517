"""Routes of preferences and definitions, below ``tenants/{tenant}/``."""

from django.urls import path

from preferences import views

urlpatterns = [
    path("tenants/<str:tenant>/definitions", views.DefinitionsView.as_view()),
    path("tenants/<str:tenant>/preferences", views.PreferencesView.as_view()),
    path("tenants/<str:tenant>/preferences/batch", views.BatchView.as_view()),
    path("tenants/<str:tenant>/preferences/effective", views.EffectiveView.as_view()),
    path("tenants/<str:tenant>/preferences/<path:address>", views.PreferenceView.as_view()),
]
