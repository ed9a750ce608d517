"""The holder that the manual shows, as it stands there, against a real cache and an index in memory."""

import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from django.core.cache import cache

from privacy.exceptions import HolderFailed
from tenants.personal import NOTHING_LEFT, Target
from tests.conftest import ROOT

TARGET = Target(tenant_id=7, subject="alice", subject_id=1, pseudonym="erased-1")


class IndexDown(Exception):
    """The index does not answer."""


class Index:
    """A search index in memory."""

    def __init__(self) -> None:
        self.documents = [
            {"tenant": 7, "person": "alice", "text": "a"},
            {"tenant": 7, "person": "bob", "text": "b"},
        ]
        self.is_down = False

    def find(self, *, tenant: int, person: str) -> list[dict[str, Any]]:
        return [one for one in self.documents if (one["tenant"], one["person"]) == (tenant, person)]

    def delete(self, *, tenant: int, person: str) -> None:
        if self.is_down:
            raise IndexDown
        gone = self.find(tenant=tenant, person=person)
        self.documents = [one for one in self.documents if one not in gone]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The class of the page, and the index that it works on."""
    page = (ROOT / "docs/how-to/forget-in-your-own-stores.md").read_text("utf-8")
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert code
    search, index = ModuleType("shop.search"), Index()
    search.index, search.IndexDown = index, IndexDown  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "shop", ModuleType("shop"))
    monkeypatch.setitem(sys.modules, "shop.search", search)
    names: dict[str, Any] = {}
    exec(re.sub(r"^   ", "", code[1], flags=re.M), names)
    return SimpleNamespace(holder=names["SearchIndex"](), index=index)


def test_it_erases_one_person_and_says_how_much_is_left(shown: SimpleNamespace) -> None:
    cache.set("found:7:alice", ["x"])
    (store,) = shown.holder.describe()
    assert [*shown.holder.export(tenant_id=7, subject="alice", store=store.name)] == [{"text": "a"}]
    assert shown.holder.count(target=TARGET, store=store.name) == 2
    assert shown.holder.erase(target=TARGET, store=store.name) == NOTHING_LEFT
    assert shown.holder.count(target=TARGET, store=store.name) == 0
    assert [one["person"] for one in shown.index.documents] == ["bob"]
    assert shown.holder.erase(target=TARGET, store=store.name) == NOTHING_LEFT


def test_it_gives_a_reason_while_the_index_is_away(shown: SimpleNamespace) -> None:
    shown.index.is_down = True
    with pytest.raises(HolderFailed, match=r"The search index does not answer\."):
        shown.holder.erase(target=TARGET, store="search_index")
