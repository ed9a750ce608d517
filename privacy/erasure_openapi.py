"""The schemas of erasures and their receipts, as the OpenAPI document shows them."""

from consent.openapi import MAYBE_TEXT, MAYBE_TIME, TEXT
from tenants.exceptions import (
    IdempotencyMismatch,
    InvalidJSON,
    InvalidKey,
    InvalidScope,
    LengthRequired,
    StaleRevision,
    TooLarge,
    UnsupportedMediaType,
)
from tenants.openapi import Operation, Schema, named

MAYBE_COUNT: Schema = {"type": ["integer", "null"], "minimum": 0}
NAMES: Schema = {
    "type": ["array", "null"],
    "items": TEXT,
    "minItems": 1,
    "maxItems": 200,
}

HOLDER: Schema = {
    "type": "object",
    "required": ["holder", "status", "erased", "held", "kept", "ground", "attempts", "reason"],
    "properties": {
        "holder": TEXT,
        "status": {
            "enum": [
                "pending", "done", "nothing_found", "failed", "held", "not_recallable", "exempt",
            ]
        },
        "erased": {**MAYBE_COUNT, "description": "Found gone by a look of its own afterwards."},
        "held": {**MAYBE_COUNT, "description": "Left because of a legal hold."},
        "kept": {**MAYBE_COUNT, "description": "Kept for good, without a name."},
        "ground": {**MAYBE_TEXT, "description": "Why something is kept or out of reach."},
        "attempts": {"type": "integer"},
        "reason": {**MAYBE_TEXT, "description": "Why the last attempt failed."},
        "next_attempt_at": MAYBE_TIME,
        "finished_at": MAYBE_TIME,
    },
}  # fmt: skip

RECORD: Schema = named(
    "Erasure",
    {
        "type": "object",
        "required": [
            "id", "status", "pseudonym", "extent", "method", "requested_at", "finished_at", "holders",
        ],
        "properties": {
            "id": TEXT,
            "status": {"enum": ["pending", "done", "failed"]},
            "pseudonym": {**MAYBE_TEXT, "description": "What stands in the place of the name."},
            "extent": {
                "type": "object",
                "required": ["everything", "keys", "purposes", "written_until"],
                "properties": {
                    "everything": {"type": "boolean"},
                    "keys": {**MAYBE_COUNT, "description": "How many keys were named."},
                    "purposes": {"type": ["array", "null"], "items": TEXT},
                    "written_until": {
                        **MAYBE_TIME,
                        "description": "Only what was written by then: a withdrawal asked.",
                    },
                },
            },
            "method": {"enum": ["user_confirmed", "guardian", "operator", "withdrawal", "restore"]},
            "requested_at": {"type": "string", "format": "date-time"},
            "finished_at": MAYBE_TIME,
            "holders": {"type": "array", "items": HOLDER},
        },
    },
)  # fmt: skip

LINKS = {
    "erasure": {
        "operationId": "get_Erasure",
        "parameters": {"tenant": "$request.path.tenant", "reference": "$response.body#/id"},
    }
}

ERASE = Operation(
    summary="Erase what is held about one person: everything, or records by key or purpose.",
    answers={201: RECORD},
    body={
        "type": "object",
        "additionalProperties": False,
        "properties": {"keys": NAMES, "purposes": NAMES},
    },
    refusals=(
        InvalidScope, InvalidKey, InvalidJSON, LengthRequired, TooLarge, UnsupportedMediaType,
        IdempotencyMismatch, StaleRevision,
    ),
    request_headers=("Idempotency-Key",),
    answer_headers=("Idempotency-Replayed", "Location"),
    links=LINKS,
)  # fmt: skip
ERASURE = Operation(summary="Show what became of one erasure.", answers={200: RECORD})
RECEIPT = Operation(
    summary="Show the signed receipt of a finished erasure.",
    answers={
        200: {
            "type": "object",
            "required": ["receipt", "payload", "kid"],
            "properties": {
                "receipt": {**TEXT, "description": "Compact JWS, signed with Ed25519."},
                "payload": {"type": "object"},
                "kid": {**TEXT, "description": "Its key, among those of /api/v1/keys."},
            },
        }
    },
)
