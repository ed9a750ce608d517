"""What a schema decides, and that no schema and no value can hang or crash the process."""

import json
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preferences.schemas import MAX_EVALUATIONS, check_default, compile_schema
from tenants.exceptions import ValidationError


def fits(schema: Any, value: Any) -> bool:
    return not compile_schema(json.dumps(schema)).errors(value)


def nested(levels: int, leaf: Any) -> Any:
    for _ in range(levels):
        leaf = {"c": leaf}
    return leaf


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"const": 2**64 + 1}, 2**64 + 1, True),
        ({"const": 2**64 + 1}, 2**64, False),
        ({"const": 2**64 + 1}, float(2**64), False),
        ({"type": "integer"}, 1.0, True),
        ({"type": "integer"}, 10**400, True),
        ({"type": "integer"}, 1.5, False),
        ({"type": "integer"}, True, False),
        ({"type": "number"}, False, False),
        ({"const": 1}, True, False),
        ({"const": True}, 1, False),
        ({"enum": [0, 1]}, False, False),
        ({"const": 1}, 1.0, True),
        ({"uniqueItems": True}, [1, True], True),
        ({"uniqueItems": True}, [2**70, 2**70 + 1], True),
        ({"maximum": 2**64}, 2**64 + 1, False),
        ({"multipleOf": 0.1}, 0.3, True),
        ({"format": "email"}, "no address", True),
        ({"pattern": "^[a-z]+$"}, "ab\n", False),
        ({"pattern": "^\\d$"}, "٣", False),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "null"}}}, 1, False),
        ({"$ref": "#x", "$defs": {"a": {"$anchor": "x", "type": "null"}}}, None, True),
        ({"$id": "https://a.example/s", "$ref": "https://a.example/s#/$defs/a",
          "$defs": {"a": {"type": "null"}}}, 1, False),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "minLength": 2}, "é", False),
        ({"properties": {"default": {"type": "null"}}}, {"default": 1}, False),
        ({"properties": {"$id": {"type": "null"}}}, {"$id": 1}, False),
        ({"dependencies": {"a": ["b"], "b": {"required": ["c"]}}}, {"a": 1}, False),
        (True, 1, True),
        (False, 1, False),
    ],
)  # fmt: skip
def test_what_fits(schema: Any, value: Any, expected: bool) -> None:
    assert fits(schema, value) is expected


def test_errors_name_the_part_and_not_the_value() -> None:
    schema = compile_schema(
        '{"properties": {"a/b": {"enum": ["x"]}, "n": {"items": {"type": "number"}}},'
        ' "required": ["q"], "additionalProperties": {"not": {}}, "propertyNames": {"maxLength": 6}}'
    )
    errors = schema.errors({"a/b": "SECRET", "n": [1, "SECRET"], "zz": "SECRET", "longname": []})
    assert {e.pointer for e in errors} >= {"/value", "/value/a~1b", "/value/n/1", "/value/zz"}
    assert {e.code for e in errors} == {"invalid_value"}
    assert not any("SECRET" in e.detail for e in errors)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"}, {"enum": ["x"]}, {"const": "x"}, {"pattern": "x"}, {"maxLength": 1},
        {"minLength": 99}, {"not": {}}, {"anyOf": [{"type": "null"}, {"const": 1}]},
        {"oneOf": [True, True]}, {"contains": False}, {"minItems": 9}, {"uniqueItems": True},
        {"items": {"const": 1}}, {"minimum": 10**20}, {"multipleOf": 7}, {"minProperties": 9},
        {"unevaluatedItems": False}, {"dependentRequired": {"k": ["y"]}}, {"items": False},
        {"patternProperties": {"k": False}}, {"unevaluatedProperties": {"const": 1}}, False,
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "value", ["SECRET", ["SECRET", "SECRET"], {"k": "SECRET"}, 5318008, {"k": [5318008]}]
)
def test_no_value_in_any_message(schema: Any, value: Any) -> None:
    for error in compile_schema(json.dumps(schema)).errors(value):
        assert "SECRET" not in error.detail
        assert "5318008" not in error.detail


