"""The schemas of restrictions, objections, confirmations, receipts and guardians, for the OpenAPI document."""

from consent.openapi import MAYBE_TEXT, MAYBE_TIME, STATE, TEXT
from tenants.exceptions import (
    InvalidJSON,
    InvalidKey,
    InvalidScope,
    LengthRequired,
    StaleRevision,
    TooLarge,
    UnsupportedMediaType,
)
from tenants.openapi import Operation, Schema, listed, named

TIME: Schema = {"type": "string", "format": "date-time"}
BODY = (InvalidScope, InvalidJSON, LengthRequired, TooLarge, UnsupportedMediaType)

RESTRICTION = named(
    "Restriction",
    {
        "type": "object",
        "required": ["key", "at", "actor", "method", "lifted_at", "lifted_by", "reason"],
        "properties": {
            "key": {"type": ["string", "null"], "description": "Of one record; null: everything."},
            "at": TIME,
            "actor": TEXT,
            "method": TEXT,
            "lifted_at": MAYBE_TIME,
            "lifted_by": MAYBE_TEXT,
            "reason": {"type": ["string", "null"], "description": "Why it was lifted."},
        },
    },
)
STAND = named(
    "ObjectionState",
    {
        "type": "object",
        "required": ["purpose", "status", "since", "entry"],
        "properties": {
            "purpose": TEXT,
            "status": {"enum": ["none", "objected", "objection_lifted"]},
            "since": MAYBE_TIME,
            "entry": MAYBE_TEXT,
        },
    },
)
GUARDIAN = named(
    "Guardian",
    {
        "type": "object",
        "required": ["username", "evidence", "expires_at"],
        "properties": {"username": TEXT, "evidence": TEXT, "expires_at": MAYBE_TIME},
    },
)
EVIDENCE: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "evidence": {
            "type": ["string", "null"],
            "minLength": 1,
            "description": "How an operator knows; up to 2048 bytes.",
        }
    },
}

RESTRICTIONS = Operation(
    summary="List what of a person is restricted, and what was.",
    answers={200: listed(RESTRICTION)},
    refusals=(InvalidScope,),
)
RESTRICT = Operation(
    summary="Keep everything about a person, and let nobody use it.",
    answers={200: RESTRICTION},
    body=EVIDENCE,
    refusals=BODY,
)
LIFT = Operation(summary="Let it be used again.", answers={204: None}, refusals=(InvalidScope,))
RESTRICT_KEY = Operation(
    summary="Keep the record of one key, and let nobody use it.",
    answers={200: RESTRICTION},
    body=EVIDENCE,
    refusals=(*BODY, InvalidKey),
)
LIFT_KEY = Operation(
    summary="Let that record be used again.",
    answers={204: None},
    refusals=(InvalidScope, InvalidKey),
)
OBJECTIONS = Operation(
    summary="List where a person stands on every purpose that can be objected to.",
    answers={200: listed(STAND)},
    refusals=(InvalidScope,),
)
OBJECT = Operation(
    summary="Object to a purpose that rests on somebody's interest.",
    answers={200: STAND},
    body=EVIDENCE,
    refusals=BODY,
)
LIFT_OBJECTION = Operation(
    summary="Take an objection back, or override it with a reason.",
    answers={204: None},
    refusals=(InvalidScope,),
)
CONFIRM = Operation(
    summary="Give the consent that was asked for, with its token.",
    answers={200: STATE},
    body={
        "type": "object",
        "required": ["token"],
        "additionalProperties": False,
        "properties": {"token": {"type": "string", "minLength": 1, "maxLength": 200}},
    },
    refusals=(*BODY, StaleRevision),
)
RECEIPT = Operation(
    summary="A signed receipt of a decision (ISO/IEC TS 27560).",
    answers={
        200: {
            "type": "object",
            "required": ["receipt", "key", "jws"],
            "properties": {
                "receipt": {"type": "object"},
                "key": {
                    "type": "string",
                    "description": "Of GET /api/v1/keys, the one that signed.",
                },
                "jws": {"type": "string", "description": "The receipt as compact JWS."},
            },
        }
    },
    refusals=(InvalidScope,),
)
GUARDIANS = Operation(
    summary="List who may act for a person.",
    answers={200: listed(GUARDIAN)},
    refusals=(InvalidScope,),
)
APPOINT = Operation(
    summary="Let a login act for a person.",
    answers={200: GUARDIAN},
    body={
        "type": "object",
        "required": ["evidence"],
        "additionalProperties": False,
        "properties": {
            "evidence": {"type": "string", "minLength": 1, "description": "Up to 2048 bytes."},
            "expires_at": MAYBE_TIME,
        },
    },
    refusals=BODY,
)
DISMISS = Operation(
    summary="Let a login act for a person no longer.",
    answers={204: None},
    refusals=(InvalidScope,),
)
