"""The tests of Anthropic's own memory tool on files, run on ours."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from django.db import connections

from tests.peers.suites import load, require

require("anthropic.lib.tools")

from agents.adapters.anthropic_memory import AsyncMemoryTool, MemoryTool  # noqa: E402
from agents.adapters.files import Files, path_of  # noqa: E402

upstream = load("anthropic", "tests/lib/tools/memory_tools/test_filesystem.py")
#: About files of an operating system: their modes, symbolic links, and bytes behind our back.
ABOUT_THEIRS = {
    "test_mkdir_parents_not_world_writable_under_permissive_umask",
    "test_read_rejects_symlink_created_after_validation",
    "test_read_rejects_file_replaced_with_symlink_before_open",
    "test_view_rejects_directory_symlink_created_after_validation",
    "test_symlink_validation_reject_symlink_pointing_outside_memories",
    "test_view_lists_symlinks_only_when_they_stay_inside_memories",
    "test_symlink_validation_reject_creating_files_through_symlink_pointing_outside",
    "test_symlink_validation_reject_parent_directory_that_is_symlink_pointing_outside",
    "test_validate_path_returns_resolved_path_not_symlink_target",
}
THEIRS_ASYNCHRONOUSLY = {
    "test_view_preserves_crlf_line_endings", "test_str_replace_preserves_crlf_line_endings",
    "test_insert_preserves_crlf_line_endings",
}  # fmt: skip
NOT_OFFERED = "A value ends at 64 KiB, so no file has a million lines."


def take(cases, about_theirs):
    for name in about_theirs:
        if hasattr(cases, name):
            delattr(cases, name)
    refused = cases.test_view_error_for_files_with_too_many_lines
    refused = pytest.mark.xfail(reason=NOT_OFFERED, strict=True)(refused)
    cases.test_view_error_for_files_with_too_many_lines = refused
    return cases


TestFiles = take(upstream.TestBetaLocalFilesystemMemoryTool, ABOUT_THEIRS)
TestFilesAsynchronously = pytest.mark.anyio(
    take(upstream.TestBetaAsyncLocalFilesystemMemoryTool, ABOUT_THEIRS | THEIRS_ASYNCHRONOUSLY)
)


class Root:
    """What their tests do with the folder itself, done with ours."""

    def __init__(self, files):
        self.files = files

    def is_dir(self):
        return True

    def __truediv__(self, name):
        def write(content):
            self.files.create((name,), content.decode())

        def read():
            return self.files.read((name,)).value.encode()

        return SimpleNamespace(write_bytes=write, read_bytes=read)


@pytest.fixture
def files(caller, monkeypatch):
    """Where both tools write; their tests compare all that is there."""
    files = Files(caller)

    def read_all(_):
        return {path_of(place).removeprefix("/"): record.value for place, record in files.list()}

    monkeypatch.setattr(upstream, "get_directory_snapshot", lambda _: beside_the_loop(read_all))
    return files


@pytest.fixture
def sync_local_filesystem_tool(caller, files):
    tool = MemoryTool(caller)
    tool.base_path, tool.memory_root = "somewhere", Root(files)
    return tool


@pytest.fixture
def async_local_filesystem_tool(caller, files, closing):
    async def is_dir():
        return True

    tool = AsyncMemoryTool(caller)
    tool.base_path = "somewhere"
    tool.memory_root = SimpleNamespace(is_dir=is_dir, exists=is_dir)
    return tool


def beside_the_loop(read):
    """Read the database where an event loop runs, too."""

    def run():
        try:
            return read(None)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()
