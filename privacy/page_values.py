"""Stored values as a person reads and edits them. Knows no record and no request."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tenants.documents import JSONValue, canonical, read
from tenants.exceptions import InvalidJSON, InvalidValue

#: How a value is edited: in a field of its own, or as JSON where no field would do.
type Way = Literal["text", "number", "boolean", "choice", "lines", "json"]
WAYS: tuple[Way, ...] = ("text", "number", "boolean", "choice", "lines", "json")

#: Lists and objects within one another that are laid out; deeper ones are shown as JSON.
MOST_LEVELS = 3
#: Members or items of one level that are laid out.
MOST_PARTS = 100
#: Choices that fit on a page.
MOST_CHOICES = 20

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
#: What a text field would not give back as it got it.
_UNKEPT = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Shown:
    """
    One value or part of it, laid out.

    Attributes:
        kind: ``text``, ``empty``, ``number``, ``yes``, ``no``, ``nothing``, ``list``, ``object`` or
            ``json``.
        parts: of a list or an object, each with its name (empty in a list).
    """

    kind: str
    text: str = ""
    parts: Sequence[tuple[str, "Shown"]] = field(default=())


def lay_out(value: JSONValue, level: int = 0) -> Shown:
    """Return a value as people read it."""
    match value:
        case None:
            return Shown("nothing")
        case bool():
            return Shown("yes" if value else "no")
        case str():
            return Shown("text", value) if value else Shown("empty")
        case int() | float():
            return Shown("number", canonical(value))
        case _ if level >= MOST_LEVELS or len(value) > MOST_PARTS:
            return Shown("json", _as_json(value))
        case list():
            return Shown("list", parts=[("", lay_out(one, level + 1)) for one in value])
        case dict():
            parts = [(name, lay_out(one, level + 1)) for name, one in value.items()]
            return Shown("object", parts=parts)


def way_of(value: JSONValue, schema: JSONValue) -> tuple[Way, Sequence[JSONValue]]:
    """Return how a value is edited, and what there is to choose from if it is chosen."""
    rules = schema if isinstance(schema, dict) else {}
    choices = rules.get("enum")
    if isinstance(choices, list) and 0 < len(choices) <= MOST_CHOICES and _are_plain(choices):
        return "choice", choices
    match value:
        case bool():
            return "boolean", ()
        case int() | float():
            return "number", ()
        case str() if not _UNKEPT.search(value):
            return "text", ()
        case None if rules.get("type") == "string":
            return "text", ()
        case list() if value and all(_is_line(one) for one in value):
            return "lines", ()
        case _:
            return "json", ()


def as_typed(value: JSONValue, way: Way) -> str:
    """Return the text that stands in the field before anybody types."""
    match way:
        case "text":
            return value if isinstance(value, str) else ""
        case "lines" if isinstance(value, list):
            return "\n".join(str(one) for one in value)
        case "json":
            return _as_json(value)
        case _:
            return canonical(value)


def from_typed(text: str, way: Way) -> JSONValue:
    """
    Return the value that a field's text stands for.

    Raises:
        ValueError: it stands for none.
    """
    # Browsers send line ends of their own, whatever the field held.
    text = text.replace("\r\n", "\n")
    match way:
        case "text":
            return text
        case "lines":
            return [line for line in text.split("\n") if line]
        case "number":
            text = text.strip()
            if not _NUMBER.fullmatch(text):
                raise ValueError("no number")
    try:
        return read(text.encode("utf-8", "surrogatepass"))
    except (InvalidJSON, InvalidValue) as fault:
        raise ValueError("no JSON") from fault


def _as_json(value: JSONValue) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)


def _are_plain(values: Sequence[JSONValue]) -> bool:
    return all(not isinstance(one, list | dict) for one in values)


def _is_line(value: JSONValue) -> bool:
    return (
        isinstance(value, str) and bool(value) and "\n" not in value and not _UNKEPT.search(value)
    )
