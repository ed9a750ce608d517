"""
The MCP endpoint of each tenant, to be included at ``mcp/``. Needs the extra `mcp`.

What clients ask first stands at the root of the site: include `agents.mcp_metadata_urls` too.
"""

from django.core.exceptions import ImproperlyConfigured
from django.urls import path

try:
    from agents.mcp import Endpoint
except ImportError as missing:
    raise ImproperlyConfigured(
        "agents.mcp_urls needs django-mcpz: install consentful[mcp], or leave out this include."
    ) from missing

urlpatterns = [path("<str:tenant>", Endpoint.as_view())]
