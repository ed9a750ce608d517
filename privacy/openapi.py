"""The schema of a person's own data, as the OpenAPI document shows it."""

from consent.openapi import ENTRY, STATE
from preferences.openapi import RECORD
from tenants.exceptions import InvalidScope
from tenants.openapi import Operation

DATA = Operation(
    summary="Show everything that is held about one person.",
    answers={
        200: {
            "type": "object",
            "required": ["subject", "preferences", "consents"],
            "properties": {
                "subject": {"type": "string"},
                "preferences": {
                    "type": "array",
                    "items": {
                        "allOf": [RECORD],
                        "properties": {"retention": {"type": "object"}},
                    },
                },
                "consents": {
                    "type": "array",
                    "items": {
                        "allOf": [STATE],
                        "properties": {"history": {"type": "array", "items": ENTRY}},
                    },
                },
            },
        }
    },
    refusals=(InvalidScope,),
)
