"""A tenant whose purposes are of every kind that a person can say something about."""

import copy
from typing import Any

import pytest

from tests.factories import CATALOG, EVERYONE
from tests.http.conftest import Clock, World, frozen, owner_does  # noqa: F401  fixtures

#: `news` and `resale` rest on an interest, `trial` erases, `letters` is confirmed; `partners` and
#: `resale` share. Each has one key of its name.
PURPOSES: list[dict[str, Any]] = [
    {"slug": "news", "lawful_basis": "legitimate_interest"},
    {"slug": "duty", "lawful_basis": "legal_obligation"},
    {"slug": "trial", "lawful_basis": "consent", "on_withdrawal": "erase"},
    {"slug": "letters", "lawful_basis": "consent", "double_opt_in": True},
    {"slug": "partners", "lawful_basis": "consent", "sharing": True},
    {"slug": "resale", "lawful_basis": "legitimate_interest", "sharing": True},
]


def rich_catalog() -> dict[str, Any]:
    catalog = copy.deepcopy(CATALOG)
    for purpose in PURPOSES:
        text = f"Why we keep what serves {purpose['slug']}."
        catalog["purposes"].append(
            {**purpose, "notices": [{"version": 1, "locale": "en", "text": text}]}
        )
        catalog["definitions"].append(
            {
                "key": purpose["slug"],
                "purpose": purpose["slug"],
                "scopes": ["user"],
                "writers": EVERYONE,
            }
        )
    return catalog


@pytest.fixture
def world() -> World:
    return World(rich_catalog())
