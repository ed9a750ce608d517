"""Documents that are run: their fenced blocks become files, statements and commands."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(?P<info>\w.*?)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """
    One fenced block.

    Attributes:
        language: the first word after the fence.
        title: the file that the block is, from ``title=``.
        is_addition: whether it is added to the end of that file, from ``add``.
    """

    language: str
    text: str
    title: str | None = None
    is_addition: bool = False

    def commands(self) -> Iterator[tuple[str, str]]:
        """Yield each command after a ``$``, with what it prints; ``...`` stands for anything."""
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output

    def write(self, folder: Path) -> None:
        """Save the block as the file that its title names."""
        file = folder / str(self.title)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a" if self.is_addition else "w", encoding="utf-8") as stream:
            stream.write(self.text)


def read_blocks(document: Path) -> list[Block]:
    """Return the fenced blocks of a document, in order."""
    blocks = []
    for fence in FENCE.finditer(document.read_text("utf-8")):
        language, *words = fence["info"].split()
        titles = [word.removeprefix("title=") for word in words if word.startswith("title=")]
        blocks.append(Block(language, fence["text"], titles[0] if titles else None, "add" in words))
    return blocks
