"""JSON as this project takes and writes it: a strict reader and one canonical text."""

import json
import math
import re
from typing import NoReturn

from tenants.exceptions import InvalidJSON, InvalidValue

type JSONValue = bool | int | float | str | list[JSONValue] | dict[str, JSONValue] | None

#: How deep arrays and objects may nest: a scalar has depth 0, ``[]`` has 1.
MAX_DEPTH = 64
#: Digits of an integer: what every supported Python converts without being told to.
MAX_DIGITS = 4300

_UNPAIRED = re.compile("[\ud800-\udfff]")
#: Longer names are cut in messages.
_NAME_SHOWN = 100

#: Where a part stands: the path of its parent, and its own name or index.
type _Path = tuple[_Path, str | int] | None


def read(raw: bytes) -> JSONValue:
    """
    Return the JSON document in `raw`, read as RFC 8259 and RFC 7493 demand.

    Integers stay integers, digit for digit, and floats floats; ``-0`` is the float -0.0, since no
    integer keeps the sign.

    Raises:
        InvalidJSON: no UTF-8, a byte order mark, no JSON, NaN or Infinity, a duplicate member, a
            lone surrogate, ``\\u0000``, or nested too deeply to be read at all.
        InvalidValue: a number that overflows (``1e400``), an integer of over 4,300 digits.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidJSON("The body is not UTF-8.") from None
    if text.startswith("\ufeff"):
        raise InvalidJSON("The body begins with a byte order mark.")
    if not text.strip(" \t\r\n"):
        raise InvalidJSON("The body is empty.")
    try:
        value: JSONValue = json.loads(
            text,
            object_pairs_hook=_members,
            parse_int=_integer,
            parse_float=float,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise InvalidJSON(
            f"The body is not JSON, at line {error.lineno}, column {error.colno}: {error.msg}."
        ) from None
    except RecursionError:
        raise InvalidJSON(
            f"The body is nested too deeply; a value takes {MAX_DEPTH} levels."
        ) from None
    _check_parts(value)
    return value


def check_depth(value: JSONValue, *, limit: int = MAX_DEPTH, pointer: str = "/value") -> None:
    """
    Refuse a value that nests deeper than `limit` arrays and objects.

    Args:
        value: what was read.
        limit: levels; ``[[]]`` has two.
        pointer: where the value stands, for the message.

    Raises:
        InvalidJSON: it does.
    """
    # Level by level, not recursive: a host's own value may be deeper than the interpreter's stack.
    level: list[JSONValue] = [value]
    for _ in range(limit + 1):
        deeper: list[JSONValue] = []
        has_containers = False
        for part in level:
            if isinstance(part, dict):
                has_containers = True
                deeper.extend(part.values())
            elif isinstance(part, list):
                has_containers = True
                deeper.extend(part)
        if not has_containers:
            return
        level = deeper
    raise InvalidJSON(f"The value nests deeper than {limit} levels.", pointer=pointer)


_CANONICAL = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)


def canonical(value: JSONValue) -> str:
    """
    Return the one text of a value: what is stored, measured and digested.

    Members sorted by code point, no blanks, shortest floats that read back the same, characters
    as themselves. Source: api.md, "Types".

    Raises:
        InvalidValue: a number that JSON cannot write, or an integer of over 4,300 digits.
        InvalidJSON: a lone surrogate, ``\\u0000``, or nested too deeply.
        TypeError: something that is no JSON value; only a host's own code can pass one.
    """
    try:
        text = _CANONICAL.encode(value)
    except (ValueError, RecursionError):
        # Told apart only here, since this is what happens least. Depth first: the value may hold
        # itself.
        check_depth(value, pointer="")
        _check_parts(value)
        raise
    # The encoder escapes NUL, and writes a lone surrogate as itself.
    if "\\u0000" in text or _UNPAIRED.search(text):
        _check_parts(value)
    return text


def escape(token: str | int) -> str:
    """Return a name or index as one token of a JSON pointer (RFC 6901)."""
    return str(token).replace("~", "~0").replace("/", "~1")


def _members(pairs: list[tuple[str, JSONValue]]) -> dict[str, JSONValue]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                # ASCII, since the name is not checked yet and may hold what no answer can.
                raise InvalidJSON(f"The member {json.dumps(name[:_NAME_SHOWN])} stands twice.")
            seen.add(name)
    return members


def _integer(text: str) -> int | float:
    if text == "-0":
        return -0.0
    if len(text.lstrip("-")) > MAX_DIGITS:
        return math.inf  # found, with the place where it stands, by _check_parts
    return int(text)


def _refuse_constant(text: str) -> NoReturn:
    raise InvalidJSON(f"{text} is no JSON number.")


def _check_parts(value: JSONValue) -> None:
    """Refuse, with the place where it stands, each part that the grammar alone lets through."""
    parts: list[tuple[_Path, JSONValue]] = [(None, value)]
    while parts:
        path, part = parts.pop()
        match part:
            case str():
                _check_text(part, path)
            case float() if not math.isfinite(part):
                raise InvalidValue(
                    f"The number overflows or has over {MAX_DIGITS:,} digits.",
                    pointer=_pointer(path),
                )
            case bool():
                pass
            case int() if part.bit_length() > MAX_DIGITS * 3 and abs(part) >= 10**MAX_DIGITS:
                raise InvalidValue(
                    f"The number has over {MAX_DIGITS:,} digits.", pointer=_pointer(path)
                )
            case list():
                parts.extend(((path, index), child) for index, child in enumerate(part))
            case dict():
                for name, child in part.items():
                    _check_text(name, path)
                    parts.append(((path, name), child))


def _check_text(text: str, path: _Path) -> None:
    if "\0" in text:
        raise InvalidJSON("A string holds \\u0000, which cannot be stored.", pointer=_pointer(path))
    if not text.isascii() and _UNPAIRED.search(text):
        raise InvalidJSON("A string holds half of a surrogate pair.", pointer=_pointer(path))


def _pointer(path: _Path) -> str:
    tokens = []
    while path is not None:
        path, token = path
        tokens.append(f"/{escape(token)}")
    return "".join(reversed(tokens))
