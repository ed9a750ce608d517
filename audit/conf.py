"""The settings of this app: one typed function each, read when asked, never at import."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings


def signing_key() -> str | None:
    """
    `CONSENTFUL_SIGNING_KEY`: the Ed25519 private key that signs checkpoints, as PEM text (PKCS #8), or a
    function without arguments that returns it, say from a vault.

    Default: None, and nothing is signed.
    """
    return _text("CONSENTFUL_SIGNING_KEY")


def signing_key_fallbacks() -> str | None:
    """
    `CONSENTFUL_SIGNING_KEY_FALLBACKS`: keys that signed before the present one, whose signatures are
    still believed: PEM texts after one another or a JWK set, or a function that returns them.

    Public keys are enough. Default: None.
    """
    return _text("CONSENTFUL_SIGNING_KEY_FALLBACKS")


def checkpoints() -> Path | Sequence[str] | None:
    """
    `CONSENTFUL_CHECKPOINTS`: where signed checkpoints are kept, which must not be the database: a folder, or
    a command with its arguments as a list (see `audit.stores`).

    Default: None, and none are kept.
    """
    chosen: str | Path | Sequence[str] | None = getattr(settings, "CONSENTFUL_CHECKPOINTS", None)
    return Path(chosen) if isinstance(chosen, str) else chosen or None


def _text(name: str) -> str | None:
    chosen: Any = getattr(settings, name, None)
    text: str | None = chosen() if callable(chosen) else chosen
    return text or None
