"""Reading an export again, strictly: whole, unaltered and of the published form. Needs no database."""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema_rs

from privacy.exports import FORMAT, SCHEMA
from tenants.documents import canonical, read
from tenants.exceptions import BadRequest, ValidationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One person's data, as an export told it."""

    tenant: str
    subject: str
    taken_at: str
    parts: dict[str, list[dict[str, Any]]]


def read_document(raw: bytes) -> Document:
    """
    Return what an export holds.

    Raises:
        ValidationError: it was cut off, altered, or is no export of ours.
    """
    try:
        found: Any = read(raw)
    except BadRequest as fault:
        raise ValidationError(f"The document is not whole, or no export: {fault.detail}") from fault
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValidationError(f"The document is no {FORMAT}.", pointer="/format")
    for error in _validator().iter_errors(found):
        pointer = "".join(f"/{part}" for part in error.instance_path)
        raise ValidationError("The document does not have the published form.", pointer=pointer)
    _check_manifest(found["parts"], found["manifest"])
    return Document(
        tenant=found["tenant"],
        subject=found["subject"],
        taken_at=found["taken_at"],
        parts=found["parts"],
    )


def _check_manifest(parts: dict[str, list[Any]], manifest: dict[str, Any]) -> None:
    told = {entry["name"]: entry for entry in manifest["parts"]}
    if set(told) != set(parts) or len(told) != len(manifest["parts"]):
        raise ValidationError("The manifest names other parts than there are.", pointer="/manifest")
    for name, items in parts.items():
        digest = hashlib.sha256()
        for item in items:
            digest.update(f"{canonical(item)}\n".encode())
        if told[name]["count"] != len(items):
            raise ValidationError(
                f"The manifest counts {told[name]['count']} items, and there are {len(items)}.",
                pointer=f"/parts/{name}",
            )
        if told[name]["sha256"] != digest.hexdigest():
            raise ValidationError(
                "The items are not those whose digest the manifest tells.", pointer=f"/parts/{name}"
            )
    if manifest["count"] != sum(len(items) for items in parts.values()):
        raise ValidationError("The manifest does not add up.", pointer="/manifest/count")


@cache
def _validator() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(
        json.loads(SCHEMA.read_bytes()), validate_formats=True
    )