def test_messages_are_bounded() -> None:
    schema = compile_schema('{"items": {"type": "null"}}')
    assert len(schema.errors(list(range(10_000)))) == 20
    [error] = compile_schema(json.dumps({"enum": list(range(5000))})).errors("x")
    assert len(error.detail) <= 301


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ("3", "/schema"),
        ('"x"', "/schema"),
        ("null", "/schema"),
        ("{", "/schema"),
        ('{"type": "strin"}', "/schema/type"),
        ('{"properties": {"a": {"minLength": -1}}}', "/schema/properties/a/minLength"),
        ('{"$schema": "http://json-schema.org/draft-07/schema#"}', "/schema/$schema"),
        ('{"items": {"$id": "https://a.example/x"}}', "/schema/items/$id"),
        ('{"properties": {"const": {"$id": "x"}}}', "/schema/properties/const/$id"),
        ('{"$ref": "https://a.example/x"}', "/schema/$ref"),
        ('{"$ref": "file:///etc/passwd"}', "/schema/$ref"),
        ('{"$ref": "other.json"}', "/schema/$ref"),
        ('{"$ref": "https://json-schema.org/draft/2020-12/schema"}', "/schema/$ref"),
        ('{"$ref": "#/$defs/none"}', "/schema/$ref"),
        ('{"$ref": "#none"}', "/schema/$ref"),
        ('{"$ref": "#/enum", "enum": [1]}', "/schema/$ref"),
        ('{"items": {"pattern": "(?=a)b"}}', "/schema/items/pattern"),
        ('{"pattern": "(a)\\\\1"}', "/schema/pattern"),
        ('{"pattern": "("}', "/schema/pattern"),
        ('{"pattern": "((a{100}){100}){100}"}', "/schema/pattern"),
        ('{"pattern": "a{4000000000}"}', "/schema/pattern"),
        ('{"patternProperties": {"(?!a)": true}}', "/schema/patternProperties/(?!a)"),
        (json.dumps({"description": "x" * 70_000}), "/schema"),
        (json.dumps(nested(65, {})).replace('"c"', '"not"'), "/schema"),
        (json.dumps({"allOf": [{"pattern": f"a{i}"} for i in range(101)]}), "/schema"),
    ],
)
def test_schemas_refused(schema: str, pointer: str) -> None:
    with pytest.raises(ValidationError) as refused:
        compile_schema(schema)
    assert refused.value.errors[0].pointer.startswith(pointer)


def doubling(levels: int, apply: str = "allOf") -> dict[str, Any]:
    defs: dict[str, Any] = {
        f"d{i}": {apply: [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": defs | {f"d{levels}": {"type": "string"}}}


HOSTILE = {
    "itself": {"$ref": "#"},
    "itself, dynamically": {"$dynamicAnchor": "a", "$dynamicRef": "#a"},
    "each other": {
        "$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
    },
    "each other, unused": {
        "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}},
    },
    "itself, by an older keyword": {"dependencies": {"c": {"$ref": "#"}, "d": ["c"]}},
    "doubling": doubling(40),
    "doubling, anyOf": doubling(40, "anyOf"),
    "doubling by depth of value": {
        "properties": {"c": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}},
    },
    "doubling by two keywords": {
        "properties": {"c": {"$ref": "#"}}, "patternProperties": {"c": {"$ref": "#"}},
    },
    "doubling by unevaluated": {
        "anyOf": [{"properties": {"c": {"$ref": "#"}}}], "unevaluatedProperties": False,
    },
    "long chain": {
        "$ref": "#/$defs/d0",
        "$defs": {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(1400)} | {"d1400": True},
    },
    "long chain at each depth": {
        "$ref": "#/$defs/d0",
        "$defs": {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(200)}
        | {"d200": {"properties": {"c": {"$ref": "#"}}}},
    },
}  # fmt: skip


@pytest.mark.parametrize("schema", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_schemas_are_refused_at_once(schema: Any) -> None:
    started = time.process_time()
    with pytest.raises(ValidationError) as refused:
        compile_schema(json.dumps(schema))
    assert refused.value.errors[0].pointer.startswith("/schema")
    assert time.process_time() - started < 2


def test_many_large_subschemas_are_judged_at_once() -> None:
    started = time.process_time()
    properties = {f"p{i}": {"items": {"$ref": "#"}} for i in range(1500)}
    assert fits({"type": "object", "properties": properties}, {})
    assert time.process_time() - started < 5


def test_the_largest_schema_allowed_is_quick_on_the_largest_value() -> None:
    some = (MAX_EVALUATIONS - 2) // 4
    schema = {"items": {"allOf": [{"anyOf": [{"const": 0}, {"type": "integer"}]}] * some}}
    value = [1] * 32_000
    started = time.process_time()
    assert fits(schema, value)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"enum": [[i + 0.5] for i in range(5000)]}}, [[0.1]] * 10_000),
        ({"items": {"required": [str(i) for i in range(5000)]}}, [{}] * 20_000),
        ({"items": {"allOf": [{"type": "null"}] * 900}}, [1] * 30_000),
        ({"properties": {"c": {"$ref": "#"}}, "allOf": [{"type": "null"}] * 900},
         nested(64, "x" * 60_000)),
    ],
)  # fmt: skip
def test_telling_what_is_wrong_is_bounded(schema: Any, value: Any) -> None:
    started = time.process_time()
    [error] = compile_schema(json.dumps(schema, separators=(",", ":"))).errors(value)
    assert error.pointer == "/value"
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "1[01]{2000}[23]"},
        {"pattern": "(?:1[01]{1,90}){40}[23]"},
        {"$defs": {"p": {"pattern": "1[01]{500}[23]"}}, "allOf": [{"$ref": "#/$defs/p"}] * 9},
        {"patternProperties": {f"1[01]{{{i}}}[23]": True for i in range(450, 540)}},
    ],
)
def test_patterns_that_are_linear_but_dear_are_refused(schema: Any) -> None:
    with pytest.raises(ValidationError):
        compile_schema(json.dumps(schema))


