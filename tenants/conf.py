"""The settings of this app: one typed function each, read when asked, never at import."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.module_loading import import_string


def scope_kinds() -> Sequence[str]:
    """
    `CONSENTFUL_SCOPE_KINDS`: further kinds of scope, e.g. ``["team"]`` for ``team::payments``.

    Lower-case identifiers; none of them is personal. Default: none.
    """
    return getattr(settings, "CONSENTFUL_SCOPE_KINDS", ())


def runtime_role() -> str | None:
    """
    `CONSENTFUL_RUNTIME_ROLE`: the login that serves requests, where migrations use another one.

    The owner grants it its rights after every migration. Default: None, one login does both and
    row-level security does not hold (see the check ``consentful.W001``).
    """
    return getattr(settings, "CONSENTFUL_RUNTIME_ROLE", None)


def docs_url() -> str:
    """
    `CONSENTFUL_DOCS_URL`: the page that explains the error codes; a problem's `type` points there.

    Default: ``https://consentful.example/docs/errors``.
    """
    return getattr(settings, "CONSENTFUL_DOCS_URL", "https://consentful.example/docs/errors")


def suppression_key() -> str | None:
    """
    `CONSENTFUL_SUPPRESSION_KEY`: the secret with which names of forgotten persons are digested, or a
    function without arguments that returns it.

    It must outlive every backup: with another key, nobody in a restored database is found again.
    Default: derived from ``SECRET_KEY``, and for what is older from ``SECRET_KEY_FALLBACKS``.
    """
    chosen: Any = getattr(settings, "CONSENTFUL_SUPPRESSION_KEY", None)
    text: str | None = chosen() if callable(chosen) else chosen
    return text or None


def metrics_directory() -> Path | None:
    """
    `CONSENTFUL_METRICS_DIRECTORY`: folder in which commands leave what they measured.

    Each writes one file of Prometheus' text format, as the node exporter's textfile collector reads
    it. Default: None, they leave nothing.
    """
    path = getattr(settings, "CONSENTFUL_METRICS_DIRECTORY", None)
    return None if path is None else Path(path)


def authentication_classes() -> Sequence[str]:
    """
    `CONSENTFUL_AUTHENTICATION_CLASSES`: dotted paths of the Django REST framework classes that find
    out who sends a request to the HTTP API, asked in their order.

    Default: bearer tokens, then Django's session.
    """
    default = (
        "tenants.authentication.BearerAuthentication",
        "tenants.authentication.SessionAuthentication",
    )
    return getattr(settings, "CONSENTFUL_AUTHENTICATION_CLASSES", default)


def resolve_tenant(request: HttpRequest, name: str) -> str:
    """
    `CONSENTFUL_TENANT_RESOLVER`: dotted path of a function that maps a request and the name in its
    path to a tenant's slug, e.g. the host's organisation to ours.

    Default: the name is the slug.
    """
    path: str | None = getattr(settings, "CONSENTFUL_TENANT_RESOLVER", None)
    if path is None:
        return name
    resolver: Callable[[HttpRequest, str], str] = import_string(path)
    return resolver(request, name)


def resolve_subject(user_id: str, tenant: str) -> str | None:
    """
    `CONSENTFUL_SUBJECT_RESOLVER`: dotted path of a function that maps a host's user id (text) and a
    tenant's slug to the external id of the person that the user is, or None.

    Asked only where no subject row names the user. Default: nobody.
    """
    path: str | None = getattr(settings, "CONSENTFUL_SUBJECT_RESOLVER", None)
    if path is None:
        return None
    resolver: Callable[[str, str], str | None] = import_string(path)
    return resolver(user_id, tenant)
