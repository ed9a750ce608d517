"""The settings of this app: one typed function each, read when asked, never at import."""

from collections.abc import Sequence

from django.conf import settings


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
