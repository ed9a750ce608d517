"""The addresses of the standalone service."""

from django.contrib import admin
from django.urls import path, re_path

from config import health
from tenants.views import UnknownRoute

urlpatterns = [
    path("admin/", admin.site.urls),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    re_path(r"", UnknownRoute.as_view()),
]

handler400 = "tenants.views.bad_request"
handler403 = "tenants.views.permission_denied"
handler404 = "tenants.views.not_found"
handler500 = "tenants.views.server_error"
