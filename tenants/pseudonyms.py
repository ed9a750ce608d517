"""
Keyed digests of names: who has a name can find what stands for it, nobody can go the other way.

The key lies outside the database, or a copy of the database could be searched with a list of names.
"""

import hashlib
import hmac
from collections.abc import Sequence

from django.conf import settings
from django.utils.crypto import salted_hmac

from tenants.conf import suppression_key

_SALT = "consentful.suppression"


def digest(*parts: str) -> str:
    """Return the digest of some texts with the present key."""
    return _digest(_keys()[0], *parts)


def name_digest(tenant_id: int, subject: str) -> str:
    """Return the digest of a person's name in one tenant, with the present key."""
    return digest("subject", str(tenant_id), subject)


def digests_of(tenant_id: int, subject: str) -> Sequence[str]:
    """Return the digests that a name had under any key that is still known."""
    return [_digest(key, "subject", str(tenant_id), subject) for key in _keys()]


def key_name() -> str:
    """Return what the present key is called; tells nothing about it."""
    return names_of_keys()[0]


def names_of_keys() -> Sequence[str]:
    """Return the names of all keys that are still known, the present one first."""
    return [_digest(key, "name of the key")[:16] for key in _keys()]


def digest_with(key: str, *parts: str) -> str:
    """
    Return the digest of some texts with the key of that name.

    Raises:
        LookupError: no such key is known.
    """
    for known, name in zip(_keys(), names_of_keys(), strict=True):
        if name == key:
            return _digest(known, *parts)
    raise LookupError(key)


def _digest(key: bytes, *parts: str) -> str:
    framed = b"".join(
        len(part).to_bytes(8, "big") + part for part in (one.encode() for one in parts)
    )
    return hmac.new(key, framed, hashlib.sha256).hexdigest()


def _keys() -> Sequence[bytes]:
    own = suppression_key()
    if own is not None:
        return [hashlib.sha256(own.encode()).digest()]
    secrets = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return [
        salted_hmac(_SALT, b"key", secret=secret, algorithm="sha256").digest() for secret in secrets
    ]
