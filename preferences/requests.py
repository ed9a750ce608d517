"""What a request asks of a preference, checked for form. Reads no record."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from preferences.attempts import Mode, Write
from preferences.values import (
    check_deadline,
    check_metadata,
    check_provenance,
    check_revision,
    check_tags,
    check_value,
)
from tenants.exceptions import InvalidRevision, ValidationError

#: The members of a PUT.
MEMBERS = (
    "value",
    "revision",
    "ttl_seconds",
    "expires_at",
    "tags",
    "metadata",
    "provenance",
)

ENTITY_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')


def parse_tags(header: str, name: str = "If-Match") -> Sequence[str]:
    """
    Return the entity tags of an If-Match or If-None-Match header (RFC 9110, 13.1), weak ones as
    ``W/…``; ``*`` alone stands for itself.

    Args:
        name: of the header, for the refusal.

    Raises:
        InvalidRevision: a tag is not quoted.
    """
    header = header.strip()
    if header == "*":
        return ["*"]
    tags = []
    position = 0
    while position < len(header):
        match = ENTITY_TAG.match(header, position)
        if match is None:
            raise InvalidRevision(
                "An entity tag is a revision between double quotes.", pointer=f"/headers/{name}"
            )
        tags.append((match[1] or "") + match[2])
        rest = header[match.end() :].lstrip()
        if rest and not rest.startswith(","):
            raise InvalidRevision(
                "Entity tags are separated by commas.", pointer=f"/headers/{name}"
            )
        position = len(header) - len(rest.lstrip(", \t"))
    if not tags:
        raise InvalidRevision("The header names no entity tag.", pointer=f"/headers/{name}")
    return tags


def read_revisions(revision: str | None, if_match: str | None) -> tuple[Mode | None, Sequence[str]]:
    """
    Return the mode and revisions that body or query and If-Match ask for; None where neither does.

    Raises:
        InvalidRevision: one is malformed, or they differ.
    """
    tags = None if if_match is None else parse_tags(if_match)
    if revision is not None:
        revision = check_revision(revision)
        if tags is not None and list(tags) != [revision]:
            raise InvalidRevision("The revision and If-Match must say the same.")
        return "replace", (revision,)
    if tags is None:
        return None, ()
    if tags == ["*"]:
        return "any", ("*",)
    # A weak tag never matches strongly, and one that is no revision matches nothing.
    return "replace", tuple(tag for tag in tags if re.fullmatch(r"[0-9a-f]{32}", tag))


def read_write(
    body: Mapping[str, Any],
    *,
    mode: str | None = None,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Write:
    """
    Return what a PUT or a batch's put asks for.

    Raises:
        ValidationError, InvalidJSON, InvalidRevision, InvalidTTL: a part is off.
        TooLarge: the value is.
    """
    if mode not in (None, "upsert"):
        raise ValidationError("The only mode is upsert.", pointer="/query/mode")
    if "value" not in body:
        raise ValidationError("A value is required.", pointer="/value")
    tags = None if body.get("tags") is None else check_tags(body["tags"])
    metadata = None if body.get("metadata") is None else check_metadata(body["metadata"])
    provenance = check_provenance(body.get("provenance"))
    asked, revisions = read_revisions(body.get("revision"), if_match)
    if mode == "upsert" and (asked is not None or if_none_match is not None):
        raise ValidationError(
            "An upsert takes whatever stands there: send no revision or precondition.",
            pointer="/query/mode",
        )
    chosen: Mode = asked or ("upsert" if mode else "create")
    none_match: Sequence[str] = ()
    if if_none_match is not None:
        if asked is not None:
            raise ValidationError(
                "If-None-Match creates, a revision replaces: send one of them.",
                pointer="/headers/If-None-Match",
            )
        none_match = [tag.removeprefix("W/") for tag in parse_tags(if_none_match, "If-None-Match")]
    deadline = check_deadline(body)
    return Write(
        value=body["value"],
        value_text=check_value(body["value"]),
        mode=chosen,
        revisions=revisions,
        tags=tags,
        metadata_text=metadata,
        provenance_text=provenance,
        deadline=deadline,
        none_match=none_match,
    )
