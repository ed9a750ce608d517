"""One stored record as it leaves the database, and as JSON text. Its value is not parsed here."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Self

from preferences.values import type_of
from tenants.documents import JSONValue
from tenants.times import format_time


@dataclass(frozen=True, kw_only=True)
class Record:
    """
    One value at one address, with its revision and where it came from.

    Attributes:
        value_text, metadata_text, provenance_text: JSON text, as stored.
        purpose: slug of the purpose that governs it; None for shared data without one.
        source: ``user_confirmed``, ``operator``, ``agent``, ``import`` or ``system``.
        seen_count: how often it was written.
        archived_at: since when it is retired from reads; None for a live one.
    """

    id: int
    scope: str
    key: str
    value_text: str
    revision: str
    tags: Sequence[str]
    metadata_text: str
    source: str
    actor: str
    provenance_text: str
    seen_count: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    purpose: str | None
    archived_at: datetime | None = None

    @classmethod
    def from_answer(cls, answer: Sequence[Any] | None) -> tuple[str, str | None, Self | None]:
        """Return the outcome, the purpose and the record of a `consentful_answer`."""
        outcome, purpose, *row = answer or ("not_found", None, None)
        return outcome, purpose, None if row[0] is None else cls.from_row(row, purpose)

    @classmethod
    def from_row(cls, row: Sequence[Any], purpose: str | None) -> Self:
        """Return the record of a row in the order of the attributes."""
        return cls(
            id=row[0],
            scope=row[1],
            key=row[2],
            value_text=row[3],
            revision=row[4],
            tags=row[5],
            metadata_text=row[6],
            source=row[7],
            actor=row[8],
            provenance_text=row[9],
            seen_count=row[10],
            created_at=row[11],
            updated_at=row[12],
            expires_at=row[13],
            archived_at=row[14],
            purpose=purpose,
        )

    @cached_property
    def value(self) -> JSONValue:
        """The value, parsed."""
        parsed: JSONValue = json.loads(self.value_text)
        return parsed

    @property
    def current(self) -> dict[str, Any]:
        """What a conflict tells of the record that stands."""
        return {
            "revision": self.revision,
            "updated_at": format_time(self.updated_at),
            "expires_at": _time(self.expires_at),
            **({"archived_at": format_time(self.archived_at)} if self.archived_at else {}),
        }

    def as_json(self) -> str:
        """Return the record as JSON text; stored text travels through unparsed."""
        return (
            f'{{"scope": {_text(self.scope)}, "key": {_text(self.key)}, "value": {self.value_text}, '
            f'"type": "{type_of(self.value_text)}", "revision": "{self.revision}", '
            f'"purpose": {_text(self.purpose)}, "provenance": {{"source": "{self.source}", '
            # Stored as an object with the three other members.
            f'"actor": {_text(self.actor)}, {self.provenance_text[1:]}, '
            f'"tags": {_text(list(self.tags))}, "metadata": {self.metadata_text}, '
            f'"seen_count": {self.seen_count}, "created_at": "{format_time(self.created_at)}", '
            f'"updated_at": "{format_time(self.updated_at)}", '
            f'"expires_at": {_text(_time(self.expires_at))}'
            # Live records have no such member: who reads them need not know the word.
            + (f', "archived_at": "{format_time(self.archived_at)}"' if self.archived_at else "")
            + "}"
        )


#: One encoder for all: `json.dumps` makes a new one for each call with these options.
_text = json.JSONEncoder(ensure_ascii=False).encode


def _time(value: datetime | None) -> str | None:
    return None if value is None else format_time(value)
