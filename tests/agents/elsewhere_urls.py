"""A host that offers the endpoint at another address."""

from django.urls import include, path

urlpatterns = [
    path("ai/tools/", include("agents.mcp_urls")),
    path(".well-known/oauth-protected-resource/", include("agents.mcp_metadata_urls")),
]
