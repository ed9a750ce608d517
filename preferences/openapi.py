"""The schemas of preferences and definitions, as the OpenAPI document shows them."""

from tenants.exceptions import (
    AlreadyExists,
    ConsentRequired,
    DuplicateAddress,
    FailedDependency,
    IdempotencyMismatch,
    InvalidJSON,
    InvalidKey,
    InvalidRevision,
    InvalidScope,
    InvalidTransition,
    InvalidTTL,
    InvalidValue,
    LengthRequired,
    Objected,
    PurposeNotAllowed,
    Restricted,
    StaleRevision,
    TooLarge,
    UndeclaredKey,
    UnsupportedMediaType,
)
from tenants.openapi import Operation, Schema, listed, named

TEXT: Schema = {"type": "string"}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
TIME: Schema = {"type": "string", "format": "date-time"}
MAYBE_TIME: Schema = {"type": ["string", "null"], "format": "date-time"}
REVISION: Schema = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
ORIGIN: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        **{name: {"type": "string"} for name in ("agent", "trigger", "repo", "branch", "commit")},
        "pr": {"type": ["string", "integer"]},
    },
}
CONFIDENCE: Schema = {"type": ["number", "null"], "minimum": 0, "maximum": 1}

RECORD = named(
    "Preference",
    {
        "type": "object",
        "required": [
            "scope", "key", "value", "type", "revision", "purpose", "provenance", "tags",
            "metadata", "seen_count", "created_at", "updated_at", "expires_at",
        ],
        "properties": {
            "scope": TEXT,
            "key": TEXT,
            "value": {"description": "Any JSON value, as it went in."},
            "type": {"enum": ["string", "number", "boolean", "list", "object", "null"]},
            "revision": REVISION,
            "purpose": MAYBE_TEXT,
            "provenance": {
                "type": "object",
                "properties": {
                    "source": {"enum": ["user_confirmed", "operator", "agent", "import", "system"]},
                    "actor": TEXT,
                    "detail": MAYBE_TEXT,
                    "origin": ORIGIN,
                    "confidence": CONFIDENCE,
                },
            },
            "tags": {"type": "array", "items": TEXT},
            "metadata": {"type": "object"},
            "seen_count": {"type": "integer", "minimum": 1},
            "created_at": TIME,
            "updated_at": TIME,
            "expires_at": MAYBE_TIME,
            "archived_at": {**TIME, "description": "Of an archived record alone."},
        },
    },
)  # fmt: skip

WRITABLE: Schema = {
    "value": {"description": "Any JSON value of at most 64 KiB."},
    "revision": {"type": ["string", "null"], "pattern": "^[0-9a-f]{32}$"},
    "ttl_seconds": {"type": ["integer", "null"], "minimum": 1},
    "expires_at": MAYBE_TIME,
    "tags": {"type": ["array", "null"], "maxItems": 32, "items": TEXT},
    "metadata": {"type": ["object", "null"]},
    "provenance": {
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": {"detail": MAYBE_TEXT, "origin": ORIGIN, "confidence": CONFIDENCE},
    },
}
WRITE = named(
    "PreferenceWrite",
    {
        "type": "object",
        "required": ["value"],
        "additionalProperties": False,
        "properties": WRITABLE,
    },
)

WITHHELD: Schema = {
    "type": "array",
    "items": {"type": "object", "properties": {"purpose": TEXT, "reason": TEXT}},
}

DEFINITION = named(
    "Definition",
    {
        "type": "object",
        "properties": {
            "key": TEXT,
            "purpose": TEXT,
            "schema": {"type": ["object", "boolean"]},
            "default": {},
            "ttl_default": {"type": ["integer", "null"]},
            "ttl_max": {"type": ["integer", "null"]},
            "scopes": {"type": "array", "items": TEXT},
            "writers": {"type": "array", "items": {"enum": ["subject", "operator", "agent"]}},
            "transitions": {
                "type": ["object", "null"],
                "additionalProperties": {"type": "array", "items": TEXT},
            },
            "description": TEXT,
        },
    },
)

EFFECTIVE = named(
    "Effective",
    {
        "type": "object",
        "properties": {
            "key": TEXT,
            "value": {},
            "scope": MAYBE_TEXT,
            "revision": MAYBE_TEXT,
            "origin": {"enum": ["stored", "default"]},
            "shadows": {"type": "array", "items": TEXT},
        },
    },
)

BATCH: Schema = {
    "type": "object",
    "required": ["operations"],
    "additionalProperties": False,
    "properties": {
        "atomic": {"type": "boolean", "default": True},
        "operations": {
            "type": "array",
            "minItems": 1,
            "maxItems": 100,
            "items": {
                "type": "object",
                "required": ["op", "scope", "key"],
                "additionalProperties": False,
                "properties": {
                    "op": {"enum": ["get", "put", "delete"]},
                    "scope": TEXT,
                    "key": TEXT,
                    "mode": {"enum": ["upsert"]},
                    **WRITABLE,
                },
            },
        },
    },
}
BATCH_ANSWER: Schema = {
    "type": "object",
    "required": ["results"],
    "properties": {
        "results": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"status": {"type": "integer"}, "body": {"type": ["object", "null"]}},
            },
        }
    },
}

ADDRESS = (InvalidScope, InvalidKey)
BODY = (InvalidJSON, LengthRequired, TooLarge, UnsupportedMediaType)
GATE = (ConsentRequired, PurposeNotAllowed, Objected, Restricted)
WRITES = (
    *ADDRESS, *BODY, *GATE, InvalidValue, InvalidRevision, InvalidTTL, UndeclaredKey,
    StaleRevision, AlreadyExists, InvalidTransition, IdempotencyMismatch,
)  # fmt: skip

