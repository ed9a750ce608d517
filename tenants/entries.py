"""Reading the entries of a catalogue: each part is checked, and a refusal points at it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tenants.exceptions import BadRequest, ValidationError
from tenants.views import check_members


@contextmanager
def within(at: str) -> Iterator[None]:
    """Let a refusal point into the whole file, where its maker knows one entry alone."""
    try:
        yield
    except BadRequest as refusal:
        refusal.errors = tuple(
            replace(error, pointer=at + error.pointer) for error in refusal.errors
        )
        raise


def read_object(value: Any, at: str, known: Any) -> dict[str, Any]:
    """
    Return an object that has no member but the known ones.

    Raises:
        ValidationError: it is none, or has another.
    """
    if not isinstance(value, dict):
        raise ValidationError("This must be an object.", pointer=at)
    check_members(value, known, at)
    return value


def read_list(entry: Mapping[str, Any], name: str, at: str) -> list[Any]:
    """
    Return a member that is a list; an absent one is empty.

    Raises:
        ValidationError: it is none.
    """
    value = entry.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValidationError("This must be a list.", pointer=f"{at}/{name}")
    return value


def read_text(entry: Mapping[str, Any], name: str, at: str, *, most: int = 64) -> str:
    """
    Return a member that is a text of 1 to `most` characters.

    Raises:
        ValidationError: it is none.
    """
    value = entry.get(name)
    if not isinstance(value, str) or not 1 <= len(value) <= most:
        raise ValidationError(
            f"This must be a text of 1 to {most} characters.", pointer=f"{at}/{name}"
        )
    return value


def read_whole(entry: Mapping[str, Any], name: str, at: str, *, most: int) -> int | None:
    """
    Return a member that is a whole number from 1 to `most`; None where it is absent.

    Raises:
        ValidationError: it is none.
    """
    value = entry.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ValidationError("This must be a whole number from 1.", pointer=f"{at}/{name}")
    return value


def read_choice(entry: Mapping[str, Any], name: str, choices: Sequence[str], at: str) -> str:
    """
    Return a member that is one of the choices.

    Raises:
        ValidationError: it is not.
    """
    value = entry.get(name)
    if not isinstance(value, str) or value not in choices:
        raise ValidationError(f"This must be one of: {', '.join(choices)}.", pointer=f"{at}/{name}")
    return value


def read_choices(entry: Mapping[str, Any], name: str, choices: Sequence[str], at: str) -> list[str]:
    """
    Return a member that lists some of the choices, each once.

    Raises:
        ValidationError: it does not, or is empty.
    """
    value = entry.get(name)
    if not isinstance(value, list) or not value or any(one not in choices for one in value):
        raise ValidationError(
            f"This must be a list of: {', '.join(choices)}.", pointer=f"{at}/{name}"
        )
    return list(dict.fromkeys(value))


def update_row(row: Any, wanted: Mapping[str, Any]) -> bool:
    """Write the columns that differ, if any; return whether one did."""
    differing = {name: value for name, value in wanted.items() if getattr(row, name) != value}
    if differing:
        type(row).objects.filter(pk=row.pk).update(**differing)
        for name, value in differing.items():
            setattr(row, name, value)
    return bool(differing)


def read_flag(entry: Mapping[str, Any], name: str, at: str) -> bool:
    """
    Return a member that is true or false; an absent one is false.

    Raises:
        ValidationError: it is neither.
    """
    value = entry.get(name, False)
    if not isinstance(value, bool):
        raise ValidationError(f"{name} is true or false.", pointer=f"{at}/{name}")
    return value
