"""
The key that signs, where the environment names none: a file in the data directory.

Only the standalone service keeps keys in files; a host names its own in a setting.
"""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from audit.signing import as_pem, read_private_key, thumbprint


def find_signing_key(folder: Path) -> str:
    """Return the private key as PEM text; made on first use, readable for this account alone."""
    return _find(folder, _present(folder), _new_key)


def _find(folder: Path, path: Path, make: Callable[[], str]) -> str:
    if not path.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = _write_draft(folder, make())
        try:
            os.link(draft, path)  # whoever was faster has made the key
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text("ascii")


def find_suppression_key(folder: Path) -> str:
    """
    Return the secret that digests names of forgotten persons; made on first use, never replaced.

    With another one, nobody in a restored backup would be found again.
    """
    return _find(folder, folder / "suppression.key", lambda: f"{secrets.token_hex(32)}\n").strip()


def find_former_keys(folder: Path) -> str:
    """Return the keys of the folder, as PEM texts after one another: all that ever signed here."""
    return "".join(path.read_text("ascii") for path in sorted(folder.glob("*.pem")))


def rotate_signing_key(folder: Path) -> tuple[str, str]:
    """
    Put a new key in the place of the present one, of which the public half alone is kept.

    Returns:
        The thumbprints of the former and of the new key.
    """
    former = read_private_key(find_signing_key(folder)).public_key()
    text = _new_key()
    draft = _write_draft(folder, text)
    # First what verifies the past: cut short between the two steps, nothing is lost.
    (folder / f"former-{thumbprint(former)}.pem").write_text(as_pem(former), "ascii")
    draft.replace(_present(folder))
    return thumbprint(former), thumbprint(read_private_key(text).public_key())


def _present(folder: Path) -> Path:
    return folder / "signing.pem"


def _new_key() -> str:
    key = Ed25519PrivateKey.generate()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _write_draft(folder: Path, text: str) -> Path:
    draft = folder / f".draft-{secrets.token_hex(8)}"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return draft
