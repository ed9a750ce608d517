"""
Text records as files below ``/memories``, as models know them. Knows no vendor's library.

A path is a key with colons for slashes: ``/memories/notes/todo.md`` is ``memories:notes:todo.md``, in
the one scope that the product chose. Folders are there while something is in them.
"""

from collections.abc import Callable, Sequence

from agents.adapters.keys import decode, encode
from agents.adapters.scopes import settle_scope
from agents.credentials import check_no_credential
from preferences.attempts import Write
from preferences.records import Record
from preferences.selectors import get_preference, list_preferences
from preferences.services import delete_preference, put_preference, set_preference
from preferences.values import Deadline
from tenants.callers import Caller
from tenants.exceptions import AlreadyExists, NotFound
from tenants.scopes import Scope
from tenants.units import unit_of_work

ROOT = "memories"
_SEPARATOR = ":"

#: The names of a path below the root.
type Place = tuple[str, ...]


class PathRefused(Exception):
    """A path is none, or nothing is there, or something is; the message is for the model."""


class Files:
    """
    The text records of one scope as files, for one caller.

    Args:
        caller: who asks; its credential says in which tenant.
        scope: where the files are; the caller's own person, if left out.

    Raises:
        PermissionDenied: no scope was given, and the caller stands for no person; or the scope is
            that of a person whom the caller does not act for. Stewards look with a reason, not here.
    """

    def __init__(self, caller: Caller, scope: Scope | None = None) -> None:
        self.caller = caller
        self.scope = settle_scope(caller, scope)

    def read(self, place: Place) -> Record | None:
        """Return the file at a place; None where there is no text."""
        if not place:
            return None
        try:
            record = get_preference(caller=self.caller, scope=self.scope, key=key_of(place))
        except NotFound:
            return None
        return record if isinstance(record.value, str) else None

    def list(self, place: Place = ()) -> Sequence[tuple[Place, Record]]:
        """Return the files below a place, or the one at it, in the order of their paths."""
        records, _ = self._within(
            lambda: list_preferences(
                caller=self.caller, scopes=[self.scope], key_prefix=key_of(place)
            )
        )
        found = []
        for record in records:
            path = place_of(record.key)
            if path and path[: len(place)] == place and isinstance(record.value, str):
                found.append((path, record))
        return sorted(found, key=lambda each: each[0])

    def create(self, place: Place, text: str) -> None:
        """
        Add a file.

        Raises:
            InvalidValue: the text or the path looks like a credential.
            AlreadyExists: a file or a folder is there.
            PathRefused: what should be a folder is a file.
        """

        _check(place, text)

        def add() -> None:
            if not place or self.list(place):
                raise AlreadyExists(facts={"current": None})
            for depth in range(1, len(place)):
                if self.read(place[:depth]) is not None:
                    raise PathRefused(f"The path {path_of(place[:depth])} is not a directory.")
            set_preference(caller=self.caller, scope=self.scope, key=key_of(place), value=text)

        self._within(add)

    def replace(self, record: Record, text: str) -> None:
        """
        Give the file that was read another text.

        Raises:
            InvalidValue: the text looks like a credential.
            StaleRevision: it is no longer what was read.
        """
        _check(place_of(record.key) or (), text)
        set_preference(
            caller=self.caller, scope=self.scope, key=record.key, value=text,
            revision=record.revision,
        )  # fmt: skip

    def delete(self, place: Place) -> bool:
        """Delete a file, or a folder with all that is in it; return whether anything was there."""

        def remove() -> bool:
            found = self.list(place)
            for _, record in found:
                delete_preference(caller=self.caller, scope=self.scope, key=record.key)
            return bool(found)

        return self._within(remove)

    def rename(self, old: Place, new: Place) -> bool:
        """
        Move a file, or a folder with all that is in it; return whether anything was there.

        Raises:
            InvalidValue: the new path looks like a credential.
            AlreadyExists: something is at the new place.
            PathRefused: a folder would move into itself.
            StaleRevision: something of it was changed meanwhile; nothing was moved.
        """

        check_no_credential(path_of(new))

        def move() -> bool:
            if not new or self.list(new):
                raise AlreadyExists(facts={"current": None})
            found = self.list(old)
            if found and new[: len(old)] == old:
                raise PathRefused(f"The path {path_of(old)} cannot move into itself.")
            for place, record in found:
                self._move(record, new + place[len(old) :])
            return bool(found)

        return self._within(move)

    def _move(self, record: Record, place: Place) -> None:
        delete_preference(
            caller=self.caller, scope=self.scope, key=record.key, revisions=[record.revision]
        )
        ends = record.expires_at
        put_preference(
            caller=self.caller, scope=self.scope, key=key_of(place),
            write=Write(
                value=record.value, value_text=record.value_text, tags=record.tags,
                metadata_text=record.metadata_text,
                deadline=Deadline(is_given=ends is not None, ttl_seconds=None, expires_at=ends),
            ),
        )  # fmt: skip

    def _within[T](self, act: Callable[[], T]) -> T:
        """Run what several statements decide under the fence of the scope's person."""
        subject = self.scope.subject
        with unit_of_work(
            tenant_id=self.caller.tenant_id, actor=self.caller.actor,
            subjects=() if subject is None else (subject,),
        ):  # fmt: skip
            return act()


def _check(place: Place, text: str) -> None:
    """A model wrote this, so it may keep no credential, as with the tools."""
    check_no_credential(text, name=place[-1] if place else "")
    check_no_credential(path_of(place))


def read_path(path: str) -> Place:
    """
    Return the place that a path names.

    Raises:
        PathRefused: it starts elsewhere, or leads out.
    """
    first, *names = path.removeprefix("/").split("/")
    if not path.startswith("/") or first != ROOT:
        raise PathRefused(f"Path must start with /{ROOT}, got: {path}")
    place: list[str] = []
    for name in names:
        if name == "..":
            if not place:
                raise PathRefused(f"Path {path} would escape /{ROOT} directory")
            place.pop()
        elif name not in ("", "."):
            place.append(name)
    return tuple(place)


def path_of(place: Place) -> str:
    """Return the path of a place."""
    return "/".join(("", ROOT, *place))


def key_of(place: Place) -> str:
    """Return the key of a place."""
    return _SEPARATOR.join((ROOT, *(encode(name, reserved=_SEPARATOR) for name in place)))


def place_of(key: str) -> Place | None:
    """Return the place that a key stands for; None for what is no file."""
    first, *parts = key.split(_SEPARATOR)
    if first != ROOT:
        return None
    try:
        place = tuple(decode(part) for part in parts)
    except ValueError:
        return None
    return place if key_of(place) == key else None
