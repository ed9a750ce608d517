"""The settings of this app: one typed function each, read when asked, never at import."""

from collections.abc import Sequence

from django.conf import settings


def personal_data() -> Sequence[str]:
    """
    `CONSENTFUL_PERSONAL_DATA`: what a host itself holds about persons: dotted paths of modules, or of
    classes that are made without arguments, which fulfil `tenants.personal.PersonalData`, e.g.
    ``["shop.personal_data"]``.

    Their stores are shown, exported and erased with ours. Default: none.
    """
    return getattr(settings, "CONSENTFUL_PERSONAL_DATA", ())
