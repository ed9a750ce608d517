"""
A backend for Anthropic's memory tool (extra ``anthropic``): its commands on text records.

Whose memory it is stands in the caller and in the scope that the product chose; a path cannot lead
out of it. What the model is told are the words that its tool is known by.
"""

from collections.abc import Callable, Sequence
from typing import Any

from anthropic.lib.tools import (
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    ToolError,
)
from asgiref.sync import sync_to_async

from agents.adapters.files import Files, PathRefused, Place, read_path
from preferences.records import Record
from tenants.callers import Caller
from tenants.exceptions import AlreadyExists, ServiceError, StaleRevision
from tenants.scopes import Scope

MOST_LINES = 999_999
_WIDTH = len(str(MOST_LINES))
#: Levels of folders that a listing shows.
_DEPTH = 2
#: Lines of a changed file that are shown before and after the change.
_AROUND = 2


class Commands:
    """What the commands do, for the synchronous and the asynchronous tool alike."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def view(self, command: Any) -> str:
        """Return a file with numbered lines, or what is in a folder."""
        place = read_path(command.path)
        record = self.files.read(place)
        if record is not None:
            return _show(command.path, _text(record), command.view_range)
        found = self.files.list(place)
        if place and not found:
            raise ToolError(_absent(command.path))
        return _list(command.path, place, found)

    def create(self, command: Any) -> str:
        """Add a file."""
        try:
            self.files.create(read_path(command.path), command.file_text)
        except AlreadyExists:
            raise ToolError(f"File {command.path} already exists") from None
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: Any) -> str:
        """Replace what stands once in a file."""
        record = self._file(command.path)
        text = _text(record)
        starts = _find_all(text, command.old_str)
        if not starts:
            raise ToolError(
                f"No replacement was performed, old_str `{command.old_str}` did not appear"
                f" verbatim in {command.path}."
            )
        if len(starts) > 1:
            lines = ", ".join(str(text.count("\n", 0, start) + 1) for start in starts)
            raise ToolError(
                f"No replacement was performed. Multiple occurrences of old_str `{command.old_str}`"
                f" in lines: {lines}. Please ensure it is unique"
            )
        (start,) = starts
        changed = text[:start] + (command.new_str or "") + text[start + len(command.old_str) :]
        self.files.replace(record, changed)
        line = text.count("\n", 0, start)
        shown = changed.split("\n")[max(0, line - _AROUND) : line + _AROUND + 1]
        return (
            "The memory file has been edited. Here is the snippet showing the change"
            f" (with line numbers):\n{_numbered(shown, max(0, line - _AROUND) + 1)}"
        )

    def insert(self, command: Any) -> str:
        """Insert lines behind one of a file."""
        record = self._file(command.path)
        # Whoever writes CRLF keeps it: only the line feed divides.
        lines = _text(record).removesuffix("\n").split("\n") if _text(record) else []
        if not 0 <= command.insert_line <= len(lines):
            raise ToolError(
                f"Invalid `insert_line` parameter: {command.insert_line}. It should be within the"
                f" range [0, {len(lines)}]."
            )
        lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
        self.files.replace(record, "\n".join(lines).removesuffix("\n") + "\n")
        return f"The file {command.path} has been edited."

    def delete(self, command: Any) -> str:
        """Delete a file or a folder."""
        place = read_path(command.path)
        if not place:
            raise ToolError("Cannot delete the /memories directory itself")
        if not self.files.delete(place):
            raise ToolError(f"The path {command.path} does not exist")
        return f"Successfully deleted {command.path}"

    def rename(self, command: Any) -> str:
        """Move a file or a folder."""
        old, new = read_path(command.old_path), read_path(command.new_path)
        if not old:
            raise ToolError("Cannot rename the /memories directory itself")
        try:
            is_moved = self.files.rename(old, new)
        except AlreadyExists:
            raise ToolError(f"The destination {command.new_path} already exists") from None
        if not is_moved:
            raise ToolError(f"The path {command.old_path} does not exist")
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear(self) -> str:
        """Delete every file: for the product, no command of the model."""
        self.files.delete(())
        return "All memory cleared"

    def _file(self, path: str) -> Record:
        place = read_path(path)
        record = self.files.read(place)
        if record is None:
            is_folder = not place or self.files.list(place)
            raise ToolError(f"The path {path} is not a file." if is_folder else _absent(path))
        return record


class MemoryTool(BetaAbstractMemoryTool):
    """
    The memory tool in one scope, for one caller: make one for each conversation.

    An edit that somebody else's came before is a `ToolError`, never a lost update.

    Args:
        caller: who asks; its credential says in which tenant.
        scope: where the files are; the caller's own person, if left out.

    Raises:
        PermissionDenied: the caller stands for no person and named no scope, or named that of a
            person whom it does not act for.
    """

    def __init__(self, caller: Caller, *, scope: Scope | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.commands = Commands(Files(caller, scope))

    def view(self, command: Any) -> str:
        return answered(lambda: self.commands.view(command))

    def create(self, command: Any) -> str:
        return answered(lambda: self.commands.create(command))

    def str_replace(self, command: Any) -> str:
        return answered(lambda: self.commands.str_replace(command))

    def insert(self, command: Any) -> str:
        return answered(lambda: self.commands.insert(command))

    def delete(self, command: Any) -> str:
        return answered(lambda: self.commands.delete(command))

    def rename(self, command: Any) -> str:
        return answered(lambda: self.commands.rename(command))

    def clear_all_memory(self) -> str:
        return answered(self.commands.clear)


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for an event loop: the commands run on the thread that Django keeps for it."""

    def __init__(self, caller: Caller, *, scope: Scope | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.commands = Commands(Files(caller, scope))

    async def view(self, command: Any) -> str:
        return await sync_to_async(answered)(lambda: self.commands.view(command))

    async def create(self, command: Any) -> str:
        return await sync_to_async(answered)(lambda: self.commands.create(command))

    async def str_replace(self, command: Any) -> str:
        return await sync_to_async(answered)(lambda: self.commands.str_replace(command))

    async def insert(self, command: Any) -> str:
        return await sync_to_async(answered)(lambda: self.commands.insert(command))

    async def delete(self, command: Any) -> str:
        return await sync_to_async(answered)(lambda: self.commands.delete(command))

    async def rename(self, command: Any) -> str:
        return await sync_to_async(answered)(lambda: self.commands.rename(command))

    async def clear_all_memory(self) -> str:
        return await sync_to_async(answered)(self.commands.clear)


def answered(act: Callable[[], str]) -> str:
    """
    Return what a command says.

    Raises:
        ToolError: it was refused, in words that the model can act on.
    """
    try:
        return act()
    except PathRefused as refusal:
        raise ToolError(str(refusal)) from None
    except StaleRevision:
        raise ToolError(
            "stale_revision: It was changed meanwhile, and nothing was stored. View it again."
        ) from None
    except ServiceError as refusal:
        raise ToolError(f"{refusal.code}: {refusal.detail}") from None


# What the model reads ------------------------------------------------------------------------


def _text(record: Record) -> str:
    return str(record.value)


def _absent(path: str) -> str:
    return f"The path {path} does not exist. Please provide a valid path."


def _find_all(text: str, part: str) -> list[int]:
    """Return where a part starts, overlapping places included."""
    starts = []
    start = text.find(part)
    while start >= 0 and part:
        starts.append(start)
        start = text.find(part, start + 1)
    return starts


def _numbered(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _show(path: str, text: str, view_range: Sequence[int] | None) -> str:
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        raise ToolError(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first, last = 1, len(lines)
    if view_range and len(view_range) == 2:
        first = max(1, view_range[0])
        last = last if view_range[1] == -1 else view_range[1]
    body = _numbered(lines[first - 1 : last], first)
    return f"Here's the content of {path} with line numbers:\n{body}"


def _list(path: str, place: Place, found: Sequence[tuple[Place, Record]]) -> str:
    sizes: dict[Place, int] = {(): 0}
    folders: set[Place] = set()
    for full, record in found:
        names = full[len(place) :]
        if any(name.startswith(".") for name in names):
            continue
        size = len(_text(record).encode("utf-8"))
        for depth in range(len(names) + 1):
            sizes[names[:depth]] = sizes.get(names[:depth], 0) + size
        folders |= {names[:depth] for depth in range(1, len(names))}
    lines = [
        f"{_size(sizes[names])}\t{'/'.join((path.rstrip('/'), *names))}"
        + ("/" if names in folders else "")
        for names in sorted(sizes)
        if len(names) <= _DEPTH
    ]
    return (
        f"Here're the files and directories up to {_DEPTH} levels deep in {path}, excluding hidden"
        " items:\n" + "\n".join(lines)
    )


def _size(count: int) -> str:
    size, units = float(count), ["B", "K", "M", "G"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.1f}".removesuffix(".0") + units[0]
