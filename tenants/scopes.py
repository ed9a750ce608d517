"""The grammar of addresses: scopes, keys, and how a path divides into the two. No storage."""

import unicodedata
from dataclasses import dataclass
from typing import Self

from tenants.conf import scope_kinds
from tenants.exceptions import BadRequest, InvalidKey, InvalidScope, PermissionDenied

#: Code points of a scope in its canonical form.
MAX_SCOPE_LENGTH = 300
#: Code points of a key, and of one segment of a scope, after NFC.
MAX_KEY_LENGTH = 200
#: No character is made of more code points than this before NFC, so longer text need not be read.
_MOST_DECOMPOSED = 4
#: What no reader would see, or what breaks lines: control, format, surrogate, separators.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class Scope:
    """
    Whom or what a record is about, in canonical form; `str()` gives the text that is stored.

    Build it with `parse` or `of_subject`, which check. Source: api.md, "Scopes".

    Attributes:
        kind: ``global``, ``project``, ``repo``, ``branch``, ``user`` or a kind that the settings
            declare (`tenants.conf.scope_kinds`).
        name: what follows ``{kind}::``; empty for ``global`` alone.
    """

    kind: str
    name: str

    @classmethod
    def parse(cls, text: object, *, me: str | None = None, creating: bool = False) -> Self:
        """
        Return the scope that `text` names: the one parser, on every path.

        Args:
            text: e.g. ``repo::acme/checkout``, or the bare word ``me``.
            me: external id of the caller's own subject, which ``me`` stands for.
            creating: refuse unassigned code points too, as `check_key` does.

        Raises:
            InvalidScope: `text` is no string, or breaks the grammar.
            PermissionDenied: `text` is ``me`` and the caller stands for no person.
        """
        if not isinstance(text, str):
            raise InvalidScope("A scope is a string.")
        if text == "me":
            if me is None:
                raise PermissionDenied("This caller stands for no person.")
            return cls.of_subject(me, creating=creating)
        kind, separator, name = _normalize(text).partition("::")
        if kind == "global":
            if separator:
                raise InvalidScope("The scope global has no name: write the bare word.")
            return cls("global", "")
        if not separator:
            raise InvalidScope("A scope is the word global, or a kind, two colons and a name.")
        # Three colons could be divided in two ways: a branch ":x" and a repository "x:" would meet.
        if ":::" in separator + name:
            raise InvalidScope("A scope holds no three colons in a row.")
        match kind:
            case "project":
                name = _folded(name, "project name")
            case "repo":
                name = _repository(name)
            case "branch":
                repository, separator, branch = name.partition("::")
                if not separator:
                    raise InvalidScope("A branch is written branch::{owner}/{name}::{branch}.")
                for part in branch.split("/"):
                    _check_segment(part, "branch, between slashes,")
                name = f"{_repository(repository)}::{branch}"
            case "user":
                _check_segment(name, "subject")
            case _ if kind in scope_kinds():
                _check_segment(name, "name")
            case _:
                raise InvalidScope("The scope is of no kind that is known here.")
        scope = cls(kind, name)
        if len(str(scope)) > MAX_SCOPE_LENGTH:
            raise InvalidScope(f"A scope has at most {MAX_SCOPE_LENGTH} characters.")
        if creating and _has_unassigned(name):
            raise InvalidScope("A scope holds no character that Unicode has not assigned.")
        return scope

    @classmethod
    def of_subject(cls, external_id: str, *, creating: bool = False) -> Self:
        """
        Return the scope of one person.

        Args:
            external_id: 1 to 200 code points, case-sensitive.
            creating: refuse unassigned code points too, as `check_key` does.

        Raises:
            InvalidScope: the id breaks the rules for segments.
        """
        if not isinstance(external_id, str):
            raise InvalidScope("The subject of a scope is a string.")
        return cls.parse(f"user::{external_id}", creating=creating)

    def __str__(self) -> str:
        return f"{self.kind}::{self.name}" if self.name else self.kind

    @property
    def is_personal(self) -> bool:
        """Whether the scope is a person's."""
        return self.kind == "user"

    @property
    def subject(self) -> str | None:
        """External id of the person whose scope it is, if it is one's."""
        return self.name if self.is_personal else None


def check_key(text: object, *, creating: bool = False) -> str:
    """
    Return the key in NFC. Source: api.md, "Keys".

    Args:
        text: 1 to 200 code points, case-sensitive.
        creating: refuse unassigned code points too. Not on reads: a key that was written under a
            newer Unicode must stay within reach.

    Raises:
        InvalidKey: `text` is no string, or breaks a rule.
    """
    if not isinstance(text, str):
        raise InvalidKey("A key is a string.")
    if len(text) > MAX_KEY_LENGTH * _MOST_DECOMPOSED:
        raise InvalidKey(f"A key has at most {MAX_KEY_LENGTH} characters.")
    key = unicodedata.normalize("NFC", text)
    _check_name(key, "key", InvalidKey)
    if creating and _has_unassigned(key):
        raise InvalidKey("A key holds no character that Unicode has not assigned.")
    return key


def split_address(path: str) -> tuple[str, str]:
    """Return the text of the scope, up to the last slash, and that of the key. Checks neither."""
    scope, _, key = path.rpartition("/")
    return scope, key


def _has_unassigned(text: str) -> bool:
    return not text.isascii() and any(unicodedata.category(character) == "Cn" for character in text)


def _normalize(text: str) -> str:
    if len(text) > MAX_SCOPE_LENGTH * _MOST_DECOMPOSED:
        raise InvalidScope(f"A scope has at most {MAX_SCOPE_LENGTH} characters.")
    return unicodedata.normalize("NFC", text)


def _repository(text: str) -> str:
    owner, separator, name = text.partition("/")
    if not separator:
        raise InvalidScope("A repository is written {owner}/{name}.")
    return f"{_folded(owner, 'owner')}/{_folded(name, 'repository name')}"


def _folded(text: str, part: str) -> str:
    """Return a name that does not depend on case: the hosts of code treat them so."""
    _check_segment(text, part)
    if "*" in text:
        raise InvalidScope(f"The {part} of a scope holds no asterisk.")
    # Lower-casing can leave NFC, and NFC can compose what lower-cases again: until neither does.
    while (folded := unicodedata.normalize("NFC", text.lower())) != text:
        text = folded
    # Once more: a folded name can be longer, and what is stored must read back.
    _check_segment(text, part)
    return text


def _check_segment(text: str, part: str) -> None:
    _check_name(text, f"{part} of a scope", InvalidScope)
    if "::" in text:
        raise InvalidScope(f"The {part} of a scope holds no two colons in a row.")


def _check_name(text: str, part: str, error: type[BadRequest]) -> None:
    """Check what keys and the segments of scopes have in common."""
    if not text:
        raise error(f"The {part} is empty.")
    if len(text) > MAX_KEY_LENGTH:
        raise error(f"The {part} has at most {MAX_KEY_LENGTH} characters.")
    if text in {".", ".."}:
        raise error(f"The {part} is neither . nor .., which paths swallow.")
    if "/" in text:
        raise error(f"The {part} holds no slash.")
    # Nearly every name is printable ASCII, which needs no look at each character.
    if not (text.isascii() and text.isprintable()) and any(
        unicodedata.category(character) in _UNSEEN for character in text
    ):
        raise error(f"The {part} holds no control, format or surrogate character.")
    if text != text.strip():
        raise error(f"The {part} neither begins nor ends with white space.")
