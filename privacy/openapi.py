"""The schemas of a person's own data, as the OpenAPI document shows them."""

from consent.openapi import PAST, STATE
from consent.rights_openapi import STAND
from preferences.openapi import HELD as HOLD
from preferences.openapi import RECORD
from privacy.exports import FORMAT
from tenants.exceptions import InvalidScope
from tenants.openapi import Operation, Schema, listed, named

TEXT: Schema = {"type": "string"}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
TIME: Schema = {"type": "string", "format": "date-time"}
MAYBE_TIME: Schema = {"type": ["string", "null"], "format": "date-time"}
DAY: Schema = {"type": "string", "format": "date"}

#: What a record and a decision have beyond what everyone sees.
HELD: Schema = {
    "allOf": [RECORD],
    "required": ["notice_version", "retention", "written_by", "read_by"],
    "properties": {
        "notice_version": {
            "type": ["integer", "null"],
            "description": "Version of the notice to which the person last agreed for this purpose.",
        },
        "retention": {
            "type": "object",
            "required": ["until", "rule"],
            "properties": {
                "until": MAYBE_TIME,
                "rule": {"enum": ["deadline", "until_deleted"]},
            },
        },
        "written_by": {
            "type": "array",
            "description": "Who wrote it, the last one first, as far as the trail reaches back.",
            "items": {
                "type": "object",
                "required": ["actor", "last_at", "times"],
                "properties": {"actor": TEXT, "last_at": TIME, "times": {"type": "integer"}},
            },
        },
        "read_by": {
            "type": "array",
            "description": "Who else read it lately, the last one first, and on how many days.",
            "items": {
                "type": "object",
                "required": ["actor", "last_day", "days"],
                "properties": {"actor": TEXT, "last_day": DAY, "days": {"type": "integer"}},
            },
        },
    },
}
DECISION: Schema = {
    "allOf": [PAST],
    "properties": {
        "notice": {**MAYBE_TEXT, "description": "The text that was shown."},
        "evidence": {**MAYBE_TEXT, "description": "How an operator knew of the decision."},
    },
}
ITEMS: Schema = {"type": "array", "items": {"type": "object"}}

DATA = Operation(
    summary="Show everything that is held about one person",
    answers={
        200: {
            "type": "object",
            "description": "One member per store; a host's own stores are further ones.",
            "required": ["subject", "preferences", "consents"],
            "properties": {
                "subject": TEXT,
                "identity": ITEMS,
                "roles": ITEMS,
                "tokens": ITEMS,
                "repeats": ITEMS,
                "consents": {
                    "type": "array",
                    "items": {
                        "allOf": [STATE],
                        "properties": {"history": {"type": "array", "items": DECISION}},
                    },
                },
                "confirmations": ITEMS,
                "restrictions": ITEMS,
                "objections": {
                    "type": "array",
                    "items": {
                        "allOf": [STAND],
                        "properties": {"history": {"type": "array", "items": DECISION}},
                    },
                },
                "holds": {"type": "array", "items": HOLD},
                "guardians": ITEMS,
                "serving": ITEMS,
                "preferences": {"type": "array", "items": HELD},
            },
            "additionalProperties": ITEMS,
        }
    },
    refusals=(InvalidScope,),
)

ACTIVITY = Operation(
    summary="Who read or changed something about one person, newest first",
    answers={
        200: listed(
            named(
                "Activity",
                {
                    "type": "object",
                    "description": "Without values. A reading stands once per record, reader and day.",
                    "required": [
                        "at", "action", "actor", "on_behalf_of", "target", "purpose", "changed",
                        "reason",
                    ],
                    "properties": {
                        "at": TIME,
                        "action": TEXT,
                        "actor": MAYBE_TEXT,
                        "on_behalf_of": MAYBE_TEXT,
                        "target": {
                            "type": "object",
                            "required": ["scope", "key"],
                            "properties": {"scope": MAYBE_TEXT, "key": MAYBE_TEXT},
                        },
                        "purpose": MAYBE_TEXT,
                        "changed": {"type": "array", "items": TEXT},
                        "reason": MAYBE_TEXT,
                    },
                },
            )
        )
    },
    refusals=(InvalidScope,),
)  # fmt: skip

EXPORT = Operation(
    summary="Everything that is held about one person, as one document with a manifest",
    answers={
        200: named(
            "PersonalDataExport",
            {
                "type": "object",
                "description": "Its own JSON Schema says more; with `format=html` it is a page.",
                "required": [
                    "format", "schema", "tenant", "subject", "taken_at", "purposes", "parts",
                    "manifest",
                ],
                "properties": {
                    "format": {"const": FORMAT},
                    "schema": {**TEXT, "format": "uri"},
                    "tenant": TEXT,
                    "subject": TEXT,
                    "taken_at": TIME,
                    "purposes": ITEMS,
                    "parts": {"type": "object", "additionalProperties": ITEMS},
                    "manifest": {
                        "type": "object",
                        "required": ["count", "parts"],
                        "properties": {
                            "count": {"type": "integer"},
                            "parts": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "required": ["name", "holds", "count", "sha256"],
                                    "properties": {
                                        "name": TEXT,
                                        "holds": TEXT,
                                        "count": {"type": "integer"},
                                        "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
                                    },
                                },
                            },
                        },
                    },
                },
            },
        )
    },
    refusals=(InvalidScope,),
    answer_headers=("Content-Disposition",),
    pages=("text/html",),
)  # fmt: skip

EXPORT_SCHEMA = Operation(
    summary="The JSON Schema of the export",
    answers={200: {"type": "object"}},
)
