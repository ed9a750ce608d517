"""The schema of the trail, as the OpenAPI document shows it."""

from tenants.exceptions import InvalidKey, InvalidScope
from tenants.openapi import Operation, Schema, listed, named

TEXT: Schema = {"type": "string"}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}

EVENT = named(
    "Event",
    {
        "type": "object",
        "required": [
            "id", "at", "action", "actor", "on_behalf_of", "subject", "target", "purpose",
            "revision_before", "revision_after", "changed", "outcome", "reason", "request_id",
            "sequence",
        ],
        "properties": {
            "id": {"type": "integer"},
            "at": {"type": "string", "format": "date-time"},
            "action": TEXT,
            "actor": MAYBE_TEXT,
            "on_behalf_of": MAYBE_TEXT,
            "subject": MAYBE_TEXT,
            "target": {
                "type": "object",
                "required": ["scope", "key"],
                "properties": {"scope": MAYBE_TEXT, "key": MAYBE_TEXT},
            },
            "purpose": MAYBE_TEXT,
            "revision_before": MAYBE_TEXT,
            "revision_after": MAYBE_TEXT,
            "changed": {"type": "array", "items": TEXT, "description": "Names of columns."},
            "outcome": {"enum": ["done", "denied"]},
            "reason": MAYBE_TEXT,
            "request_id": MAYBE_TEXT,
            "sequence": {
                "type": ["integer", "null"],
                "description": "Place in the tenant's hash chain; null until it is sealed.",
            },
        },
    },
)  # fmt: skip

TRAIL = Operation(
    summary="What happened, newest first",
    answers={200: listed(EVENT)},
    refusals=(InvalidScope, InvalidKey),
)

CHANGES = Operation(
    summary="Sealed events in their order, for search indexes and caches that follow",
    answers={200: listed(EVENT)},
)

CHECKPOINT = Operation(
    summary="Where the hash chain stands, signed",
    answers={
        200: named(
            "Checkpoint",
            {
                "type": "object",
                "required": ["tenant", "sequence", "hash", "count", "time", "key", "jws"],
                "properties": {
                    "tenant": TEXT,
                    "sequence": {"type": "integer", "description": "Place of the last link."},
                    "hash": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
                    "count": {
                        "type": "integer",
                        "description": "Links that are kept; fewer than `sequence` after retention.",
                    },
                    "time": {"type": "string", "format": "date-time"},
                    "key": {"type": "string", "description": "Thumbprint (RFC 7638) of the key."},
                    "jws": {
                        "type": "string",
                        "description": "The same, signed with Ed25519 (compact JWS, RFC 7515).",
                    },
                },
            },
        )
    },
)

EXPORT = Operation(
    summary="The sealed trail as one document, for `verify_audit --file`",
    answers={
        200: named(
            "AuditExport",
            {
                "type": "object",
                "required": ["format", "tenant", "tenant_id", "start", "events", "checkpoint"],
                "properties": {
                    "format": {"const": "consentful-audit-export/1"},
                    "tenant": MAYBE_TEXT,
                    "tenant_id": {"type": ["integer", "null"]},
                    "start": {
                        "type": "object",
                        "description": "The link that the first event follows.",
                        "required": ["sequence", "hash"],
                        "properties": {"sequence": {"type": "integer"}, "hash": TEXT},
                    },
                    "events": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["sequence", "previous", "hash", "event"],
                            "properties": {
                                "sequence": {"type": "integer"},
                                "previous": TEXT,
                                "hash": TEXT,
                                "event": {"type": "object"},
                            },
                        },
                    },
                    "checkpoint": MAYBE_TEXT,
                },
            },
        )
    },
)

KEYS = Operation(
    summary="The public keys of signatures, as a JWK set",
    answers={
        200: named(
            "Keys",
            {
                "type": "object",
                "required": ["keys"],
                "properties": {"keys": {"type": "array", "items": {"type": "object"}}},
            },
        )
    },
)
