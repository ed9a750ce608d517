"""The form of what a request stores: value, tags, metadata, provenance, revision and deadline."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from tenants.documents import JSONValue, canonical, check_depth, escape
from tenants.exceptions import (
    FieldError,
    InvalidJSON,
    InvalidRevision,
    InvalidTTL,
    InvalidValue,
    TooLarge,
    ValidationError,
)
from tenants.times import parse_time

#: Bytes of canonical JSON in UTF-8.
MAX_VALUE_SIZE = 64 * 1024
MAX_METADATA_SIZE = 16 * 1024
#: Bytes of UTF-8.
MAX_DETAIL_SIZE = 2 * 1024
MAX_TAGS = 32
#: Code points.
MAX_TAG_LENGTH = 64
MAX_ORIGIN_LENGTH = 200
#: Seconds; beyond every deadline that a database can hold.
MAX_TTL = 10**12
#: What no forge has reached, and every reader's integers hold.
MAX_PULL_REQUEST = 10**15

type ValueType = Literal["string", "number", "boolean", "list", "object", "null"]

_TYPES: Mapping[str, ValueType] = {
    '"': "string",
    "t": "boolean",
    "f": "boolean",
    "[": "list",
    "{": "object",
    "n": "null",
}
_PROVENANCE = ("detail", "origin", "confidence")
_ORIGIN = ("agent", "trigger", "repo", "branch", "commit", "pr")
_REVISION = re.compile("[0-9a-f]{32}")


def type_of(text: str) -> ValueType:
    """Return the type of a value from its canonical JSON text: the first character tells."""
    return _TYPES.get(text[0], "number")


def check_value(value: JSONValue) -> str:
    """
    Return the canonical text of a value that is to be stored.

    Raises:
        InvalidJSON: nested deeper than 64 levels, or a string that cannot be stored.
        InvalidValue: a number that cannot be stored.
        TooLarge: over 64 KiB of canonical JSON in UTF-8.
    """
    check_depth(value)
    text = canonical(value)
    if _size(text) > MAX_VALUE_SIZE:
        detail = f"A value takes at most {MAX_VALUE_SIZE // 1024} KiB of canonical JSON."
        raise TooLarge(
            detail, errors=[FieldError(pointer="/value", code="too_large", detail=detail)]
        )
    return text


def check_tags(value: JSONValue) -> list[str]:
    """
    Return the tags in their order, each once.

    Args:
        value: a list of up to 32 strings of 1 to 64 code points without control characters.

    Raises:
        ValidationError: it is not; the pointer names the first tag that is off.
    """
    if not isinstance(value, list):
        raise ValidationError("Tags are a list of strings.", pointer="/tags")
    if len(value) > MAX_TAGS:
        raise ValidationError(f"There are at most {MAX_TAGS} tags.", pointer="/tags")
    tags = []
    for index, tag in enumerate(value):
        if not isinstance(tag, str) or not 1 <= len(tag) <= MAX_TAG_LENGTH:
            raise ValidationError(
                f"A tag is a string of 1 to {MAX_TAG_LENGTH} characters.", pointer=f"/tags/{index}"
            )
        if any(unicodedata.category(character) in {"Cc", "Cs"} for character in tag):
            raise ValidationError(
                "A tag holds no control or surrogate character.", pointer=f"/tags/{index}"
            )
        tags.append(tag)
    return list(dict.fromkeys(tags))


def check_metadata(value: JSONValue) -> str:
    """
    Return the canonical text of the metadata.

    Args:
        value: an object of at most 16 KiB of canonical JSON, 64 levels deep at most.

    Raises:
        ValidationError: it is not; the pointer is ``/metadata``.
    """
    if not isinstance(value, dict):
        raise ValidationError("Metadata is an object.", pointer="/metadata")
    try:
        check_depth(value, pointer="/metadata")
        text = canonical(value)
    except (InvalidJSON, InvalidValue) as error:
        raise ValidationError(error.detail, pointer="/metadata") from None
    if _size(text) > MAX_METADATA_SIZE:
        raise ValidationError(
            f"Metadata takes at most {MAX_METADATA_SIZE // 1024} KiB of canonical JSON.",
            pointer="/metadata",
        )
    return text


def check_provenance(value: JSONValue) -> str:
    """
    Return the canonical text of what the writer says about where a value comes from.

    Args:
        value: None, or an object that may hold `detail` (a string of at most 2 KiB of UTF-8),
            `origin` (an object that may hold `agent`, `trigger`, `repo`, `branch`, `commit`,
            each a string of 1 to 200 code points, and `pr`, that or a positive integer) and
            `confidence` (a number from 0 to 1). Null is the same as left out, everywhere.

    Returns:
        An object with exactly the members `detail`, `origin` and `confidence`.

    Raises:
        ValidationError: it is not; the pointer names the part.
    """
    given = {} if value is None else value
    if not isinstance(given, dict):
        raise ValidationError("Provenance is an object.", pointer="/provenance")
    _refuse_unknown(given, _PROVENANCE, "/provenance")
    checked: dict[str, JSONValue] = {
        "detail": _check_detail(given.get("detail")),
        "origin": _check_origin(given.get("origin")),
        "confidence": _check_confidence(given.get("confidence")),
    }
    try:
        return canonical(checked)
    except (InvalidJSON, InvalidValue) as error:
        raise ValidationError(error.detail, pointer="/provenance") from None


def check_revision(value: object) -> str:
    """
    Return the revision.

    Raises:
        InvalidRevision: it is not 32 lower-case hexadecimal digits.
    """
    # fullmatch, since $ would let a trailing newline through.
    if not isinstance(value, str) or not _REVISION.fullmatch(value):
        raise InvalidRevision
    return value


@dataclass(frozen=True, slots=True)
class Deadline:
    """
    What a request says about expiry; whether it is allowed is for the definition to say.

    Attributes:
        is_given: whether it says anything; without, a replace keeps the deadline.
        ttl_seconds: seconds from the write, if that is how it was said.
        expires_at: the moment in UTC, if that is. Neither, though given: no expiry.
    """

    is_given: bool
    ttl_seconds: int | None
    expires_at: datetime | None


def check_deadline(body: Mapping[str, JSONValue]) -> Deadline:
    """
    Return the deadline that the members `ttl_seconds` or `expires_at` of a body ask for.

    Only the form is checked. Source: api.md, "Expiry".

    Raises:
        InvalidTTL: both stand there, even as null; `ttl_seconds` is no integer from 1 to 10**12
            (a boolean, a float and a string are none); `expires_at` is no RFC 3339 time.
    """
    if "ttl_seconds" in body and "expires_at" in body:
        raise InvalidTTL("Give ttl_seconds or expires_at, not both.")
    if "ttl_seconds" in body:
        seconds = body["ttl_seconds"]
        if seconds is None:
            return Deadline(True, None, None)
        if not isinstance(seconds, int) or isinstance(seconds, bool):
            raise InvalidTTL("ttl_seconds is an integer, or null for no expiry.")
        if not 1 <= seconds <= MAX_TTL:
            raise InvalidTTL(f"ttl_seconds is from 1 to {MAX_TTL}.")
        return Deadline(True, seconds, None)
    if "expires_at" in body:
        text = body["expires_at"]
        if text is None:
            return Deadline(True, None, None)
        try:
            return Deadline(True, None, parse_time(text))
        except ValueError as error:
            raise InvalidTTL(str(error), pointer="/expires_at") from None
    return Deadline(False, None, None)


def _size(text: str) -> int:
    return len(text.encode("utf-8"))


def _refuse_unknown(given: Mapping[str, JSONValue], known: tuple[str, ...], pointer: str) -> None:
    for name in given:
        if name not in known:
            raise ValidationError(
                f"There is no such member; known are {', '.join(known)}.",
                pointer=f"{pointer}/{escape(name)}",
            )


def _check_detail(value: JSONValue) -> str | None:
    pointer = "/provenance/detail"
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValidationError("The detail is a string or null.", pointer=pointer)
    # A lone surrogate has no UTF-8; canonical() refuses it.
    if len(value.encode("utf-8", "surrogatepass")) > MAX_DETAIL_SIZE:
        raise ValidationError(
            f"The detail takes at most {MAX_DETAIL_SIZE // 1024} KiB of UTF-8.", pointer=pointer
        )
    return value


def _check_origin(value: JSONValue) -> dict[str, JSONValue]:
    pointer = "/provenance/origin"
    given = {} if value is None else value
    if not isinstance(given, dict):
        raise ValidationError("The origin is an object.", pointer=pointer)
    _refuse_unknown(given, _ORIGIN, pointer)
    origin: dict[str, JSONValue] = {}
    for name, part in given.items():
        match part:
            case None:
                continue
            case str() if 1 <= len(part) <= MAX_ORIGIN_LENGTH:
                origin[name] = part
            case int() if (
                name == "pr" and not isinstance(part, bool) and 1 <= part <= MAX_PULL_REQUEST
            ):
                origin[name] = part
            case _:
                number = ", or a positive integer" if name == "pr" else ""
                raise ValidationError(
                    f"It is a string of 1 to {MAX_ORIGIN_LENGTH} characters{number}.",
                    pointer=f"{pointer}/{name}",
                )
    return origin


def _check_confidence(value: JSONValue) -> int | float | None:
    if value is None:
        return None
    # The comparison also refuses NaN.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValidationError(
            "The confidence is a number from 0 to 1, or null.", pointer="/provenance/confidence"
        )
    return value
