"""The settings of this app: one typed function each, read when asked, never at import."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string


def confirmation_sender() -> Callable[[Any], object] | None:
    """
    `CONSENTFUL_CONFIRMATION_SENDER`: dotted path of a function that brings the token of a double opt-in
    to the person, say by mail. It is called after the commit with a
    `consent.confirmations.ConfirmationRequest`; if it raises, the request is dropped and answered with 503.

    Default: None, and only an operator's credential is given the token.
    """
    path: str | None = getattr(settings, "CONSENTFUL_CONFIRMATION_SENDER", None)
    return None if path is None else import_string(path)
