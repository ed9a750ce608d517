"""The schemas of selected context, as the OpenAPI document shows them."""

from agents.context import LEAST_BUDGET, MOST_BUDGET, MOST_KEYS, MOST_SCOPES
from preferences.openapi import ADDRESS, BODY, MAYBE_TEXT, MAYBE_TIME, TEXT
from tenants.exceptions import InvalidValue
from tenants.openapi import Operation, Schema, named

NAME: Schema = {"type": "string", "minLength": 1}

CONTEXT_REQUEST = named(
    "ContextRequest",
    {
        "type": "object",
        "required": ["purpose", "scopes", "keys"],
        "additionalProperties": False,
        "properties": {
            "purpose": NAME,
            "scopes": {"type": "array", "minItems": 1, "maxItems": MOST_SCOPES, "items": NAME},
            "keys": {"type": "array", "minItems": 1, "maxItems": MOST_KEYS, "items": NAME},
            "current": {"type": ["object", "null"], "maxProperties": MOST_KEYS},
            "format": {"enum": ["json", "text", None], "default": "json"},
            "budget_chars": {
                "type": ["integer", "null"],
                "minimum": LEAST_BUDGET,
                "maximum": MOST_BUDGET,
            },
        },
    },
)

ITEM: Schema = {
    "type": "object",
    "required": [
        "key", "value", "scope", "revision", "origin", "purpose", "source", "updated_at",
        "expires_at",
    ],
    "properties": {
        "key": TEXT,
        "value": {"description": "Any JSON value."},
        "scope": MAYBE_TEXT,
        "revision": MAYBE_TEXT,
        "origin": {"enum": ["stored", "default", "current"]},
        "purpose": MAYBE_TEXT,
        "source": MAYBE_TEXT,
        "updated_at": MAYBE_TIME,
        "expires_at": MAYBE_TIME,
    },
}  # fmt: skip

CONTEXT = named(
    "Context",
    {
        "type": "object",
        "required": ["items", "omitted", "valid_until"],
        "properties": {
            "items": {"type": "array", "items": ITEM},
            "omitted": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["key", "reason"],
                    "properties": {
                        "key": TEXT,
                        "reason": {"enum": ["missing", "consent", "purpose", "budget"]},
                    },
                },
            },
            "valid_until": MAYBE_TIME,
            "text": {"type": "string", "description": "Where the format is text."},
        },
    },
)

POST_CONTEXT = Operation(
    summary="Select the facts that one request of a language model may use.",
    answers={200: CONTEXT},
    body=CONTEXT_REQUEST,
    refusals=(*ADDRESS, *BODY, InvalidValue),
)
