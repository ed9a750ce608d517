"""How names that know no rules become keys, and back. Pure; what cannot be told apart is escaped."""

import re
import unicodedata
from urllib.parse import quote, unquote

#: What no key may hold, or only where it is assigned: see `tenants.scopes`.
_UNFIT = frozenset({"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"})
_ESCAPED = re.compile("%[0-9A-F]{2}")


def encode(name: str, *, reserved: str = "") -> str:
    """
    Return a name as part of a key, percent-encoded where a key could not hold it as it is.

    Args:
        reserved: characters that separate the parts.
    """
    # Not in NFC, it would come back as other code points.
    is_stable = unicodedata.is_normalized("NFC", name)
    last = len(name) - 1
    return "".join(
        quote(character, safe="", errors="surrogatepass")
        if character in "%/"
        or (character.isspace() and index in (0, last))
        or (not is_stable and not character.isascii())
        or unicodedata.category(character) in _UNFIT
        else f"%{ord(character):02X}"
        if character in reserved
        else character
        for index, character in enumerate(name)
    )


def decode(part: str) -> str:
    """
    Return the name that `encode` was given.

    Raises:
        ValueError: `encode` writes no such thing.
    """
    if "%" in _ESCAPED.sub("", part):
        raise ValueError(part)
    return unquote(part, errors="strict")
