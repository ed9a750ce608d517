"""The usual order of scopes."""

import pytest

from preferences.resolution import default_order
from tenants.exceptions import InvalidScope


def order(**parts: str) -> list[str]:
    return [str(scope) for scope in default_order(**parts)]


def test_the_most_special_one_comes_first() -> None:
    assert order(
        project="Atlas", branch="feat/TTL", repository="Acme/Checkout", subject="alice"
    ) == [
        "user::alice", "branch::acme/checkout::feat/TTL", "repo::acme/checkout", "project::atlas",
        "global",
    ]  # fmt: skip


def test_what_is_not_named_is_left_out() -> None:
    assert order() == ["global"]
    assert order(repository="acme/checkout") == ["repo::acme/checkout", "global"]
    assert order(subject="alice", project="atlas") == ["user::alice", "project::atlas", "global"]


@pytest.mark.parametrize(
    "parts",
    [
        {"branch": "main"}, {"repository": "checkout"}, {"project": "a/b"}, {"subject": ""},
        {"repository": "acme/checkout", "branch": ""},
    ],
)  # fmt: skip
def test_parts_follow_the_grammar(parts: dict[str, str]) -> None:
    with pytest.raises(InvalidScope):
        default_order(**parts)
