"""How a JSON-RPC message is read: as strictly as a body of the HTTP interface. Answers nothing."""

import json
import re
from dataclasses import dataclass
from typing import Any

from tenants.documents import MAX_DEPTH, MAX_DIGITS, JSONValue, check_depth, read
from tenants.exceptions import BadRequest, InvalidJSON

#: Levels of a message: those of a value, and room for what stands around it.
LEVELS = MAX_DEPTH + 8

# A string that never ends takes all that is left: else each quote in it would be tried as a start.
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


@dataclass(slots=True)
class Message:
    """
    What was sent.

    Attributes:
        fault: why the arguments of a call cannot be taken; `content` then comes without them.
    """

    content: JSONValue
    fault: BadRequest | None = None

    @property
    def method(self) -> object:
        """Its `method`, whatever that is."""
        return self.content.get("method") if isinstance(self.content, dict) else None

    @property
    def params(self) -> dict[str, Any]:
        """Its `params`; empty where it has none."""
        found = self.content.get("params") if isinstance(self.content, dict) else None
        return found if isinstance(found, dict) else {}


def read_message(raw: bytes) -> Message:
    """
    Return the message in `raw`.

    What is off inside the arguments of a call comes back as a `fault`, so that the model that made
    them can be told; anything else that is off makes the whole no message.

    Raises:
        InvalidJSON, InvalidValue: see `tenants.documents.read`.
    """
    try:
        content = read(raw)
        check_depth(content, limit=LEVELS)
    except BadRequest as refusal:
        return _read_rest(raw, refusal)
    return Message(content)


def _read_rest(raw: bytes, refusal: BadRequest) -> Message:
    """Return a call without its arguments, where nothing else is off; else raise `refusal`."""
    pointer = refusal.errors[0].pointer if refusal.errors else ""
    try:
        text = raw.decode("utf-8")
        if pointer.startswith("/params/arguments/"):
            # Found once the whole had been read: no member stands twice.
            message = Message(json.loads(text, parse_int=_small), fault=refusal)
        else:
            # Depth is the one thing that can be cut away. What else is off is still there.
            deep = InvalidJSON(
                f"The arguments are nested too deeply; a value takes {MAX_DEPTH} levels.",
                pointer="/arguments",
            )
            message = Message(read(_cut(text, LEVELS).encode("utf-8")), fault=deep)
        message.params.pop("arguments", None)
        read(json.dumps(message.content).encode("utf-8"))
    except (ValueError, RecursionError, BadRequest):
        raise refusal from None
    if message.method != "tools/call":
        raise refusal
    return message


def _small(digits: str) -> int:
    """Return an integer, or 0 for one that is longer than any that is read."""
    return int(digits) if len(digits) < MAX_DIGITS else 0


def _cut(text: str, depth: int) -> str:
    """Return JSON text with null in the place of each array and object that lies deeper."""
    kept: list[str] = []
    level = start = 0
    for token in _TOKENS.finditer(text):
        if token[0] in ("[", "{"):
            level += 1
            if level == depth + 1:
                kept += text[start : token.start()], "null"
        elif token[0] in ("]", "}"):
            if level == depth + 1:
                start = token.end()
            level -= 1
    return "".join([*kept, text[start:]])
