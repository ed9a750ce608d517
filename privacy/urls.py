"""Routes of a person's own data, below ``tenants/{tenant}/``, and the end of the API's routes."""

from django.urls import path, re_path

from privacy import erasure_views, export_views, views
from privacy.exports import SCHEMA
from tenants.views import UnknownRoute

urlpatterns = [
    path("tenants/<str:tenant>/subjects/<str:subject>/data", views.SubjectDataView.as_view()),
    path(
        "tenants/<str:tenant>/subjects/<str:subject>/erasures",
        erasure_views.ErasuresView.as_view(),
    ),
    path("tenants/<str:tenant>/erasures/<str:reference>", erasure_views.ErasureView.as_view()),
    path(
        "tenants/<str:tenant>/erasures/<str:reference>/receipt",
        erasure_views.ErasureReceiptView.as_view(),
    ),
    path(
        "tenants/<str:tenant>/subjects/<str:subject>/activity", views.SubjectActivityView.as_view()
    ),
    path(
        "tenants/<str:tenant>/subjects/<str:subject>/export",
        export_views.SubjectExportView.as_view(),
    ),
    path(f"schemas/{SCHEMA.name}", export_views.ExportSchemaView.as_view()),
    # Last of all: what no route names is answered in the same form everywhere.
    re_path(r"", UnknownRoute.as_view()),
]
