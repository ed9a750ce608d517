"""
The contract of every `personal_data.py`: what an app, or a host, holds about persons.

Each app fulfils it with a module of that name, a host with a class of its own. `privacy` alone
calls them. Knows no store and decides nothing about access.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """
    Whom an erasure is about, and what of them.

    Attributes:
        subject: the person's external id; the pseudonym, where that stands in its place by now.
        subject_id: the person's row; None for somebody who was never known.
        pseudonym: what takes the name's place.
        logins: user ids of the person's own logins.
        names: what those logins are called, for columns that name who did something.
        keys, purposes: only records of these; None for the whole person.
        written_until: only what was written by then; None for all. A withdrawal asks for no more.
    """

    tenant_id: int
    subject: str
    subject_id: int | None
    pseudonym: str
    logins: Sequence[str] = ()
    names: Sequence[str] = ()
    keys: Sequence[str] | None = None
    purposes: Sequence[str] | None = None
    written_until: datetime | None = None

    @property
    def is_whole(self) -> bool:
        """Whether everything about the person goes."""
        return self.keys is None and self.purposes is None

    @property
    def scope(self) -> str:
        """The scope of the person's own records."""
        return f"user::{self.subject}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remainder:
    """
    What an erasure leaves in a store, and why.

    Attributes:
        held: things under a legal hold: they are asked for again until it ends.
        kept: things that stay for good, without a name.
        ground: why they stay, with the article of the law that says so.
        is_recallable: false where something was handed out and cannot be reached any more.
    """

    held: int = 0
    kept: int = 0
    ground: str | None = None
    is_recallable: bool = True


NOTHING_LEFT = Remainder()


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

    def erase(self, *, target: Target, store: str) -> Remainder | None:
        """
        Erase what one of the stores holds of a target; doing it again changes nothing.

        Our apps do so in one transaction, under the person's exclusive fence. A host's are asked by
        a job after that has been committed, outside any transaction of ours, and again with growing
        pauses after whatever they raise (see `privacy.exceptions.HolderFailed` for a reason to show).

        Returns:
            What stays and why, or None where the store is not concerned: it holds nothing by key or
            purpose, and not everything about the person goes.
        """

    def count(self, *, target: Target, store: str) -> int:
        """
        Return how many things of a target that are to be erased the store still holds.

        A look of its own, not a note of what `erase` did: the receipt states what this one finds.
        What is kept for good does not count.
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
