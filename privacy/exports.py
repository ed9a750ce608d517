"""
A person's data as one document, complete or an error: JSON that proves itself, or a page to read.

Everything is read in one snapshot. Whoever calls says where it is written; nothing here knows HTTP.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import batched
from pathlib import Path
from typing import IO, Any

from django.template.loader import get_template

from consent.selectors import list_purposes
from privacy.holders import stores
from tenants.documents import canonical
from tenants.personal import Item, PersonalData, Store
from tenants.snapshots import snapshot
from tenants.times import format_time
from tenants.units import store as database

FORMAT = "consentful-personal-data/1"
#: The JSON Schema of the document, as it is published.
SCHEMA = Path(__file__).with_name("schemas") / "personal-data-1.json"
STYLE = Path(__file__).with_name("templates") / "privacy/export/style.css"

#: What a person looks for stands first on the page, and what is longest last.
_FIRST = ("preferences", "consents")
_LAST = ("readings", "repeats", "events")
#: Items that are rendered at once.
_BATCH = 200
#: Stores whose items have a template of their own.
_SHAPED = frozenset({"preferences", "consents", "readings", "events"})


@dataclass(slots=True, kw_only=True)
class Part:
    """What one store holds: its items one by one, and meanwhile how many and their digest."""

    holder: PersonalData
    store: Store
    tenant_id: int
    subject: str
    count: int = 0
    _digest: Any = field(default_factory=hashlib.sha256)

    def read(self) -> Iterator[tuple[Item, str]]:
        """Yield each item, and its canonical text."""
        for item in self.holder.export(
            tenant_id=self.tenant_id, subject=self.subject, store=self.store.name
        ):
            text = canonical(item)
            self.count += 1
            self._digest.update(f"{text}\n".encode())
            yield item, text

    def entry(self) -> dict[str, Any]:
        """Return the line of the manifest, once all items were seen."""
        return {
            "name": self.store.name,
            "holds": self.store.holds,
            "count": self.count,
            "sha256": self._digest.hexdigest(),
        }


def write_document(
    file: IO[bytes], *, tenant_id: int, tenant: str, subject: str, schema: str
) -> None:
    """
    Write everything that is held about one person as JSON, one item per line. In no transaction.

    The manifest is the last member: a document that ends before it is no JSON.

    Args:
        schema: address of the published schema.
    """
    with snapshot(tenant_id=tenant_id):
        head = {"schema": schema, **_head(tenant_id, tenant, subject)}
        _write(file, canonical(head)[:-1] + ',\n"parts":{')
        entries: list[dict[str, Any]] = []
        for part in _parts(tenant_id, subject):
            _write(file, ("," if entries else "") + f'\n"{part.store.name}":[')
            separator = "\n"
            for _, text in part.read():
                _write(file, separator + text)
                separator = ",\n"
            _write(file, "\n]")
            entries.append(part.entry())
        _write(file, '\n},\n"manifest":' + canonical(_manifest(entries)) + "}\n")


def write_page(file: IO[bytes], *, tenant_id: int, tenant: str, subject: str) -> None:
    """Write the same as a page of HTML that loads nothing. In no transaction."""
    with snapshot(tenant_id=tenant_id):
        head = _head(tenant_id, tenant, subject)
        titles = {purpose["slug"]: purpose["title"] for purpose in head["purposes"]}
        parts = sorted(_parts(tenant_id, subject), key=lambda part: _place(part.store.name))
        _render(file, "start", {**head, "style": style(), "parts": parts})
        entries = []
        for part in parts:
            _render(file, "part", {"store": part.store})
            template = part.store.name if part.store.name in _SHAPED else "item"
            for batch in batched(part.read(), _BATCH):
                shaped = [_shape(item, titles) for item, _ in batch]
                _render(file, template, {"items": shaped})
            _render(file, "part_end", {"count": part.count})
            entries.append(part.entry())
        _render(file, "end", {"manifest": _manifest(entries)})


@cache
def style() -> str:
    """Return the style of the page, which stands in it: its digest is what the policy allows."""
    return STYLE.read_text("utf-8")


def _shape(item: Item, titles: dict[str, str]) -> dict[str, Any]:
    """Return an item as the templates take it: its members, the purpose's title, and all as text."""
    texts = {name: _shown(value) for name, value in item.items()}
    title = titles.get(str(item.get("purpose")))
    return {"is": item, "title": title, "texts": texts, "rows": list(texts.items())}


def _shown(value: Any) -> str:
    """Return a value for reading: text as it is, all else as JSON."""
    return value if isinstance(value, str) else canonical(value)


def _head(tenant_id: int, tenant: str, subject: str) -> dict[str, Any]:
    with database().cursor() as cursor:
        cursor.execute("SELECT consentful_now()")
        (moment,) = cursor.fetchone()
    return {
        "format": FORMAT,
        "tenant": tenant,
        "subject": subject,
        "taken_at": format_time(moment),
        "purposes": [
            {"slug": one.slug, "title": one.title, "lawful_basis": one.lawful_basis}
            for one in list_purposes(tenant_id=tenant_id)
        ],
    }


def _parts(tenant_id: int, subject: str) -> Iterator[Part]:
    for holder, store in stores():
        yield Part(holder=holder, store=store, tenant_id=tenant_id, subject=subject)


def _manifest(entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {"count": sum(entry["count"] for entry in entries), "parts": entries}


def _place(name: str) -> int:
    if name in _FIRST:
        return _FIRST.index(name) - len(_FIRST)
    return _LAST.index(name) + 1 if name in _LAST else 0


def _write(file: IO[bytes], text: str) -> None:
    file.write(text.encode())


def _render(file: IO[bytes], name: str, context: dict[str, Any]) -> None:
    _write(file, get_template(f"privacy/export/{name}.html").render(context))
