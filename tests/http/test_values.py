"""Values come back as they went in; what is no JSON value is refused."""

import json

import pytest

from tests.http.client import address


def raw_value(answer):
    """Return the value's own bytes, before any parser saw them."""
    text = answer.content.decode()
    start = text.index('"value": ') + len('"value": ')
    return text[start : text.index(', "type": ')]


def test_C001_null_is_a_value(world):
    assert world.alice.write("user::alice", "nickname", None).status == 201
    record = world.alice.read("user::alice", "nickname")
    assert record.status == 200
    assert record.json["value"] is None
    assert record.json["type"] == "null"
    assert world.alice.read("user::alice", "never_set").outcome == (404, "not_found")
    assert world.alice.listing(scope="me").keys.count("nickname") == 1


@pytest.mark.parametrize(
    "body",
    [
        b'{"value":NaN}',
        b'{"value":[-Infinity]}',
        b'{"value":Infinity}',
        b'{"value":1e400}',
        b'{"value":{"a":-1e999}}',
    ],
)
def test_C003_non_finite_numbers(world, body):
    answer = world.alice.put("preferences/me/n", raw=body)
    assert answer.status == 400
    assert answer.code in {"invalid_json", "invalid_value"}
    assert world.alice.read("me", "n").status == 404
    assert world.events("preference.created") == []


def test_C003_codes_tell_literals_from_overflow(world):
    assert world.alice.put("preferences/me/n", raw=b'{"value":NaN}').code == "invalid_json"
    assert world.alice.put("preferences/me/n", raw=b'{"value":1e400}').code == "invalid_value"


@pytest.mark.parametrize("digits", ["9007199254740993", "18446744073709551617", "9" * 4300])
def test_C005_large_integers(world, digits):
    path = "preferences/me/n"
    assert world.alice.put(path, raw=b'{"value":%s}' % digits.encode()).status == 201
    assert raw_value(world.alice.get(path)) == digits
    assert world.alice.listing(scope="me").status == 200
    assert digits.encode() in world.alice.listing(scope="me").content


def test_C005_over_4300_digits(world):
    for count in (4301, 5000):
        answer = world.alice.put("preferences/me/n", raw=b'{"value":%s}' % (b"9" * count))
        assert answer.outcome == (400, "invalid_value")
    assert world.alice.read("me", "n").status == 404


def test_C007_deeply_nested(world):
    def send(depth):
        body = b'{"value":' + b"[" * depth + b"]" * depth + b"}"
        return world.alice.put(f"preferences/me/d{depth}", raw=body)

    for depth in (20, 63, 64):
        assert send(depth).status == 201
        value = world.alice.read("me", f"d{depth}").json["value"]
        assert json.dumps(value) == "[" * depth + "]" * depth
    for depth in (65, 900, 1100, 20000, 100000):
        assert send(depth).outcome == (400, "invalid_json")
        assert world.alice.read("me", "d20").status == 200


@pytest.mark.parametrize(
    "text",
    ["3.12", "null", "true", '{"a":1}', "  brief  ", "line\n", "\u200b", "", "é", "e\u0301", "😀"],
)
def test_C009_strings_stay_strings(world, text):
    assert world.alice.write("me", "s", text).status == 201
    record = world.alice.read("me", "s").json
    assert record["value"] == text
    assert record["type"] == "string"
    (held,) = world.alice.get("subjects/me/data").json["preferences"]
    assert held["value"] == text


@pytest.mark.parametrize(
    "number", ["1e22", "1.0", "-0.0", "1.5e300", "1e-7", "3.12", "0", "-1", "1e16", "0.1", "5e-324"]
)
def test_C107_numbers_keep_their_kind(world, number):
    path = "preferences/me/n"
    assert world.alice.put(path, raw=b'{"value":%s}' % number.encode()).status == 201
    first, second = world.alice.get(path), world.alice.get(path)
    assert first.content == second.content
    back = json.loads(raw_value(first))
    sent = json.loads(number)
    assert type(back) is type(sent)
    assert repr(back) == repr(sent)
    written = world.alice.put(
        path, raw=b'{"value":%s,"revision":"%s"}' % (raw_value(first).encode(), first.etag.encode())
    )
    assert written.status == 200
    assert raw_value(written) == raw_value(first)


