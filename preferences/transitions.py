"""Task states: which step a value's `status` may take. Pure; the database takes the step itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from tenants.documents import JSONValue, escape
from tenants.exceptions import FieldError, InvalidValue, ValidationError

#: States of one definition, and steps out of one.
MAX_STATES = 64
#: Characters of a state's name.
MAX_STATE_LENGTH = 64


def read_transitions(value: Any, at: str) -> Mapping[str, Sequence[str]] | None:
    """
    Return what a catalogue says of a key's steps; None where it says nothing.

    Args:
        value: an object that names, for each state one can leave, those that may follow it.

    Raises:
        ValidationError: it is none, is empty, or a state is no name of 1 to 64 characters.
    """
    if value is None:
        return None
    if not isinstance(value, dict) or not 1 <= len(value) <= MAX_STATES:
        raise ValidationError(
            f"This must be an object of 1 to {MAX_STATES} states, each with a list of those that"
            " may follow.",
            pointer=at,
        )
    for state, following in value.items():
        place = f"{at}/{escape(state)}"
        if not isinstance(following, list) or len(following) > MAX_STATES:
            raise ValidationError("This must be a list of states.", pointer=place)
        for name in (state, *following):
            if not isinstance(name, str) or not 1 <= len(name) <= MAX_STATE_LENGTH:
                raise ValidationError(
                    f"A state has a name of 1 to {MAX_STATE_LENGTH} characters.", pointer=place
                )
        if len(set(following)) < len(following):
            raise ValidationError("A state stands twice here.", pointer=place)
    return value


def states_of(transitions: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Return every state that the steps name."""
    return frozenset(transitions).union(*transitions.values())


def find_faults(states: frozenset[str], value: JSONValue) -> list[FieldError]:
    """Return what is wrong with a value that must be in one of `states`; nothing where it is."""
    if state_of(value, states) is not None:
        return []
    return [
        FieldError(
            pointer="/value/status",
            code=InvalidValue.code,
            detail="The value is an object, and its status one of the declared states.",
        )
    ]


def state_of(value: JSONValue, states: frozenset[str]) -> str | None:
    """Return the declared state that a value is in; None where it is in none."""
    status = value.get("status") if isinstance(value, dict) else None
    return status if isinstance(status, str) and status in states else None
