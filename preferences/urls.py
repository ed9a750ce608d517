"""Routes of preferences and definitions, below ``tenants/{tenant}/``."""

from django.urls import path, re_path

from preferences import archive_views, hold_views, lesson_views, views

urlpatterns = [
    path("tenants/<str:tenant>/definitions", views.DefinitionsView.as_view()),
    path("tenants/<str:tenant>/preferences", views.PreferencesView.as_view()),
    path("tenants/<str:tenant>/preferences/batch", views.BatchView.as_view()),
    path("tenants/<str:tenant>/preferences/effective", views.EffectiveView.as_view()),
    path("tenants/<str:tenant>/preferences/ranked", lesson_views.RankedView.as_view()),
    path("tenants/<str:tenant>/preferences/search", lesson_views.SearchView.as_view()),
    path("tenants/<str:tenant>/preferences/archive", archive_views.ArchiveView.as_view()),
    path("tenants/<str:tenant>/preferences/restore", archive_views.RestoreView.as_view()),
    path("tenants/<str:tenant>/subjects/<str:subject>/holds", hold_views.HoldsView.as_view()),
    path(
        "tenants/<str:tenant>/subjects/<str:subject>/holds/<str:key>",
        hold_views.HoldView.as_view(),
    ),
    # Whatever follows is an address, line breaks included: those are refused by name.
    re_path(
        r"^tenants/(?P<tenant>[^/]+)/preferences/(?P<address>[\s\S]+)\Z",
        views.PreferenceView.as_view(),
    ),
]
