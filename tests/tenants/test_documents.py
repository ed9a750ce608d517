"""What the strict reader takes, what it refuses, and that the canonical text reads back."""

import json
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.documents import canonical, check_depth, read
from tenants.exceptions import BadRequest, InvalidJSON, InvalidValue

TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(TEXTS, parts, max_size=4),
    max_leaves=20,
)


def exact(value: Any) -> Any:
    """Return what tells apart 1, 1.0 and True, and 0.0 and -0.0."""
    match value:
        case float():
            return ("float", struct.pack(">d", value))
        case list():
            return [exact(part) for part in value]
        case dict():
            return {name: exact(part) for name, part in value.items()}
        case _:
            return (type(value).__name__, value)


@pytest.mark.parametrize(
    "raw",
    [
        b"", b" \n", b"\xef\xbb\xbf{}", b"\xff", b'"\xed\xa0\x80"', b"{}x", b"[1,]", b"{'a':1}",
        b"NaN", b"[-Infinity]", b"Infinity", b'{"a":1,"a":1}', b'[{"a":{"b":1,"\\u0062":2}}]',
        b'"\\ud800"', b'{"\\udc00":1}', b'"\\udc00\\ud800"', b'"\\u0000"', b'{"a\\u0000":1}',
        b'"\n"', b"[" * 20_000 + b"]" * 20_000, b"[" * 200_000, b"01", b"+1", b"1.", b".5",
        "\u00a01".encode(), b"{}\0", "{}".encode("utf-16"), b'{"\\ud800":1,"\\ud800":2}',
    ],
)  # fmt: skip
def test_refused(raw: bytes) -> None:
    with pytest.raises(InvalidJSON) as refused:
        read(raw)
    refused.value.detail.encode()  # whatever the message says can be sent


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [
        (b'{"value":1e400}', "/value"),
        (b'{"value":{"a/b":[0,-1e999]}}', "/value/a~1b/1"),
        (b"9" * 4301, ""),
        (b"[-" + b"9" * 5000 + b"]", "/0"),
        (b'{"n":1' + b"0" * 250_000 + b"}", "/n"),
    ],
)
def test_numbers_refused(raw: bytes, pointer: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        read(raw)
    assert refused.value.errors[0].pointer == pointer


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"9007199254740993", 9007199254740993),
        (b"18446744073709551617", 2**64 + 1),
        (b"-" + b"9" * 4300, -(10**4300 - 1)),
        (b"1.0", 1.0),
        (b"1e22", 1e22),
        (b"-0.0", -0.0),
        (b"-0", -0.0),
        (b"0", 0),
        (b"1e-400", 0.0),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\\\u0000"', "\\u0000"),
        (b'"  3.12 "', "  3.12 "),
        (b' {"b":1,"a":null}\n', {"b": 1, "a": None}),
    ],
)
def test_values_stay_what_they_are(raw: bytes, value: Any) -> None:
    assert exact(read(raw)) == exact(value)
    assert exact(read(canonical(read(raw)).encode())) == exact(value)


def test_no_value_is_echoed() -> None:
    for raw in (b'{"value": secret}', b'{"value": "secret\\u0000"}', b'{"value": "secret\\ud800"}'):
        with pytest.raises(InvalidJSON) as refused:
            read(raw)
        assert "secret" not in refused.value.detail


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [1.0, -0.0, 1e22, True, None]}, '{"a":[1.0,-0.0,1e+22,true,null],"b":1}'),
        ({"\uffff": 1, "\U00010000": 2, "Z": 3, "a": 4}, '{"Z":3,"a":4,"\uffff":1,"\U00010000":2}'),
        ("é\u2028/\\u0000", '"é\u2028/\\\\u0000"'),
    ],
)
def test_canonical_text(value: Any, text: str) -> None:
    assert canonical(value) == text


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (math.nan, InvalidValue), ([math.inf], InvalidValue), ({"a": 10**4300}, InvalidValue),
        ("\0", InvalidJSON), ({"\ud800": 1}, InvalidJSON), (["\udfff"], InvalidJSON),
    ],
)  # fmt: skip
def test_what_a_host_may_not_store(value: Any, error: type[BadRequest]) -> None:
    with pytest.raises(error):
        canonical(value)


def test_a_value_that_holds_itself() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(InvalidJSON):
        canonical(value)
    with pytest.raises(InvalidJSON):
        check_depth(value)


@pytest.mark.parametrize("inner", ["", "1", '"x"', "{}"])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_depth(opening: str, inner: str) -> None:
    closing = "]" if opening == "[" else "}"
    inner = inner or ("" if opening == "[" else "1")
    levels = 64 - (inner == "{}")
    check_depth(read((opening * levels + inner + closing * levels).encode()))
    levels += 1
    with pytest.raises(InvalidJSON) as refused:
        check_depth(read((opening * levels + inner + closing * levels).encode()), pointer="/x")
    assert refused.value.errors[0].pointer == "/x"


@given(VALUES)
def test_canonical_text_reads_back(value: Any) -> None:
    text = canonical(value)
    assert exact(read(text.encode())) == exact(value)
    assert canonical(read(text.encode())) == text


@given(VALUES)
def test_canonical_text_does_not_depend_on_spelling(value: Any) -> None:
    spelt = json.dumps(value, indent=1)
    assert canonical(read(spelt.encode())) == canonical(value)


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:\\ud80e1-.0 ').map(str.encode))
def test_bytes_are_read_or_refused(raw: bytes) -> None:
    try:
        value = read(raw)
    except BadRequest as error:
        error.detail.encode()
    else:
        canonical(value).encode()