#: What may follow at the same address, with the revision that an answer told.
SAME_ADDRESS = {"tenant": "$request.path.tenant", "address": "$request.path.address"}
NEXT_STEPS: Schema = {
    "read": {"operationId": "get_Preference", "parameters": SAME_ADDRESS},
    "delete": {
        "operationId": "delete_Preference",
        "parameters": {**SAME_ADDRESS, "revision": "$response.body#/revision"},
    },
    "replace": {
        "operationId": "put_Preference",
        "parameters": SAME_ADDRESS,
        "requestBody": {
            "value": "$response.body#/value",
            "revision": "$response.body#/revision",
        },
    },
}

GET = Operation(
    summary="Read one live record.",
    answers={200: RECORD, 304: None},
    refusals=(*ADDRESS, *GATE, InvalidRevision),
    request_headers=("If-None-Match",),
    answer_headers=("ETag",),
)
PUT = Operation(
    summary="Create or replace one record.",
    answers={200: RECORD, 201: RECORD},
    body=WRITE,
    refusals=WRITES,
    request_headers=("If-Match", "If-None-Match", "Idempotency-Key"),
    answer_headers=("ETag", "Idempotency-Replayed"),
    links=NEXT_STEPS,
)
DELETE = Operation(
    summary="Delete one record.",
    answers={204: None},
    refusals=(
        *ADDRESS,
        PurposeNotAllowed,
        Restricted,
        InvalidRevision,
        StaleRevision,
        IdempotencyMismatch,
    ),
    request_headers=("If-Match", "Idempotency-Key"),
    answer_headers=("Idempotency-Replayed",),
)
LIST = Operation(
    summary="List the live records that the caller may see.",
    answers={200: listed(RECORD, withheld=WITHHELD)},
    refusals=(InvalidScope,),
)
SCORED: Schema = {
    **RECORD,
    "required": [*RECORD["required"], "score"],
    "properties": {
        **RECORD["properties"],
        "score": {"type": "number", "minimum": 0, "maximum": 1, "description": "More is better."},
    },
}
HIT = named("Hit", SCORED)
SEARCH = Operation(
    summary="Search the texts that the caller may see, the best match first.",
    answers={200: listed(HIT, withheld=WITHHELD)},
    refusals=(InvalidScope,),
    required_query=("q",),
)
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
RANKED = named(
    "Ranked",
    {
        **SCORED,
        "required": [*SCORED["required"], "parts"],
        "properties": {
            **SCORED["properties"],
            "parts": {
                "type": "object",
                "required": ["recency", "recurrence", "relevance", "outcome"],
                "properties": dict.fromkeys(
                    ("recency", "recurrence", "relevance", "outcome"), SHARE
                ),
            },
        },
    },
)
RANK = Operation(
    summary="Rank the live records of several scopes, those that matter most first.",
    answers={200: listed(RANKED, withheld=WITHHELD)},
    refusals=(InvalidScope,),
    required_query=("scope",),
)
APPLIES = Operation(
    summary="Resolve what applies over several scopes.",
    answers={200: listed(EFFECTIVE, withheld=WITHHELD)},
    refusals=ADDRESS,
)
RETIRED: Schema = {
    "type": "object",
    "required": ["scope", "key", "revision"],
    "additionalProperties": False,
    "properties": {"scope": TEXT, "key": TEXT, "revision": REVISION},
}
RETIRES = (
    *ADDRESS, *BODY, *GATE, InvalidRevision, UndeclaredKey, StaleRevision, IdempotencyMismatch,
)  # fmt: skip
ARCHIVE = Operation(
    summary="Retire one record from every read and list.",
    answers={200: RECORD},
    body=RETIRED,
    refusals=RETIRES,
    request_headers=("Idempotency-Key",),
    answer_headers=("ETag", "Idempotency-Replayed"),
)
RESTORE = Operation(
    summary="Bring an archived record back.",
    answers={200: RECORD},
    body=RETIRED,
    refusals=(*RETIRES, AlreadyExists),
    request_headers=("Idempotency-Key",),
    answer_headers=("ETag", "Idempotency-Replayed"),
)
POST_BATCH = Operation(
    summary="Run up to a hundred operations.",
    answers={200: BATCH_ANSWER},
    body=BATCH,
    refusals=(*WRITES, DuplicateAddress, FailedDependency),
    request_headers=("Idempotency-Key",),
    answer_headers=("Idempotency-Replayed",),
)
DEFINITIONS = Operation(summary="List the declared settings.", answers={200: listed(DEFINITION)})
HELD = named(
    "Hold",
    {
        "type": "object",
        "required": ["key", "since", "until", "reason"],
        "properties": {
            "key": TEXT,
            "since": TIME,
            "until": {"type": ["string", "null"], "format": "date-time"},
            "reason": TEXT,
        },
    },
)
HOLDS = Operation(
    summary="List what of a person is held, why and until when.",
    answers={200: listed(HELD)},
    refusals=(InvalidScope,),
)
HOLD = Operation(
    summary="Keep one record as it is, until the hold ends.",
    answers={200: HELD},
    body={
        "type": "object",
        "required": ["reason"],
        "additionalProperties": False,
        "properties": {
            "reason": {"type": "string", "minLength": 1, "maxLength": 500},
            "until": MAYBE_TIME,
        },
    },
    refusals=(
        InvalidScope, InvalidKey, InvalidJSON, LengthRequired, TooLarge, UnsupportedMediaType,
    ),
)  # fmt: skip
RELEASE = Operation(summary="End a hold.", answers={204: None}, refusals=(InvalidScope, InvalidKey))
