"""The settings of this app: one typed function each, read when asked, never at import."""

from datetime import timedelta

from django.conf import settings


def readings_kept() -> timedelta:
    """
    `CONSENTFUL_READINGS_KEPT`: days for which a person is shown who else read a record; older ones are
    dropped by housekeeping.

    A whole number. Default: 90.
    """
    return timedelta(days=getattr(settings, "CONSENTFUL_READINGS_KEPT", 90))
