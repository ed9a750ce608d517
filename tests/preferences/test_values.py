"""The form of what is stored, part by part."""

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest

from preferences.values import (
    Deadline,
    check_deadline,
    check_metadata,
    check_provenance,
    check_revision,
    check_tags,
    check_value,
    type_of,
)
from tenants.exceptions import (
    InvalidJSON,
    InvalidRevision,
    InvalidTTL,
    InvalidValue,
    TooLarge,
    ValidationError,
)


def nested(levels: int) -> Any:
    value: Any = {} if levels else 1
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("3.12", "string"), (3.12, "number"), (-1, "number"), (-0.0, "number"), (0, "number"),
        (True, "boolean"), (False, "boolean"), ([], "list"), ({}, "object"), (None, "null"),
        ("null", "string"),
    ],
)  # fmt: skip
def test_types(value: Any, name: str) -> None:
    assert type_of(check_value(value)) == name


def test_value_size_is_that_of_its_utf8() -> None:
    check_value("x" * (64 * 1024 - 2))
    check_value("é" * (32 * 1024 - 1))
    for value in ("x" * (64 * 1024 - 1), "é" * 32 * 1024):
        with pytest.raises(TooLarge, match="64 KiB") as refused:
            check_value(value)
        assert refused.value.errors[0].pointer == "/value"


def test_value_depth() -> None:
    check_value(nested(64))
    with pytest.raises(InvalidJSON, match="64 levels"):
        check_value(nested(65))
    with pytest.raises(InvalidJSON):  # not TooLarge: depth is told first
        check_value([nested(65), "x" * 70_000])


def test_values_no_json_can_hold() -> None:
    with pytest.raises(InvalidValue):
        check_value(math.nan)


def test_tags() -> None:
    assert check_tags([]) == []
    assert check_tags(["b", "a", "b"]) == ["b", "a"]
    assert check_tags(["x" * 64] * 32) == ["x" * 64]
    assert check_tags([" A "]) == [" A "]


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        (None, "/tags"), ("a", "/tags"), ({}, "/tags"), (["a"] * 33, "/tags"),
        (["a", ""], "/tags/1"), (["a", "b", "c", "x" * 65], "/tags/3"), ([1], "/tags/0"),
        ([None], "/tags/0"), (["a\n"], "/tags/0"), (["\ud800"], "/tags/0"), ([["a"]], "/tags/0"),
    ],
)  # fmt: skip
def test_tags_refused(value: Any, pointer: str) -> None:
    with pytest.raises(ValidationError) as refused:
        check_tags(value)
    assert refused.value.errors[0].pointer == pointer


def test_metadata() -> None:
    assert check_metadata({"b": 1, "a": 1.0}) == '{"a":1.0,"b":1}'
    assert check_metadata(nested(64))
    assert len(check_metadata({"a": "x" * (16 * 1024 - 8)})) == 16 * 1024


@pytest.mark.parametrize(
    "value", [None, [], "x", {"a": "x" * (16 * 1024 - 7)}, nested(65), {"a": math.inf}, {"\0": 1}]
)
def test_metadata_refused(value: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        check_metadata(value)
    assert refused.value.errors[0].pointer == "/metadata"


EMPTY = {"detail": None, "origin": {}, "confidence": None}


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (None, EMPTY),
        ({}, EMPTY),
        ({"detail": None, "origin": {"agent": None, "pr": None}, "confidence": None}, EMPTY),
        ({"detail": "é" * 1024}, EMPTY | {"detail": "é" * 1024}),
        ({"confidence": 0.5}, EMPTY | {"confidence": 0.5}),
        ({"confidence": 1}, EMPTY | {"confidence": 1}),
        ({"origin": {"pr": 12, "agent": "a"}}, EMPTY | {"origin": {"pr": 12, "agent": "a"}}),
        ({"origin": {"pr": "#12"}}, EMPTY | {"origin": {"pr": "#12"}}),
    ],
)
def test_provenance(value: Any, stored: Any) -> None:
    assert json.loads(check_provenance(value)) == stored


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ([], "/provenance"),
        ({"source": "operator"}, "/provenance/source"),
        ({"a/b": 1}, "/provenance/a~1b"),
        ({"detail": 1}, "/provenance/detail"),
        ({"detail": "é" * 1025}, "/provenance/detail"),
        ({"origin": "x"}, "/provenance/origin"),
        ({"origin": {"x": "y"}}, "/provenance/origin/x"),
        ({"origin": {"agent": 1}}, "/provenance/origin/agent"),
        ({"origin": {"repo": ""}}, "/provenance/origin/repo"),
        ({"origin": {"commit": "x" * 201}}, "/provenance/origin/commit"),
        ({"origin": {"pr": 0}}, "/provenance/origin/pr"),
        ({"origin": {"pr": True}}, "/provenance/origin/pr"),
        ({"origin": {"pr": 1.0}}, "/provenance/origin/pr"),
        ({"confidence": True}, "/provenance/confidence"),
        ({"confidence": "1"}, "/provenance/confidence"),
        ({"confidence": 1.01}, "/provenance/confidence"),
        ({"confidence": -0.1}, "/provenance/confidence"),
        ({"confidence": math.nan}, "/provenance/confidence"),
        ({"detail": "\ud800"}, "/provenance"),
    ],
)
def test_provenance_refused(value: Any, pointer: str) -> None:
    with pytest.raises(ValidationError) as refused:
        check_provenance(value)
    assert refused.value.errors[0].pointer == pointer


def test_revision() -> None:
    assert check_revision("0123456789abcdef" * 2) == "0123456789abcdef" * 2


@pytest.mark.parametrize(
    "value",
    ["", "a" * 31, "a" * 33, "A" * 32, "g" * 32, "a" * 32 + "\n", "٣" * 32, None, 5, 10**31, True],
)
def test_revision_refused(value: Any) -> None:
    with pytest.raises(InvalidRevision) as refused:
        check_revision(value)
    assert refused.value.errors[0].pointer == "/revision"


@pytest.mark.parametrize(
    ("body", "deadline"),
    [
        ({}, Deadline(False, None, None)),
        ({"ttl_seconds": 1}, Deadline(True, 1, None)),
        ({"ttl_seconds": 10**12}, Deadline(True, 10**12, None)),
        ({"ttl_seconds": None}, Deadline(True, None, None)),
        ({"expires_at": None}, Deadline(True, None, None)),
        (
            {"expires_at": "2030-01-01T01:00:00+01:00"},
            Deadline(True, None, datetime(2030, 1, 1, tzinfo=UTC)),
        ),
    ],
)
def test_deadline(body: Any, deadline: Deadline) -> None:
    assert check_deadline(body) == deadline


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"ttl_seconds": value}, "/ttl_seconds")
        for value in (0, -1, True, 1.0, "60", 10**12 + 1, 10**4000, [])
    ]
    + [
        ({"expires_at": value}, "/expires_at")
        for value in ("2030-01-01", "2030-01-01T00:00:00", 5, "", False)
    ]
    + [
        ({"ttl_seconds": 1, "expires_at": "2030-01-01T00:00:00Z"}, "/ttl_seconds"),
        ({"ttl_seconds": None, "expires_at": None}, "/ttl_seconds"),
    ],
)
def test_deadline_refused(body: Any, pointer: str) -> None:
    with pytest.raises(InvalidTTL) as refused:
        check_deadline(body)
    assert refused.value.errors[0].pointer == pointer
