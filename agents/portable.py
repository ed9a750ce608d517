"""
Shared records as a document of Portable AI Memory 1.0, and such a document as records.

Uses the format's own library, which also judges the document; installed with the extra `portable`.
What the format has no place for travels in the member `metadata.consentful`, so that our own
documents come back exactly as they were.

Source: Portable AI Memory, specification 1.0, sections 5 to 17.
"""

import hashlib
import importlib
import json
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from agents.interchange import Item, Reader
from preferences.records import Record
from tenants.documents import read
from tenants.exceptions import ServiceError, ValidationError
from tenants.scopes import Scope
from tenants.times import format_time

PLATFORM = "consentful"
#: What the format takes as a tag; others travel beside it.
_TAG = re.compile("[a-z0-9][a-z0-9_-]*")
_METHODS = {"user_confirmed": "explicit_user_input", "agent": "llm_inference"}
_SOURCES = {method: source for source, method in _METHODS.items()}


def library() -> Any:
    """
    Return the format's own library.

    Raises:
        ValidationError: it is not installed.
    """
    try:
        return importlib.import_module("portable_ai_memory")
    except ImportError:
        raise ValidationError(
            "Portable AI Memory needs a package: install consentful[portable]."
        ) from None


def export_document(*, tenant: str, records: Iterable[Record], at: datetime) -> str:
    """
    Return a document that holds these records, as JSON text.

    Raises:
        RuntimeError: the format's own library finds fault with it.
    """
    pam = library()
    memories = [_memory(pam, record) for record in records]
    document = {
        "schema": "portable-ai-memory",
        "schema_version": "1.0",
        "export_date": format_time(at),
        "owner": {"id": tenant},
        "memories": memories,
    }
    # The checksum covers the memories in the form in which they are read back.
    told = pam.MemoryStore.model_validate(document).model_dump(
        mode="json", by_alias=True, exclude_none=True
    )
    told["integrity"] = {
        "canonicalization": "RFC8785",
        "checksum": pam.compute_integrity_checksum(told["memories"]),
        "total_memories": len(memories),
    }
    result = pam.validate_memory_store(pam.MemoryStore.model_validate(told))
    if not result.is_valid:
        raise RuntimeError(f"The document would not be valid: {result.errors[0].check}.")
    return json.dumps(told, ensure_ascii=False, indent=1)


def _memory(pam: Any, record: Record) -> dict[str, Any]:
    text = record.value if isinstance(record.value, str) and record.value.strip() else None
    content = record.value_text if text is None else text
    provenance = json.loads(record.provenance_text)
    memory: dict[str, Any] = {
        "id": _identity(record.scope, record.key),
        "type": "preference" if text is None else "fact",
        "content": content,
        "content_hash": pam.compute_content_hash(content),
        "tags": [tag for tag in record.tags if _TAG.fullmatch(tag)],
        "temporal": {
            "created_at": format_time(record.created_at),
            "updated_at": format_time(record.updated_at),
        },
        "provenance": {
            "platform": PLATFORM,
            "extraction_method": _METHODS.get(record.source, "manual"),
        },
        # As text: neither digits nor the order of members may change on the way.
        "metadata": {
            PLATFORM: {
                "scope": record.scope,
                "key": record.key,
                "value": record.value_text,
                "tags": list(record.tags),
                "metadata": record.metadata_text,
                "provenance": json.dumps({**provenance, "source": record.source}),
            }
        },
    }
    if record.expires_at is not None:
        memory["temporal"]["valid_until"] = format_time(record.expires_at)
    return memory


def _identity(scope: str, key: str) -> str:
    return hashlib.sha256(f"{scope}/{key}".encode()).hexdigest()[:32]


def read_document(raw: bytes, *, into: Scope | None) -> list[Item]:
    """
    Return the records of a document, all of them checked for form.

    Args:
        into: where memories of another origin go, under their ids as keys.

    Raises:
        ValidationError: it is no such document, its sums do not fit, or memories are refused.
    """
    pam = library()
    try:
        store = pam.MemoryStore.model_validate(read(raw))
    except ServiceError as refusal:
        raise ValidationError(f"This is not JSON: {refusal.detail}") from refusal
    except ValueError as fault:  # what pydantic raises is one, and tells its errors
        first = fault.errors(include_input=False, include_url=False)[0]  # type: ignore[attr-defined]
        place = "/".join(str(part) for part in first["loc"])
        raise ValidationError(
            f"This is no document of Portable AI Memory 1.0: {first['msg']}.",
            pointer=f"/{place}",
        ) from fault
    result = pam.validate_memory_store(store)
    if not result.is_valid:
        raise ValidationError(f"The document is not valid: {result.errors[0].message}.")
    reader = Reader()
    for index, memory in enumerate(store.memories):
        place = f"/memories/{index}"
        try:
            reader.add(place, _record(memory, into))
        except ServiceError as refusal:
            reader.refuse(place, refusal)
    return reader.conclude()


def _record(memory: Any, into: Scope | None) -> dict[str, Any]:
    """Return a memory in the form that the API answers with."""
    until = memory.temporal.valid_until
    deadline = None if until is None else format_time(until)
    ours = (memory.metadata.model_extra or {}).get(PLATFORM) if memory.metadata else None
    if ours is not None:
        return _own(ours, deadline)
    if into is None:
        raise ValidationError("This memory has no scope: say into which one it goes.")
    confidence = memory.confidence and memory.confidence.current
    return {
        "scope": str(into),
        "key": memory.id,
        "value": memory.content,
        "tags": list(memory.tags),
        "provenance": {
            "source": _SOURCES.get(str(memory.provenance.extraction_method or "")),
            "detail": f"Portable AI Memory, {memory.provenance.platform}",
            "confidence": confidence,
        },
        "expires_at": deadline,
    }


def _own(ours: Any, deadline: str | None) -> dict[str, Any]:
    names = ("value", "metadata", "provenance")
    if not isinstance(ours, dict) or not all(isinstance(ours.get(name), str) for name in names):
        raise ValidationError("Its part of Consentful is not whole.", pointer="/metadata")
    parsed = {name: read(ours[name].encode()) for name in names}
    return {**ours, **parsed, "expires_at": deadline}
