"""The addresses of the standalone service."""

from django.contrib import admin
from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from config import health
from config.metrics import metrics
from config.public import public
from tenants.views import UnknownRoute

urlpatterns = [
    # First what is asked most: each request tries the routes in their order.
    path("api/v1/", include("preferences.urls")),
    # No row has a page outside the admin; Django's redirect to one knows no unit of work.
    path("admin/r/<path:row>", UnknownRoute.as_view()),
    path("admin/", admin.site.urls),
    path("healthz", public(health.healthz)),
    path("readyz", public(health.readyz)),
    path("metrics", public(metrics)),
    path("api/v1/schema/", public(SpectacularAPIView.as_view()), name="schema"),
    path(
        "api/v1/docs/",
        public(SpectacularSwaggerSplitView.as_view(url_name="schema")),
        name="docs",
    ),
    path("api/v1/", include("tenants.urls")),
    path("api/v1/", include("consent.urls")),
    path("api/v1/", include("agents.urls")),
    # Ends with a route that answers what no other names.
    path("api/v1/", include("privacy.urls")),
    # Tools for language-model agents, and where their clients learn how to get a token.
    path("mcp/", include("agents.mcp_urls")),
    path(".well-known/oauth-protected-resource/", include("agents.mcp_metadata_urls")),
    # What a person sees and decides about its own data.
    path("me/", include("privacy.page_urls")),
    re_path(r"", UnknownRoute.as_view()),
]

handler400 = "tenants.views.bad_request"
handler403 = "tenants.views.permission_denied"
handler404 = "tenants.views.not_found"
handler500 = "tenants.views.server_error"