@pytest.mark.parametrize(
    "pattern",
    [
        "^[\\p{L}\\p{M} .'-]+$", "^\\p{Lu}\\p{L}*$", "^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$",
        "^[a-z0-9-]{1,63}(\\.[a-z0-9-]{1,63}){0,9}$", "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
    ],
)  # fmt: skip
def test_ordinary_patterns_are_taken(pattern: str) -> None:
    compile_schema(json.dumps({"properties": {"a": {"pattern": pattern}}}))


def test_the_dearest_pattern_allowed_is_quick_on_the_largest_string() -> None:
    started = time.process_time()
    assert not fits({"pattern": "1[01]{1700}[23]"}, "0110100110010110" * 4000)
    assert time.process_time() - started < 5


def test_patterns_are_linear() -> None:
    started = time.process_time()
    assert not fits({"pattern": "^(a|a)*(a*)*b$"}, "a" * 60_000)
    assert time.process_time() - started < 2


def test_recursive_schemas_that_descend_are_fine_on_a_small_stack() -> None:
    tree = {
        "$defs": {"tree": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]},
                  "node": {"type": "object", "additionalProperties": False,
                           "properties": {"c": {"$ref": "#/$defs/tree"},
                                          "d": {"$ref": "#/$defs/tree"}}}},
        "$ref": "#/$defs/tree",
    }  # fmt: skip
    # As deep as the bound lets subschemas stand, for the deepest value.
    links = 2
    chain = {
        "$ref": "#/$defs/d0",
        "$defs": {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}]} for i in range(links)}
        | {f"d{links}": {"properties": {"c": {"$ref": "#"}}, "type": ["object", "null"]}},
    }
    results: list[bool] = []

    def run() -> None:
        for schema in (tree, chain):
            results.append(fits(schema, nested(64, None)))
            results.append(fits(schema, nested(64, "x")))

    before = threading.stack_size(1024 * 1024)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert results == [True, False, True, False]


def test_default() -> None:
    schema = compile_schema('{"properties": {"a": {"type": "null"}}}')
    check_default(schema, {"a": None})
    with pytest.raises(ValidationError) as refused:
        check_default(schema, {"a": 1})
    assert [(e.pointer, e.code) for e in refused.value.errors] == [
        ("/default/a", "validation_error")
    ]


def test_compiled_once() -> None:
    assert compile_schema('{"const":1}') is compile_schema('{"const":1}')


@given(st.recursive(
    st.sampled_from([True, {"type": "string"}, {"$ref": "#"}, {"$ref": "#/$defs/a"}, {"const": 1}]),
    lambda s: st.fixed_dictionaries({}, optional={
        "allOf": st.lists(s, min_size=1, max_size=2), "anyOf": st.lists(s, min_size=1, max_size=2),
        "not": s, "items": s, "properties": st.fixed_dictionaries({"c": s}), "contains": s,
        "additionalProperties": s, "unevaluatedProperties": s, "$defs": st.fixed_dictionaries({"a": s}),
    }), max_leaves=8,
))  # fmt: skip
def test_any_schema_is_refused_or_quick(schema: Any) -> None:
    try:
        compiled = compile_schema(json.dumps(schema))
    except ValidationError:
        return
    started = time.process_time()
    for value in (nested(64, 1), [[[["x"]]]], {"c": {"d": ["x"]}}):
        compiled.errors(value)
    assert time.process_time() - started < 2
