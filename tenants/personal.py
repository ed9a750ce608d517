"""
The contract of every `personal_data.py`: what an app, or a host, holds about persons.

Each app fulfils it with a module of that name, a host with a class of its own. `privacy` alone
calls them. Knows no store and decides nothing about access.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.db.models import Model, QuerySet

from tenants.documents import JSONValue

#: One thing held about a person, ready to be written as JSON.
type Item = dict[str, JSONValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """
    One kind of thing that is held about persons, and the tables it lies in.

    Attributes:
        name: what exports and receipts call it: lower-case letters, digits and ``_``, unique over
            all apps.
        holds: what it is and why it is there, in plain words, as the person reads it.
        models: whose rows it stands for. A model that can name a person stands in one store.
    """

    name: str
    holds: str
    models: Sequence[type[Model]]


class PersonalData(Protocol):
    """
    What `privacy` asks of whoever holds something about persons.

    `export` runs where the tenant was announced: inside a unit of work, or inside one snapshot
    (`tenants.snapshots`), so that the stores of one export agree with each other. It must not write.
    """

    def describe(self) -> Sequence[Store]:
        """Return the stores, in the order in which a person should read them."""

    def export(self, *, tenant_id: int, subject: str, store: str) -> Iterator[Item]:
        """
        Yield everything that one of the described stores holds about one person, oldest first.

        A person who is unknown has nothing. Rows are fetched in pieces: there may be many.

        Args:
            subject: external id of the person.
            store: the name of one that `describe` returns.
        """


#: Rows per statement: a person may have very many.
PIECE = 1000


def in_pieces[M: Model](rows: QuerySet[M]) -> Iterator[M]:
    """Yield rows in the order of their ids, fetched in pieces and without a server-side cursor."""
    last: Any = None
    while True:
        following = rows if last is None else rows.filter(pk__gt=last)
        piece = list(following.order_by("pk")[:PIECE])
        yield from piece
        if len(piece) < PIECE:
            return
        last = piece[-1].pk
