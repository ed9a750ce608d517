"""The tools as function-calling schemas, for models that are reached without MCP."""

import json

from agents.tool_schemas import TOOLS
from preferences.schemas import compile_schema


def test_the_two_formats(world):
    offered = [name for name in TOOLS if name != "forget_memories"]
    openai = world.agent.get("tools", query={"format": "openai"})
    assert openai.json["next"] is None
    for tool, name in zip(openai.json["results"], offered, strict=True):
        assert tool["type"] == "function"
        assert set(tool["function"]) == {"name", "description", "parameters"}
        assert tool["function"]["name"] == name
        assert tool["function"]["parameters"] == TOOLS[name].takes
    assert world.agent.get("tools").json == openai.json
    anthropic = world.agent.get("tools", query={"format": "anthropic"}).json["results"]
    assert [set(tool) for tool in anthropic] == [{"name", "description", "input_schema"}] * len(
        offered
    )
    assert [tool["input_schema"] for tool in anthropic] == [TOOLS[name].takes for name in offered]


def test_other_formats(world):
    for query in ({"format": "OpenAI"}, {"format": ""}, {"format": "json"}, {"form": "openai"},
                  {"format": ["openai", "openai"]}):  # fmt: skip
        assert world.agent.get("tools", query=query).outcome == (400, "validation_error")


def test_nobody_is_named_in_arguments(world):
    for tool in world.agent.get("tools").json["results"]:
        parameters = tool["function"]["parameters"]
        assert parameters["additionalProperties"] is False
        assert not {"tenant", "user", "user_id", "subject"} & set(parameters["properties"])
        compile_schema(json.dumps(parameters))
