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
