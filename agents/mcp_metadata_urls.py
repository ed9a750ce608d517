"""Where clients learn how to get a token; to be included at ``.well-known/oauth-protected-resource/``."""

from django.core.exceptions import ImproperlyConfigured
from django.urls import path

try:
    from agents.mcp import ResourceMetadata
except ImportError as missing:
    raise ImproperlyConfigured(
        "agents.mcp_metadata_urls needs django-mcpz: install consentful[mcp], or leave out this"
        " include."
    ) from missing

urlpatterns = [path("<path:resource>", ResourceMetadata.as_view())]
