"""The settings of this app: one typed function each, read when asked, never at import."""

from collections.abc import Sequence

from django.conf import settings


def public_url() -> str | None:
    """
    `CONSENTFUL_PUBLIC_URL`: scheme and host under which clients reach this site, e.g.
    ``https://memory.example``; an MCP client compares it with the address that it was given.

    Default: None, those of each request. Behind a proxy that ends TLS the scheme is then `http`.
    """
    url: str | None = getattr(settings, "CONSENTFUL_PUBLIC_URL", None)
    return url.rstrip("/") if url else None


def mcp_origins() -> Sequence[str]:
    """
    `CONSENTFUL_MCP_ORIGINS`: web pages that may call the MCP endpoint from a browser, each as its
    origin, e.g. ``["https://app.example"]``. Others are refused.

    Default: none but the site's own. Programs send no origin and are not concerned.
    """
    return getattr(settings, "CONSENTFUL_MCP_ORIGINS", ())


def authorization_servers() -> Sequence[str]:
    """
    `CONSENTFUL_AUTHORIZATION_SERVERS`: OAuth issuers whose tokens your own class among
    `CONSENTFUL_AUTHENTICATION_CLASSES` accepts; MCP clients are told to ask them for one.

    Default: none, tokens are issued by `issue_token` and the admin.
    """
    return getattr(settings, "CONSENTFUL_AUTHORIZATION_SERVERS", ())
