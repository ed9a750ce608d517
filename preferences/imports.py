"""A record as an export holds it, and the write that stores it again."""

from collections.abc import Mapping
from typing import Any

from preferences.attempts import NO_DEADLINE, Write
from preferences.models import Writer
from preferences.values import (
    check_deadline,
    check_metadata,
    check_provenance,
    check_tags,
    check_value,
)
from tenants.exceptions import ValidationError

#: As whom a record is written whose source was this; anybody else was an operator.
_WRITERS = {"user_confirmed": Writer.SUBJECT, "agent": Writer.AGENT}


def write_of(given: Mapping[str, Any]) -> Write:
    """
    Return the write that stores a record in the form that the API answers with.

    Raises:
        ValidationError: the value is missing, or provenance is no object.
        BadRequest: a member breaks its rule.
    """
    if "value" not in given:
        raise ValidationError("The value is missing.", pointer="/value")
    provenance = _or({}, given.get("provenance"))
    if not isinstance(provenance, dict):
        raise ValidationError("Provenance is an object.", pointer="/provenance")
    deadline = NO_DEADLINE
    if given.get("expires_at") is not None:
        deadline = check_deadline({"expires_at": given["expires_at"]})
    told = ("detail", "origin", "confidence")
    return Write(
        value=given["value"],
        value_text=check_value(given["value"]),
        tags=check_tags(_or([], given.get("tags"))),
        metadata_text=check_metadata(_or({}, given.get("metadata"))),
        provenance_text=check_provenance(
            {name: provenance[name] for name in told if name in provenance}
        ),
        deadline=deadline,
        imported_as=_WRITERS.get(str(provenance.get("source")), Writer.OPERATOR),
    )


def _or(absent: Any, given: Any) -> Any:
    return absent if given is None else given
