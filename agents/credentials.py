"""
What looks like a credential or a private key, and is therefore not remembered by an agent.

A short list of forms that are certain or nearly so. It guesses nothing from entropy: a commit's
digest and a revision look as random as a key does.
"""

import re
import unicodedata
from collections.abc import Iterator

from tenants.documents import JSONValue
from tenants.exceptions import InvalidValue

#: By the name that a refusal tells, the form. Each repetition is bounded: text may be 64 KiB long.
FORMS: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "private key": r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d|AGE-SECRET-KEY-1[A-Z0-9]{20}",
        "bearer token of this service": r"\bcst_[\w-]{40}",
        # A hyphen may be inside, so that each part of one long word would be tried as a beginning.
        "JSON web token": r"(?<![\w-])(?:[\w-]{0,64}-)?eyJ[\w-]{8,4000}+\.eyJ[\w-]{4,8000}+\.[\w-]{8}",
        "AWS access key": r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
        "GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{22})",
        "GitLab token": r"\bgl(?:pat|dt|ptt|rt|cbt|soat|ft|imt|agent)-[\w-]{20}",
        "Slack token": r"\bxox[abeoprs]-[\w-]{10}|\bxapp-\d-[\w-]{10}|hooks\.slack\.com/services/T\w{6}",
        "Stripe key": r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16}|\bwhsec_[A-Za-z0-9+/]{24}",
        "Google API key": r"\bAIza[\w-]{35}|\bya29\.[\w-]{20}|\bGOCSPX-[\w-]{20}",
        "API key of a model provider": r"\bsk-(?:ant|proj|svcacct|or)-[\w-]{16}|\bsk-[A-Za-z0-9]{32}|\bhf_[A-Za-z0-9]{30}",
        "package registry token": r"\bnpm_[A-Za-z0-9]{36}|\bpypi-AgE[\w-]{40}|\brubygems_[a-f0-9]{40}",
        "SendGrid key": r"\bSG\.[\w-]{16,32}\.[\w-]{16}",
        "DigitalOcean token": r"\bdo[opr]_v1_[a-f0-9]{40}",
        "bot token": r"\b\d{8,10}:AA[\w-]{32}|\b[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27}",
        "Authorization header": r"(?i)\bauthorization\s{0,8}[:=]\s{0,8}[\"']?(?:bearer|basic|token)\s{1,8}[\w.+/~=-]{8}",
        "password in an address": r"\b[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s/:@?#]{0,200}:[^\s/@]{3,200}@[\w.\[-]",
        "named secret": (
            r"(?i)(?:password|passwd|passphrase|\bpwd|secret[ _-]?key|client[ _-]?secret"
            r"|api[ _-]?key|access[ _-]?token|auth[ _-]?token|refresh[ _-]?token|private[ _-]?key)"
            r"[\"']?\s{0,8}(?:[:=]\s{0,8}[\"']?[^\s\"'<{$*]{4}"
            # In a sentence, only what looks chosen: "the password is kept in the vault" is none.
            r"|\s(?:is|was)\s{1,8}[\"']?(?=[^\s\"']{0,100}\d)[^\s\"'<{$*]{5})"
        ),
    }.items()
}  # fmt: skip

#: Members whose text is a secret by their name, after folding: `API-Key` is `apikey`.
NAMES = frozenset(
    {
        "accesstoken", "apikey", "apitoken", "authtoken", "bearertoken", "clientsecret", "passphrase",
        "passwd", "password", "privatekey", "pwd", "refreshtoken", "secret", "secretkey", "sessiontoken",
    }
)  # fmt: skip


def check_no_credential(value: JSONValue, *, name: str = "", pointer: str = "/value") -> None:
    """
    Refuse what a model must not keep; arguments as for `find_credential`.

    Raises:
        InvalidValue: something looks like a credential; `rule` names what.
    """
    found = find_credential(value, name=name)
    if found is not None:
        raise InvalidValue(
            f"This looks like a credential ({found}): credentials are not remembered.",
            pointer=pointer,
            facts={"rule": found},
        )


def find_credential(value: JSONValue, *, name: str = "") -> str | None:
    """
    Return what kind of credential stands somewhere in `value`, or None.

    Args:
        name: under which `value` is to be kept: the text of a `password` is one, whatever it is.
    """
    for place, text in _texts(value, name):
        if text.strip() and _fold(place) in NAMES:
            return "named secret"
        # Full-width letters and their like are read as what a model would read them as.
        plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
        for kind, form in FORMS.items():
            if form.search(plain):
                return kind
    return None


def _texts(value: JSONValue, name: str) -> Iterator[tuple[str, str]]:
    """Yield every text with the name it stands under; names are texts too."""
    parts: list[tuple[str, JSONValue]] = [(name, value)]
    while parts:
        place, part = parts.pop()
        if isinstance(part, str):
            yield place, part
        elif isinstance(part, list):
            parts.extend((place, one) for one in part)
        elif isinstance(part, dict):
            for member, one in part.items():
                yield "", member
                parts.append((member, one))


def _fold(name: str) -> str:
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", name)).lower()
