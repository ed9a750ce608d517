"""The settings of this app: one typed function each, read when asked, never at import."""

from collections.abc import Sequence

from django.conf import settings


def page_languages() -> Sequence[str]:
    """
    `CONSENTFUL_PAGE_LANGUAGES`: languages that a person's page is offered in, the first one where a
    browser asks for none of them. Add one whose catalogue your `LOCALE_PATHS` hold.

    Default: ``("en", "de")``.
    """
    return getattr(settings, "CONSENTFUL_PAGE_LANGUAGES", ("en", "de"))


def page_login_url() -> str | None:
    """
    `CONSENTFUL_PAGE_LOGIN_URL`: where a person signs in who opens its page without a session; the
    page's own address goes along as ``next``.

    Default: None, the page has a form of its own, which asks Django's authentication.
    """
    return getattr(settings, "CONSENTFUL_PAGE_LOGIN_URL", None)
