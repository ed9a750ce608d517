"""
Signatures with Ed25519 (RFC 8032), as compact JWS (RFC 7515 and 8037) that any JOSE library reads.

Here belong keys and signatures; what is signed belongs to its own module.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from jwt.api_jws import PyJWS
from jwt.exceptions import PyJWTError

from audit.conf import signing_key, signing_key_fallbacks
from audit.exceptions import ProofRefused, SigningKeyMissing

#: RFC 8037's name of the algorithm; with keys on Curve25519 it means Ed25519 alone.
ALGORITHM = "EdDSA"

_PEM = re.compile(r"-----BEGIN ([A-Z ]+)-----.+?-----END \1-----", re.DOTALL)

#: Public keys by the thumbprint that signatures name.
type Keys = Mapping[str, Ed25519PublicKey]


def sign(payload: Mapping[str, Any], *, kind: str) -> tuple[str, str]:
    """
    Return the thumbprint of the present key, and the payload signed with it as compact JWS.

    Args:
        kind: what the payload is, e.g. ``consentful-checkpoint``; the header's `typ`, so that one thing
            signed cannot be passed off as another.

    Raises:
        SigningKeyMissing: there is no key.
        ProofRefused: the configured key is none.
    """
    key = present_key()
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    signer = thumbprint(key.public_key())
    headers = {"kid": signer, "typ": kind}
    return signer, PyJWS().encode(text.encode(), key, algorithm=ALGORITHM, headers=headers)


def read_signed(text: str, *, kind: str, keys: Keys) -> tuple[dict[str, Any], str]:
    """
    Return the payload of a compact JWS and the thumbprint of the key that signed it.

    Raises:
        ProofRefused: it is not what `sign` returns for this kind, or no key of `keys` signed it.
    """
    try:
        header = PyJWS().get_unverified_header(text)
    except PyJWTError as fault:
        raise ProofRefused("It is no signed text (a compact JWS).") from fault
    if header.get("typ") != kind:
        raise ProofRefused(f"What is signed is no {kind}.")
    signer = str(header.get("kid"))
    if signer not in keys:
        # Whoever wrote the line chose this text: it must move no cursor of a terminal.
        raise ProofRefused(f"Its key {signer[:64]!a} is not among the keys that are trusted.")
    try:
        payload = json.loads(PyJWS().decode(text, keys[signer], algorithms=[ALGORITHM]))
    except (PyJWTError, ValueError) as fault:
        raise ProofRefused("Its signature does not fit: it was altered.") from fault
    return payload, signer


def present_key() -> Ed25519PrivateKey:
    """
    Return the private key that signs.

    Raises:
        SigningKeyMissing: there is none.
        ProofRefused: the configured one is no Ed25519 private key.
    """
    text = signing_key()
    if text is None:
        raise SigningKeyMissing
    return read_private_key(text)


def trusted_keys() -> Keys:
    """
    Return the public halves of the present key and of those before it, the present one first.

    Raises:
        ProofRefused: what is configured is no key.
    """
    configured = (signing_key(), signing_key_fallbacks())
    return {name: key for text in configured if text for name, key in read_keys(text).items()}


def read_private_key(text: str) -> Ed25519PrivateKey:
    """
    Return the key of a PEM text. Line ends may be written as ``\\n``, as some environments need.

    Raises:
        ProofRefused: it is something else.
    """
    try:
        key = load_pem_private_key(text.replace("\\n", "\n").encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as fault:
        raise ProofRefused(
            "The signing key is no PEM text of an unencrypted private key (PKCS #8)."
        ) from fault
    if not isinstance(key, Ed25519PrivateKey):
        raise ProofRefused("The signing key is of another kind: it must be Ed25519.")
    return key


def read_keys(text: str) -> Keys:
    """
    Return the public keys of PEM texts after one another, private or public, or of a JWK set (RFC 7517).

    Raises:
        ProofRefused: there is no key in it, or one of another kind.
    """
    text = text.replace("\\n", "\n")
    keys: list[Ed25519PublicKey] = []
    if text.lstrip().startswith("{"):
        keys += _read_jwk_set(text)
    for match in _PEM.finditer(text):
        keys.append(
            read_private_key(match[0]).public_key()
            if "PRIVATE" in match[1]
            else _read_public_key(match[0])
        )
    if not keys:
        raise ProofRefused("There is no key in it: PEM texts or a JWK set are read.")
    return {thumbprint(key): key for key in keys}


def as_jwk_set(keys: Iterable[Ed25519PublicKey]) -> dict[str, Any]:
    """Return public keys as a JWK set (RFC 7517), to be handed to whoever verifies."""
    return {
        "keys": [
            {**_jwk(key), "kid": thumbprint(key), "alg": ALGORITHM, "use": "sig"} for key in keys
        ]
    }


def as_pem(key: Ed25519PublicKey) -> str:
    """Return a public key as PEM text."""
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def thumbprint(key: Ed25519PublicKey) -> str:
    """Return the key's name: its JWK thumbprint (RFC 7638)."""
    text = json.dumps(_jwk(key), separators=(",", ":"), sort_keys=True)
    return _base64(hashlib.sha256(text.encode()).digest())


def _jwk(key: Ed25519PublicKey) -> dict[str, str]:
    return {"crv": "Ed25519", "kty": "OKP", "x": _base64(key.public_bytes_raw())}


def _read_jwk_set(text: str) -> list[Ed25519PublicKey]:
    try:
        entries = json.loads(text)["keys"]
        return [
            Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(entry["x"] + "=="))
            for entry in entries
            if entry["kty"] == "OKP" and entry["crv"] == "Ed25519"
        ]
    except (ValueError, KeyError, TypeError) as fault:
        raise ProofRefused("It is no JWK set of Ed25519 keys.") from fault


def _read_public_key(text: str) -> Ed25519PublicKey:
    try:
        key = load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm) as fault:
        raise ProofRefused("It is no PEM text of a public key.") from fault
    if not isinstance(key, Ed25519PublicKey):
        raise ProofRefused("A key is of another kind: it must be Ed25519.")
    return key


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