def test_C107_member_order(world):
    value = {"bb": 1, "a": 2, "aaa": 3, "é": {"z": None, "y": []}}
    assert world.alice.write("me", "o", value).status == 201
    first = world.alice.read("me", "o")
    assert first.json["value"] == value
    again = world.alice.write("me", "o", first.json["value"], revision=first.etag)
    assert again.status == 200
    assert raw_value(again) == raw_value(world.alice.read("me", "o")) == raw_value(first)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("a", "string"), (3.12, "number"), (3, "number"), (True, "boolean"), (False, "boolean"),
        ([], "list"), ({}, "object"), (None, "null"),
    ],
)  # fmt: skip
def test_types(world, value, name):
    answer = world.alice.write("me", "t", value)
    assert answer.json["type"] == name
    assert answer.json["value"] == value


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"  ",
        b"{",
        b'{"value":1}x',
        b'{"value":1,"value":2}',
        b'{"value":{"a":1,"a":1}}',
        b'{"value":"\\ud800"}',
        b'{"value":"\\udc00\\ud800"}',
        b'{"value":"\\u0000"}',
        b'{"value":{"\\u0000":1}}',
        b'\xef\xbb\xbf{"value":1}',
        b'{"value":"\xff"}',
        b"{'value':1}",
        b'{"value":01}',
        b'{"value":"a\nb"}',
    ],
)
def test_invalid_json(world, body):
    assert world.alice.put("preferences/me/k", raw=body).outcome == (400, "invalid_json")
    assert world.alice.read("me", "k").status == 404


@pytest.mark.parametrize("body", [b"[]", b"1", b"null", b'"x"', b"{}", b'{"valeu":1}'])
def test_body_that_is_no_write(world, body):
    assert world.alice.put("preferences/me/k", raw=body).outcome == (400, "validation_error")


def test_surrogate_pair_is_one_character(world):
    assert world.alice.put("preferences/me/k", raw=b'{"value":"\\ud83d\\ude00"}').status == 201
    assert world.alice.read("me", "k").json["value"] == "😀"


def test_value_limit(world):
    assert world.alice.write("me", "big", "x" * (65536 - 2)).status == 201
    refused = world.alice.write("me", "bigger", "x" * (65536 - 1))
    assert refused.outcome == (413, "too_large")
    assert world.alice.read("me", "bigger").status == 404
    # Bytes of canonical JSON, not characters, and blanks do not count.
    assert world.alice.write("me", "wide", "é" * 32767).status == 201
    assert world.alice.write("me", "wider", "é" * 32768).outcome == (413, "too_large")
    blanks = b'{"value":[' + b" " * 70000 + b"]}"
    assert world.alice.put("preferences/me/blank", raw=blanks).status == 201


def test_C029_body_limit(world):
    most = 256 * 1024
    body = b'{"value":1}'
    path = address("me", "k")
    assert world.alice.put(path, raw=body + b" " * (most - len(body))).status == 201
    over = world.alice.put("preferences/me/l", raw=body + b" " * (most - len(body) + 1))
    assert over.outcome == (413, "too_large")
    assert str(most) in over.json["detail"]
    huge = world.alice.put("preferences/me/l", raw=b" " * (8 * 1024 * 1024))
    assert huge.outcome == (413, "too_large")
    assert world.alice.read("me", "l").status == 404


def test_limits_of_what_goes_along(world):
    write = world.alice.write
    assert write("me", "a", tags=[str(n) for n in range(32)]).status == 201
    assert write("me", "b", tags=[str(n) for n in range(33)]).outcome == (400, "validation_error")
    assert write("me", "b", tags=["x" * 64]).status == 201
    for tags in (["x" * 65], [""], [1], "x", [None], {"a": 1}):
        assert write("me", "c", tags=tags).outcome == (400, "validation_error")
    assert write("me", "c", metadata={"m": "x" * (16384 - 8)}).status == 201
    for metadata in ({"m": "x" * (16384 - 7)}, [], "x", 1):
        assert write("me", "d", metadata=metadata).outcome == (400, "validation_error")
    assert write("me", "d", provenance={"detail": "x" * 2048}).status == 201
    for provenance in (
        {"detail": "x" * 2049}, {"detail": 1}, {"source": "system"}, {"origin": {"planet": "x"}},
        {"confidence": 1.1}, {"confidence": -0.1}, {"confidence": True}, {"confidence": "1"}, [],
    ):  # fmt: skip
        answer = write("me", "e", provenance=provenance)
        assert answer.outcome == (400, "validation_error")
        assert answer.json["errors"][0]["pointer"].startswith("/provenance")


def test_schema_refusal_points_at_the_value(world):
    world.alice.give("me", "support")
    answer = world.alice.write("me", "reply_style", "canary-7f3")
    assert answer.outcome == (400, "invalid_value")
    assert answer.json["errors"][0]["pointer"] == "/value"
    assert b"canary" not in answer.content
