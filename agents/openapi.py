"""The schemas of what agents ask for, as the OpenAPI document shows them."""

from tenants.openapi import Operation, Schema, listed

OPENAI_TOOL: Schema = {
    "type": "object",
    "required": ["type", "function"],
    "properties": {
        "type": {"const": "function"},
        "function": {
            "type": "object",
            "required": ["name", "description", "parameters"],
            "properties": {
                "name": {"type": "string"},
                "description": {"type": "string"},
                "parameters": {"type": "object"},
            },
        },
    },
}
ANTHROPIC_TOOL: Schema = {
    "type": "object",
    "required": ["name", "description", "input_schema"],
    "properties": {
        "name": {"type": "string"},
        "description": {"type": "string"},
        "input_schema": {"type": "object"},
    },
}

TOOLS = Operation(
    summary="The tools as function-calling schemas",
    answers={200: listed({"anyOf": [OPENAI_TOOL, ANTHROPIC_TOOL]})},
    query={
        "format": {"type": "string", "enum": ["openai", "anthropic"], "default": "openai"},
    },
)
