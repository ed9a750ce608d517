"""What a host holds outside the database: a search index in a file, with a switch to break it."""

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from django.conf import settings

from privacy.exceptions import HolderFailed
from tenants.personal import NOTHING_LEFT, Item, Remainder, Store, Target


class Index:
    """A search index: documents by person, in a file that the settings name."""

    name = "search_index"

    def describe(self) -> Sequence[Store]:
        return [Store(name=self.name, holds="What you can be found by.", models=())]

    def export(self, *, tenant_id: int, subject: str, store: str) -> Iterator[Item]:
        yield from ({"text": text} for text in self._read().get(f"{tenant_id}:{subject}", []))

    def erase(self, *, target: Target, store: str) -> Remainder:
        with (self._file.parent / f"asked-{self.name}").open("a") as asked:
            asked.write("x")
        if self._is("broken"):
            raise HolderFailed("The index does not answer.")
        if self._is("slow"):
            time.sleep(60)
        documents = self._read()
        if not self._is("lying"):
            documents.pop(f"{target.tenant_id}:{target.subject}", None)
        self._file.write_text(json.dumps(documents))
        return NOTHING_LEFT

    def count(self, *, target: Target, store: str) -> int:
        return len(self._read().get(f"{target.tenant_id}:{target.subject}", []))

    def _read(self) -> dict[str, list[str]]:
        return json.loads(self._file.read_text()) if self._file.exists() else {}  # type: ignore[no-any-return]

    def _is(self, word: str) -> bool:
        return (self._file.parent / word).exists()

    @property
    def _file(self) -> Path:
        return Path(settings.HOST_FOLDER) / f"{self.name}.json"


class Cache(Index):
    """A second holder, which works."""

    name = "cache"

    def _is(self, word: str) -> bool:
        return False


def times_asked(folder: Path, name: str) -> int:
    """How often a holder was asked to erase."""
    file = folder / f"asked-{name}"
    return len(file.read_text()) if file.exists() else 0
