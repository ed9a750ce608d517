"""
What an exported document looks like, and reading one, strictly.

What a verification passed over, another reader could take for proven: a member that nobody asked
for, one that stands there twice, a number written in another way, text behind the end.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, TextIO

from django.db import models

from audit.exceptions import ProofRefused
from audit.models import Event, Seal

FORMAT = "consentful-audit-export/1"

_COLUMNS = {field.attname: field for field in Event._meta.concrete_fields}
#: Too large for the numbers of many JSON readers (RFC 7493).
_LARGE = ("transaction", "cluster")


def entry_of(link: Seal) -> dict[str, Any]:
    """Return a link and its event as a document holds them."""
    event = {name: getattr(link.event, name) for name in _COLUMNS}
    event |= {name: str(event[name]) for name in _LARGE}
    event["at"] = link.event.at.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return {
        "sequence": link.sequence,
        "previous": link.previous,
        "hash": link.hash,
        "event": event,
    }


class Document:
    """
    An export being read: line by line as it was written, or whole where somebody rewrote it.

    Attributes:
        tenant: slug, and `tenant_id`; None for a chain without links.
        start: place and hash of the link that the first event follows.
        checkpoint: the signed text at the end, once all links were read.
    """

    tenant: str | None
    tenant_id: int | None
    start: tuple[int, str]
    checkpoint: str | None = None

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._entries: Iterable[Any] = self._read_lines()
        try:
            first = file.readline()
            if first.rstrip().endswith('"events": ['):
                header = _members(_parse(first + "]}"), "format", *_HEADER)
            else:
                header = _members(_parse(first + file.read()), "format", *_HEADER, "checkpoint")
                self._entries = _typed(header["events"], list)
                self.checkpoint = _typed(header["checkpoint"], str, type(None))
            self.tenant = _typed(header["tenant"], str, type(None))
            self.tenant_id = _typed(header["tenant_id"], int, type(None))
            start = _members(header["start"], "sequence", "hash")
            self.start = _typed(start["sequence"], int), _typed(start["hash"], str)
            known = header["format"]
        except (ValueError, TypeError) as fault:
            raise ProofRefused(f"It is no export of a trail ({FORMAT}).") from fault
        if known != FORMAT:
            raise ProofRefused(f"It is of another format than {FORMAT}.")

    def links(self) -> Iterator[tuple[Seal, Event]]:
        """Yield each link with its event, as instances that no database knows."""
        for number, entry in enumerate(self._entries, start=1):
            try:
                yield _read_entry(entry)
            except (ValueError, LookupError, TypeError, AttributeError) as fault:
                raise ProofRefused(f"Entry {number} of the document is no event.") from fault

    def _read_lines(self) -> Iterator[Any]:
        for number, line in enumerate(self._file, start=2):
            text = line.strip()
            try:
                if text.startswith("]"):
                    end = _members(_parse("{" + text[1:].lstrip(" ,")), "checkpoint")
                    self.checkpoint = _typed(end["checkpoint"], str, type(None))
                    break
                entry = _parse(text.removesuffix(","))
            except (ValueError, TypeError) as fault:
                raise ProofRefused(f"Line {number} of the document is not as exported.") from fault
            yield entry
        else:
            raise ProofRefused("The document ends before its end: get it again.")
        if any(line.strip() for line in self._file):
            raise ProofRefused("Something follows the end of the document.")


_HEADER = ("tenant", "tenant_id", "start", "events")


def _read_entry(entry: Any) -> tuple[Seal, Event]:
    columns = {name: entry["event"][name] for name in _COLUMNS}
    columns["at"] = datetime.fromisoformat(columns["at"])
    columns |= {name: int(_typed(columns[name], str)) for name in _LARGE}
    for name, value in columns.items():
        if not _is_of_type(_COLUMNS[name], value):
            raise TypeError(name)
    event = Event(**columns)
    link = Seal(
        sequence=_typed(entry["sequence"], int),
        previous=_typed(entry["previous"], str),
        hash=_typed(entry["hash"], str),
        event=event,
    )
    if entry_of(link) != entry:
        raise ValueError("It is written in another way.")
    json.dumps(entry, ensure_ascii=False).encode()  # no lone surrogate, which has no digest
    return link, event


def _parse(text: str) -> Any:
    """Return what JSON text says, if every reader must understand the same."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except RecursionError as fault:
        raise ValueError("It is nested too deeply.") from fault


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("A member stands there twice.")
    return members


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON.")


def _members(found: Any, *names: str) -> dict[str, Any]:
    if not isinstance(found, dict) or found.keys() != set(names):
        raise TypeError("Its members are other ones.")
    return found


def _typed(value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:  # a boolean is no number here
        raise TypeError("It is of another type.")
    return value


def _is_of_type(field: Any, value: Any) -> bool:
    if value is None:
        return bool(field.null)
    if isinstance(field, models.DateTimeField):
        return value.tzinfo is not None
    if field.attname == "changed":
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    return type(value) is (int if isinstance(field, models.BigIntegerField) else str)
