"""What our memory tool promises beyond Anthropic's own tests: a race is told, never lost."""

import pytest

from tests.peers.suites import require

require("anthropic.lib.tools")

from anthropic.lib.tools import ToolError  # noqa: E402

from agents.adapters.anthropic_memory import MemoryTool  # noqa: E402
from agents.adapters.files import Files  # noqa: E402
from tests.factories import CATALOG, change_catalog  # noqa: E402


class Overtaken(Files):
    """Files whose edits come second: somebody else's is stored in between."""

    def replace(self, record, text):
        super().replace(record, "theirs")
        super().replace(record, text)


@pytest.fixture
def tool(caller):
    tool = MemoryTool(caller)
    tool.call({"command": "create", "path": "/memories/a", "file_text": "one"})
    return tool


@pytest.mark.parametrize(
    "edit",
    [
        {"command": "str_replace", "path": "/memories/a", "old_str": "one", "new_str": "two"},
        {"command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": "two"},
    ],
)
def test_an_edit_that_was_overtaken_is_a_tool_error(caller, tool, edit):
    tool.commands.files = Overtaken(caller)
    with pytest.raises(ToolError, match="stale_revision"):
        tool.call(edit)
    assert "theirs" in tool.call({"command": "view", "path": "/memories/a"})


def test_a_refusal_is_told_with_its_code(world, tool):
    change_catalog(world.tenant, undeclared={**CATALOG["undeclared"], "user": "support"})
    with pytest.raises(ToolError, match="consent_required"):
        tool.call({"command": "create", "path": "/memories/b", "file_text": "x"})
    with pytest.raises(ToolError, match="too_large"):
        tool.call({"command": "create", "path": "/memories/b", "file_text": "x" * 70_000})


def test_a_model_reads_only_its_own_folder(world, tool):
    world.alice.write("me", "note", "a secret")
    for path in ("/memories/../note", "/note", "/memories:note"):
        with pytest.raises(ToolError):
            tool.call({"command": "view", "path": path})
    assert "note" not in tool.call({"command": "view", "path": "/memories"})
    assert tool.clear_all_memory() == "All memory cleared"
    assert world.alice.read("me", "note").status == 200
