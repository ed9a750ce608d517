"""
A store for LangGraph (extra ``langgraph``): what its agents remember, under this service's rules.

Whose data it is stands in the caller and in the scope that the product chose. A namespace divides
that one scope and cannot lead out of it.
"""

import asyncio
import json
import math
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from asgiref.sync import sync_to_async
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from agents.adapters.keys import decode, encode
from agents.adapters.scopes import settle_scope
from preferences.ranking import score_entries
from preferences.records import Record
from preferences.selectors import get_preference, list_preferences
from preferences.services import delete_preference, set_preference
from tenants.callers import Caller
from tenants.exceptions import NotFound
from tenants.scopes import Scope
from tenants.units import unit_of_work

#: Addresses whose revision one store remembers.
MOST_SEEN = 10_000
_WORD = re.compile(r"[^\W_]+")
_FILTER_KEY = re.compile(r"\w[\w .:@/+-]*")

type Namespace = tuple[str, ...]


class PreferenceStore(BaseStore):
    """
    A `BaseStore` in one scope, for one caller: make one for each run, not one for all.

    It remembers the revision of what it has shown or written, and writes on top of that revision alone:
    a change that somebody else made meanwhile is `StaleRevision`, never lost. What it has not
    seen, it writes over, as LangGraph's own stores do.

    A batch is one transaction: a refusal of one operation undoes all. Reading extends no deadline.
    There is no vector search, and `index` is passed over: a `query` puts what holds more of its words
    first, and leaves nothing out.

    Args:
        caller: who asks; its credential says in which tenant.
        scope: where everything is stored; the caller's own person, if left out.
        ttl: only `default_ttl` (minutes) has an effect.

    Raises:
        PermissionDenied: no scope was given, and the caller stands for no person; or the scope is
            that of a person whom the caller does not act for. Stewards look with a reason, not here.
    """

    supports_ttl = True

    def __init__(
        self, caller: Caller, *, scope: Scope | None = None, ttl: TTLConfig | None = None
    ) -> None:
        self.caller = caller
        self.scope = settle_scope(caller, scope)
        self.ttl_config = ttl
        self._seen: OrderedDict[str, tuple[str, datetime | None]] = OrderedDict()
        self._lock = Lock()

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Run the operations in their order, as one transaction."""
        _refuse_in_event_loop()
        asked = list(ops)
        for one in asked:
            # All of them before anything is stored.
            validate_op_namespace(one)
        # What was seen counts only once it is committed.
        seen: list[tuple[str, Record | None]] = []
        subject = self.scope.subject
        unit = unit_of_work(
            tenant_id=self.caller.tenant_id, actor=self.caller.actor,
            subjects=() if subject is None else (subject,),
        )  # fmt: skip
        # One at a time: what a store has seen is the same for all threads that share it.
        with self._lock:
            with unit if _needs_unit(asked) else nullcontext():
                results = [self._run(one, seen) for one in asked]
            for key, record in seen:
                self._remember(key, record)
        return results

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        """Do the same from an event loop, on the thread that Django keeps for it."""
        results: list[Any] = await sync_to_async(self.batch)(list(ops))
        return results

    def _run(self, one: Any, seen: list[tuple[str, Record | None]]) -> Any:
        match one:
            case GetOp():
                return self._get(one, seen)
            case PutOp(value=None):
                return self._delete(one, seen)
            case PutOp():
                return self._put(one, seen)
            case SearchOp():
                return self._search(one, seen)
            case ListNamespacesOp():
                return self._list(one)
        raise ValueError(f"There is no such operation: {type(one)}")

    def _get(self, one: Any, seen: list[tuple[str, Record | None]]) -> Item | None:
        key = _key_of(one.namespace, one.key)
        try:
            record = get_preference(caller=self.caller, scope=self.scope, key=key)
        except NotFound:
            seen.append((key, None))
            return None
        seen.append((key, record))
        if not isinstance(record.value, dict):
            return None
        return Item(**_facts(record, tuple(one.namespace), one.key))

    def _put(self, one: Any, seen: list[tuple[str, Record | None]]) -> None:
        key = _key_of(one.namespace, one.key)
        revision = self._revision_of(key, seen)
        outcome = set_preference(
            caller=self.caller, scope=self.scope, key=key, value=dict(one.value), revision=revision,
            upsert=revision is None,
            ttl_seconds=None if one.ttl is None else max(1, math.ceil(one.ttl * 60)),
        )  # fmt: skip
        seen.append((key, outcome.record))

    def _delete(self, one: Any, seen: list[tuple[str, Record | None]]) -> None:
        key = _key_of(one.namespace, one.key)
        with suppress(NotFound):
            # Whatever stands there: forgetting waits for no revision.
            delete_preference(caller=self.caller, scope=self.scope, key=key)
        seen.append((key, None))

    def _search(self, one: Any, seen: list[tuple[str, Record | None]]) -> list[SearchItem]:
        prefix = tuple(one.namespace_prefix)
        conditions = _read_filter(one.filter or {})
        found = [
            (record, namespace, name)
            for record, namespace, name in self._records(prefix)
            if all(fits(record.value) for fits in conditions)
        ]
        found.sort(key=lambda each: (each[0].updated_at, each[0].id), reverse=True)
        scores = _score([record for record, _, _ in found], one.query)
        # Stable: what fits as well stands newest first.
        order = sorted(range(len(found)), key=lambda index: -(scores[index] or 0))
        page = [(*found[index], scores[index]) for index in order][one.offset :][: one.limit]
        seen.extend((record.key, record) for record, *_ in page)
        return [
            SearchItem(**_facts(record, namespace, name), score=score)
            for record, namespace, name, score in page
        ]

    def _list(self, one: Any) -> list[Namespace]:
        conditions = one.match_conditions or ()
        namespaces = {
            namespace if one.max_depth is None else namespace[: one.max_depth]
            for _, namespace, _ in self._records(())
            if all(_matches(condition, namespace) for condition in conditions)
        }
        return sorted(namespaces)[one.offset : one.offset + one.limit]

    def _records(self, prefix: Namespace) -> list[tuple[Record, Namespace, str]]:
        """Return what may be read now below a namespace; other keys of the scope are none of it."""
        records, _ = list_preferences(
            caller=self.caller, scopes=[self.scope], key_prefix=_joined(prefix)
        )
        found = []
        for record in records:
            place = _place_of(record.key)
            if place is None or not isinstance(record.value, dict):
                continue
            if place[0][: len(prefix)] == prefix:
                found.append((record, *place))
        return found

    def _revision_of(self, key: str, seen: Sequence[tuple[str, Record | None]]) -> str | None:
        """Return the revision that this store saw last and that has not run out since."""
        for known, record in reversed(seen):
            if known == key:
                return None if record is None else record.revision
        revision, expires_at = self._seen.get(key, (None, None))
        is_over = expires_at is not None and expires_at <= datetime.now(UTC)
        return None if is_over else revision

    def _remember(self, key: str, record: Record | None) -> None:
        self._seen.pop(key, None)
        if record is not None:
            self._seen[key] = (record.revision, record.expires_at)
        while len(self._seen) > MOST_SEEN:
            self._seen.popitem(last=False)


def _refuse_in_event_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise asyncio.InvalidStateError(
        "A synchronous call would hold up the event loop: await the one whose name begins with a."
    )


def _needs_unit(asked: Sequence[Any]) -> bool:
    """Whether several statements decide together. A single read, write or delete is one already."""
    return len(asked) > 1 or any(isinstance(one, SearchOp | ListNamespacesOp) for one in asked)


# Addresses -----------------------------------------------------------------------------------


def _joined(namespace: Namespace) -> str:
    return ".".join(encode(label, reserved=".:") for label in namespace)


def _key_of(namespace: Sequence[str], name: str) -> str:
    return f"{_joined(tuple(namespace))}:{encode(str(name))}"


def _place_of(key: str) -> tuple[Namespace, str] | None:
    """Return namespace and name of a key of this store; None for what is no such key."""
    labels, separator, name = key.partition(":")
    if not separator:
        return None
    try:
        place = tuple(decode(label) for label in labels.split(".")), decode(name)
    except ValueError:
        return None
    return place if _key_of(*place) == key else None


def _matches(condition: MatchCondition, namespace: Namespace) -> bool:
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return not path or all(want in ("*", have) for want, have in zip(path, part, strict=True))


def _facts(record: Record, namespace: Namespace, name: str) -> dict[str, Any]:
    return {
        "value": json.loads(record.value_text),
        "key": name,
        "namespace": namespace,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }


def _score(records: Sequence[Record], query: str | None) -> list[float | None]:
    """Return the share of the query's words that each record holds; None without a query."""
    if query is None:
        return [None] * len(records)
    entries = [
        {
            "key": record.key, "value": record.value, "seen_count": record.seen_count,
            "updated_at": record.updated_at,
        }
        for record in records
    ]  # fmt: skip
    scores = score_entries(
        entries, terms=_WORD.findall(query), now=datetime.now(UTC), weights={"relevance": 1}
    )
    return [score.relevance for score in scores]


