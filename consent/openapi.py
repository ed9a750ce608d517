"""The schemas of purposes, consents and the caller, as the OpenAPI document shows them."""

from tenants.exceptions import (
    IdempotencyMismatch,
    InvalidJSON,
    InvalidScope,
    LengthRequired,
    StaleRevision,
    TooLarge,
    UnsupportedMediaType,
)
from tenants.openapi import Operation, Schema, listed, named

TEXT: Schema = {"type": "string"}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
MAYBE_TIME: Schema = {"type": ["string", "null"], "format": "date-time"}
MAYBE_NUMBER: Schema = {"type": ["integer", "null"]}

STATE = named(
    "ConsentState",
    {
        "type": "object",
        "required": ["purpose", "status", "version", "since", "expires_at", "entry"],
        "properties": {
            "purpose": TEXT,
            "status": {"enum": ["none", "given", "refused", "withdrawn", "expired", "outdated"]},
            "version": MAYBE_NUMBER,
            "since": MAYBE_TIME,
            "expires_at": MAYBE_TIME,
            "entry": MAYBE_TEXT,
        },
    },
)
ENTRY = named(
    "ConsentEntry",
    {
        "type": "object",
        "properties": {
            "entry": TEXT,
            "decision": {"enum": ["given", "refused", "withdrawn", "objected", "objection_lifted"]},
            "version": MAYBE_NUMBER,
            "locale": MAYBE_TEXT,
            "notice_digest": MAYBE_TEXT,
            "actor": TEXT,
            "method": TEXT,
            "at": {"type": "string", "format": "date-time"},
            "expires_at": MAYBE_TIME,
        },
    },
)
PURPOSE = named(
    "Purpose",
    {
        "type": "object",
        "properties": {
            "slug": TEXT,
            "title": TEXT,
            "lawful_basis": TEXT,
            "version": MAYBE_NUMBER,
            "required_version": {"type": "integer"},
            "notices": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "version": {"type": "integer"},
                        "locale": TEXT,
                        "text": TEXT,
                        "digest": TEXT,
                    },
                },
            },
            "on_withdrawal": {"enum": ["keep", "erase"]},
            "sharing": {"type": "boolean"},
            "double_opt_in": {"type": "boolean"},
        },
    },
)
ASKED: Schema = {
    "description": "Consent that has to be confirmed: not given yet.",
    "allOf": [STATE],
    "properties": {
        "confirmation": {
            "type": "object",
            "required": ["expires_at", "token"],
            "properties": {
                "expires_at": {"type": "string", "format": "date-time"},
                "token": {
                    "type": ["string", "null"],
                    "description": "Only for an operator's credential, where the host sets no sender.",
                },
            },
        }
    },
}
DECISION: Schema = {
    "type": "object",
    "required": ["decision"],
    "additionalProperties": False,
    "properties": {
        "decision": {"enum": ["given", "refused", "withdrawn"]},
        "version": {"type": ["integer", "null"], "minimum": 1},
        "locale": MAYBE_TEXT,
        "expires_at": MAYBE_TIME,
        "evidence": MAYBE_TEXT,
        "entry": MAYBE_TEXT,
    },
}

WHOAMI = Operation(
    summary="Who the caller is in this tenant.",
    answers={
        200: {
            "type": "object",
            "properties": {
                "tenant": TEXT,
                "user": TEXT,
                "subject": MAYBE_TEXT,
                "roles": {"type": "array", "items": TEXT},
                "purposes": {"type": "array", "items": TEXT},
                "wards": {
                    "type": "array",
                    "items": TEXT,
                    "description": "For whom the caller acts as a guardian now.",
                },
            },
        }
    },
)
PURPOSES = Operation(summary="List the purposes and their notices.", answers={200: listed(PURPOSE)})
STATES = Operation(
    summary="List a person's state for every purpose that rests on consent.",
    answers={200: listed(STATE)},
    refusals=(InvalidScope,),
)
SAME_PERSON = {"tenant": "$request.path.tenant", "subject": "$request.path.subject"}

DECIDE = Operation(
    summary="Record a decision on one purpose.",
    answers={200: STATE, 202: ASKED},
    body=DECISION,
    refusals=(
        InvalidScope, InvalidJSON, LengthRequired, TooLarge, UnsupportedMediaType, StaleRevision,
        IdempotencyMismatch,
    ),
    request_headers=("Idempotency-Key",),
    answer_headers=("Idempotency-Replayed",),
    links={
        "states": {"operationId": "get_Consents", "parameters": SAME_PERSON},
        "history": {
            "operationId": "get_ConsentHistory",
            "parameters": {**SAME_PERSON, "purpose": "$request.path.purpose"},
        },
    },
)  # fmt: skip
PAST: Schema = {
    "allOf": [ENTRY],
    "properties": {
        "ended_at": MAYBE_TIME,
        "ended_by": {
            "enum": [
                "given",
                "refused",
                "withdrawn",
                "objected",
                "objection_lifted",
                "expired",
                "outdated",
                None,
            ],
            "description": "The next decision, its own deadline, or a material notice.",
        },
    },
}
HISTORY = Operation(
    summary="List a person's decisions on one purpose, oldest first.",
    answers={200: listed(PAST)},
    refusals=(InvalidScope,),
)
