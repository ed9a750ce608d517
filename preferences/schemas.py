"""JSON Schema 2020-12 for stored values, within bounds that no schema and no value can escape."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import NoReturn
from urllib.parse import unquote

import jsonschema_rs

from tenants.documents import MAX_DEPTH, JSONValue, canonical, check_depth, escape, read
from tenants.exceptions import BadRequest, FieldError, ValidationError

#: Bytes of a schema in UTF-8.
MAX_SCHEMA_SIZE = 64 * 1024
#: How many times one part of a value may be looked at, by whatever branches and references.
MAX_EVALUATIONS = 1000
#: How many subschemas deep a validation may stand: the validator recurses on the native stack.
MAX_CHAIN = 500
#: Patterns of one schema, and the bytes each may take when compiled.
MAX_PATTERNS = 100
MAX_PATTERN_MEMORY = 128 * 1024
#: Bytes of the cache that a pattern fills while it matches.
MAX_DFA_MEMORY = 1024 * 1024
#: Errors told about one value.
MAX_ERRORS = 20
#: What telling them may cost: evaluations of a part, times the size and the depth of the value.
#: The validator collects all errors first, each with a copy of what was and what could be.
MAX_TELLING = 500_000

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MESSAGE_SHOWN = 300
_CACHED_SCHEMAS = 256
#: Keywords that cost by their length, and the characters that cost as much as one subschema.
_BY_LENGTH = ("const", "enum", "required", "dependentRequired", "dependencies")
_LENGTH_SHARE = 64
#: The bytes of a compiled pattern that cost as much as one subschema. Linear time is linear in
#: the pattern too: 128 KiB of it take a second for a string of 64 KiB (measured).
_PATTERN_SHARE = 256
_SMALLEST_PATTERN = 1024

# Keywords by how they apply subschemas. In place: to the same part of the value.
_IN_PLACE = ("not", "if", "then", "else")
_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
# `dependencies` is older, but the validator still applies it; lists of names stand there too.
_IN_PLACE_MAPS = ("dependentSchemas", "dependencies")
# To nothing, until something refers there. contentSchema only annotates.
_ELSEWHERE = ("contentSchema",)
_ELSEWHERE_MAPS = ("$defs", "definitions")
# What these hold is data, not schemas.
_DATA = frozenset({"const", "enum", "default", "examples"})
_MAPS = frozenset({*_IN_PLACE_MAPS, *_ELSEWHERE_MAPS, "properties", "patternProperties"})

#: Where a subschema stands in its document: the tokens of its JSON pointer.
type _Place = tuple[str | int, ...]

_PATTERN_REFUSED = (
    "The pattern cannot be matched in linear time, or is too large: no look-around, no"
    " back-reference, no large repeat count; maxLength bounds a length better."
)


@dataclass(frozen=True, slots=True)
class Schema:
    """A compiled schema. Build it with `compile_schema`."""

    text: str
    _validator: jsonschema_rs.Draft202012Validator = field(repr=False, compare=False)
    #: How many times one part of a value may be looked at.
    _evaluations: int = field(repr=False, compare=False)

    def errors(self, value: JSONValue) -> list[FieldError]:
        """
        Return what is wrong with a value: empty where it fits, else up to 20 errors.

        Where schema and value are so large that telling would cost too much, one error says so.

        Args:
            value: as read by `tenants.documents.read`; at most 64 levels deep.

        The details name rules and members, never what the value holds.
        """
        return _errors(self, value, "/value", "invalid_value")


@lru_cache(maxsize=_CACHED_SCHEMAS)
def compile_schema(text: str) -> Schema:
    """
    Return the schema that `text` holds, ready to use.

    `format` and the `content…` keywords annotate and refuse nothing. A schema is one document:
    references lead within it (``#``, ``#/$defs/x``, ``#anchor``), `$id` stands at its root only.

    Args:
        text: JSON text of an object or a boolean, at most 64 KiB of UTF-8.

    Raises:
        ValidationError: it is no schema of JSON Schema 2020-12, leads out of itself, or could
            cost too much: a pattern that is not linear, a reference back to itself on the same
            part of a value, more than 1,000 evaluations of one part, or
            more than 500 subschemas deep in one another. The pointer leads to the
            part, below ``/schema``.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_SCHEMA_SIZE:
        raise _refusal(f"A schema takes at most {MAX_SCHEMA_SIZE // 1024} KiB.")
    try:
        document = read(text.encode("utf-8", "surrogatepass"))
        check_depth(document, pointer="/schema")
    except BadRequest as error:
        raise _refusal(error.detail) from None
    if not isinstance(document, dict | bool):
        raise _refusal("A schema is an object or a boolean.")
    _check_dialect(document)
    # Before the bounds: they are computed over what is known to be a schema.
    _check_against_dialect(document)
    evaluations = _check_bounds(document)
    try:
        validator = jsonschema_rs.Draft202012Validator(
            document,
            validate_formats=False,
            mask="The value",
            retriever=_refuse_retrieval,
            pattern_options=_pattern_options(MAX_PATTERN_MEMORY),
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        raise _refusal_of(error) from None
    return Schema(text, validator, evaluations)


def check_default(schema: Schema, value: JSONValue) -> None:
    """
    Check that a default fits the schema it stands beside.

    Raises:
        ValidationError: it does not; the pointers lead below ``/default``.
    """
    errors = _errors(schema, value, "/default", ValidationError.code)
    if errors:
        raise ValidationError("The default does not fit the schema.", errors=errors)


def _errors(schema: Schema, value: JSONValue, pointer: str, code: str) -> list[FieldError]:
    validator = schema._validator
    if validator.is_valid(value):  # the common case, without building messages
        return []
    if schema._evaluations * len(canonical(value)) * _depth(value) > MAX_TELLING:
        detail = "The value does not fit its schema; it is too large to say where."
        return [FieldError(pointer=pointer, code=code, detail=detail)]
    return [
        FieldError(
            pointer=pointer + _pointer(error.instance_path),
            code=code,
            detail=_cut(error.message),
        )
        for error in islice(validator.iter_errors(value), MAX_ERRORS)
    ]


def _depth(value: JSONValue) -> int:
    """Return how many levels a value has; a scalar has one."""
    depth, level = 1, [value]
    while level := [
        child
        for part in level
        if isinstance(part, dict | list)
        for child in (part.values() if isinstance(part, dict) else part)
    ]:
        depth += 1
    return depth


def _cut(message: str) -> str:
    return message if len(message) <= _MESSAGE_SHOWN else f"{message[:_MESSAGE_SHOWN]}…"


def _pointer(path: Sequence[str | int]) -> str:
    return "".join(f"/{escape(token)}" for token in path)


def _refusal(detail: str, path: Sequence[str | int] = ()) -> ValidationError:
    return ValidationError(detail, pointer=f"/schema{_pointer(path)}")


def _refusal_of(error: Exception) -> ValidationError:
    if not isinstance(error, jsonschema_rs.ValidationError):
        return _refusal(_cut(str(error).partition("\n")[0]))
    place = list(error.instance_path)
    # The library's own word, that it is not a "regex", helps nobody whose pattern works elsewhere.
    if "pattern" in place[-1:] or "patternProperties" in place[-2:]:
        return _refusal(_PATTERN_REFUSED, place)
    return _refusal(_cut(error.message), place)


def _refuse_retrieval(uri: str) -> NoReturn:
    raise ValueError("A schema refers to nothing outside itself.")


def _pattern_options(memory: int) -> jsonschema_rs.RegexOptions:
    return jsonschema_rs.RegexOptions(size_limit=memory, dfa_size_limit=MAX_DFA_MEMORY)


def _cost_of_pattern(pattern: str, place: _Place) -> int:
    """Return how many subschemas a pattern is as dear as, by the memory it compiles in."""
    memory = _SMALLEST_PATTERN
    while memory <= MAX_PATTERN_MEMORY:
        try:
            jsonschema_rs.Draft202012Validator(
                {"pattern": pattern}, pattern_options=_pattern_options(memory)
            )
        except ValueError:  # that it is a pattern is known; it needs more
            memory *= 2
        else:
            return memory // _PATTERN_SHARE
    raise _refusal(_PATTERN_REFUSED, place)


def _objects(document: JSONValue) -> Iterator[tuple[_Place, dict[str, JSONValue]]]:
    """Yield each object that may be a schema, with its place: what holds data is passed over."""
    parts: list[tuple[_Place, JSONValue, bool]] = [((), document, False)]
    while parts:
        place, part, is_map = parts.pop()
        if isinstance(part, list):
            parts.extend(((*place, index), child, False) for index, child in enumerate(part))
        elif isinstance(part, dict):
            if not is_map:
                yield place, part
            # Below a map, names are a host's own: a property may be called "default".
            parts.extend(
                ((*place, name), child, not is_map and name in _MAPS)
                for name, child in part.items()
                if is_map or name not in _DATA
            )


def _check_dialect(document: JSONValue) -> None:
    """Refuse other dialects, and identifiers below the root: a schema is one document."""
    for place, part in _objects(document):
        dialect = part.get("$schema")
        if isinstance(dialect, str) and (place or dialect.removesuffix("#") != _DIALECT):
            raise _refusal(
                f"The only dialect is {_DIALECT}, named at the root.", (*place, "$schema")
            )
        if place and "$id" in part:
            raise _refusal("Only the root of a schema may have an $id.", (*place, "$id"))


def _check_against_dialect(document: dict[str, JSONValue] | bool) -> None:
    try:
        jsonschema_rs.meta.validate(document)
    except (jsonschema_rs.ValidationError, ValueError) as error:
        raise _refusal_of(error) from None


@dataclass(slots=True)
class _Node:
    """One subschema: which others it applies, where, and how dear it is by itself."""

    path: _Place
    cost: int = 1
    in_place: list[int] = field(default_factory=list)
    #: Groups of groups: of each inner group one part of the value meets one subschema at most;
    #: the first list is for members of objects, the second for items of lists.
    members: list[list[int]] = field(default_factory=list)
    items: list[list[int]] = field(default_factory=list)


class _Graph:
    """The subschemas of a document and how they apply one another."""

    def __init__(self, document: JSONValue) -> None:
        self.document = document
        self.nodes: list[_Node] = []
        self.patterns = 0
        self._numbers: dict[_Place, int] = {}
        self._anchors: dict[str, _Place] = {}
        self._pending: list[tuple[int, JSONValue]] = []
        self._find_anchors()
        self.number(())
        while self._pending:
            number, schema = self._pending.pop()
            if isinstance(schema, dict):
                self._connect(self.nodes[number], schema)

    def number(self, path: _Place, source: Sequence[str | int] = ()) -> int:
        """Return the number of the subschema at `path`, adding it where it is new."""
        known = self._numbers.get(path)
        if known is not None:
            return known
        schema = self._at(path, source)
        self._numbers[path] = len(self.nodes)
        self.nodes.append(_Node(path))
        self._pending.append((len(self.nodes) - 1, schema))
        return len(self.nodes) - 1

    def _at(self, path: _Place, source: Sequence[str | int]) -> JSONValue:
        part = self.document
        for token in path:
            if isinstance(part, dict) and isinstance(token, str) and token in part:
                part = part[token]
            elif isinstance(part, list) and str(token).isascii() and str(token).isdecimal():
                if int(token) >= len(part):
                    raise _refusal("The reference leads nowhere.", source)
                part = part[int(token)]
            else:
                raise _refusal("The reference leads nowhere.", source)
        if not isinstance(part, dict | bool):
            raise _refusal("The reference leads to no schema.", source)
        return part

    def _connect(self, node: _Node, schema: Mapping[str, JSONValue]) -> None:
        if node.path and "$id" in schema:  # reached by a reference into data
            raise _refusal("Only the root of a schema may have an $id.", (*node.path, "$id"))

        def one(name: str) -> list[int]:
            return [self.number((*node.path, name))] if name in schema else []

        def all_of(name: str) -> list[int]:
            held = schema.get(name)
            tokens: Sequence[str | int] = ()
            if isinstance(held, dict):
                tokens = [token for token, part in held.items() if isinstance(part, dict | bool)]
            elif isinstance(held, list):
                tokens = range(len(held))
            return [self.number((*node.path, name, token)) for token in tokens]

        for name in ("$ref", "$dynamicRef"):
            if name in schema:
                node.in_place.append(self._referred((*node.path, name), schema[name]))
        for name in _IN_PLACE:
            node.in_place += one(name)
        for name in (*_IN_PLACE_LISTS, *_IN_PLACE_MAPS):
            node.in_place += all_of(name)
        for name in _ELSEWHERE:
            one(name)
        for name in _ELSEWHERE_MAPS:
            all_of(name)
        named, patterns, others = (
            all_of("properties"), all_of("patternProperties"), one("additionalProperties"),
        )  # fmt: skip
        # A member meets one of `properties` at most, but every pattern it matches.
        node.members = [
            [*named, *others],
            *([pattern] for pattern in patterns),
            one("propertyNames"),
            one("unevaluatedProperties"),
        ]
        node.items = [
            [*all_of("prefixItems"), *one("items")],
            one("contains"),
            one("unevaluatedItems"),
        ]
        self.patterns += len(patterns) + ("pattern" in schema)
        if self.patterns > MAX_PATTERNS:
            raise _refusal(f"A schema has at most {MAX_PATTERNS} patterns.", node.path)
        node.cost += sum(
            len(canonical(schema[name])) // _LENGTH_SHARE for name in _BY_LENGTH if name in schema
        )
        if isinstance(schema.get("pattern"), str):
            node.cost += _cost_of_pattern(str(schema["pattern"]), (*node.path, "pattern"))
        held = schema.get("patternProperties")
        for pattern in held if isinstance(held, dict) else ():
            node.cost += _cost_of_pattern(pattern, (*node.path, "patternProperties", pattern))
        if "unevaluatedProperties" in schema or "unevaluatedItems" in schema:
            # The validator asks each branch once more, for what it has looked at.
            node.in_place *= 2

    def _referred(self, source: _Place, reference: JSONValue) -> int:
        text = str(reference)
        root = self.document.get("$id") if isinstance(self.document, dict) else None
        if isinstance(root, str) and root:
            text = text.removeprefix(root.removesuffix("#"))
        if text and not text.startswith("#"):
            raise _refusal("A schema refers to nothing outside itself: begin with #.", source)
        fragment = unquote(text[1:])
        if not fragment:
            return self.number((), source)
        if fragment.startswith("/"):
            tokens = fragment[1:].split("/")
            return self.number(
                self._path(tuple(token.replace("~1", "/").replace("~0", "~") for token in tokens)),
                source,
            )
        if fragment not in self._anchors:
            raise _refusal("The reference leads to no anchor.", source)
        return self.number(self._anchors[fragment], source)

    def _path(self, tokens: tuple[str, ...]) -> _Place:
        """Return a pointer's tokens as a path: those into lists as numbers, so that paths agree."""
        path: list[str | int] = []
        part = self.document
        for token in tokens:
            if isinstance(part, list) and re.fullmatch("0|[1-9][0-9]{0,8}", token):
                path.append(int(token))
                part = part[int(token)] if int(token) < len(part) else None
            else:
                path.append(token)
                part = part.get(token) if isinstance(part, dict) else None
        return tuple(path)

    def _find_anchors(self) -> None:
        for place, part in _objects(self.document):
            for name in ("$anchor", "$dynamicAnchor"):
                anchor = part.get(name)
                if isinstance(anchor, str) and self._anchors.setdefault(anchor, place) != place:
                    raise _refusal("The anchor stands twice.", (*place, name))


def _check_bounds(document: JSONValue) -> int:
    """
    Return how many evaluations one part of a value may meet; refuse what could cost too much.

    Counted per subschema and depth of value, from the leaves up: how many evaluations the part
    that is looked at most can meet, and how many subschemas deep the longest chain goes. Both are
    upper bounds, so they may refuse what would have been harmless, never the other way round.
    """
    graph = _Graph(document)
    nodes = graph.nodes
    order = _in_place_order(nodes)
    # Evaluations of one part: at this depth below the part that a subschema is applied to.
    seen_below = [0] * len(nodes)
    chain_below = [0] * len(nodes)
    most = 1
    for depth in range(MAX_DEPTH + 1):
        seen, chain = [0] * len(nodes), [0] * len(nodes)
        for number in order:
            node = nodes[number]
            here = node.cost if depth == 0 else 0
            longest = 0
            if depth:
                here += max(
                    sum(max((seen_below[n] for n in group), default=0) for group in groups)
                    for groups in (node.members, node.items)
                )
                for groups in (node.members, node.items):
                    for group in groups:
                        longest = max(longest, *(chain_below[n] for n in group), 0)
            for applied in node.in_place:
                here += seen[applied]
                longest = max(longest, chain[applied])
            if here > MAX_EVALUATIONS:
                raise _refusal(
                    f"One part of a value could be evaluated more than {MAX_EVALUATIONS:,} times.",
                    node.path,
                )
            if longest >= MAX_CHAIN:
                raise _refusal(
                    f"Subschemas could stand more than {MAX_CHAIN:,} deep in one another.",
                    node.path,
                )
            seen[number], chain[number] = here, longest + 1
        if seen == seen_below and chain == chain_below:
            break
        most = max(most, seen[0])
        seen_below, chain_below = seen, chain
    return most


def _in_place_order(nodes: Sequence[_Node]) -> list[int]:
    """Return the nodes so that each comes after those it applies to the same part of a value."""
    order: list[int] = []
    state = [0] * len(nodes)  # 0 new, 1 open, 2 done
    for start in range(len(nodes)):
        stack = [(start, iter(nodes[start].in_place))] if not state[start] else []
        state[start] = state[start] or 1
        while stack:
            number, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                state[number] = 2
                order.append(number)
                stack.pop()
            elif state[following] == 1:
                raise _refusal(
                    "The schema applies itself to the same part of a value without end.",
                    nodes[number].path,
                )
            elif state[following] == 0:
                state[following] = 1
                stack.append((following, iter(nodes[following].in_place)))
    return order