# Filters -------------------------------------------------------------------------------------

type Condition = Callable[[Any], bool]

_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda have, want: _is_same(have, want),
    "$ne": lambda have, want: not _is_same(have, want),
    "$gt": lambda have, want: _is_ordered(have, want) and have > want,
    "$gte": lambda have, want: _is_ordered(have, want) and have >= want,
    "$lt": lambda have, want: _is_ordered(have, want) and have < want,
    "$lte": lambda have, want: _is_ordered(have, want) and have <= want,
}


def _read_filter(filters: Mapping[str, Any]) -> list[Condition]:
    """
    Return what a value must fulfil.

    Raises:
        ValueError: a name that is none, or a comparison that nobody knows.
    """
    conditions: list[Condition] = []
    for name, wanted in filters.items():
        if not _FILTER_KEY.fullmatch(name):
            raise ValueError(f"Invalid filter key: {name!r}")
        if isinstance(wanted, dict) and any(str(each).startswith("$") for each in wanted):
            for operator, bound in wanted.items():
                if operator not in _COMPARISONS:
                    raise ValueError(f"Unsupported operator: {operator}")
                conditions.append(_condition(name, _COMPARISONS[operator], bound))
        else:
            conditions.append(_condition(name, _is_same, wanted))
    return conditions


def _condition(name: str, compare: Callable[[Any, Any], bool], wanted: Any) -> Condition:
    return lambda value: compare(_member(value, name), wanted)


def _member(value: Any, path: str) -> Any:
    """Return a member by its name, else by a path of names with dots between; None where none is."""
    if isinstance(value, dict) and path in value:
        return value[path]
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return None
        value = value[name]
    return value


def _is_same(have: Any, want: Any) -> bool:
    # For Python, true is 1.
    return isinstance(have, bool) == isinstance(want, bool) and bool(have == want)


def _is_ordered(have: Any, want: Any) -> bool:
    if isinstance(have, bool) or isinstance(want, bool):
        return False
    return any(isinstance(have, kind) and isinstance(want, kind) for kind in (int | float, str))
