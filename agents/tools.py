"""
The tools as plain functions: a caller and plain arguments in, JSON text out.

Who asks, and in which tenant, is the caller's credential; no argument says it. Every decision is
the services' own, so a tool can do nothing that HTTP would refuse. Knows no protocol.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core import signing
from django.utils.crypto import salted_hmac

from agents.credentials import check_no_credential
from agents.tool_arguments import (
    check_no_reason,
    read_address,
    read_limit,
    read_once,
    read_position,
    read_scope,
)
from agents.tool_schemas import MOST, TOOLS
from preferences.batches import read_operations, run_batch
from preferences.models import Preference
from preferences.places import own_scopes, persons_of
from preferences.requests import read_write
from preferences.searching import Place, check_query, parse_place, search_preferences
from preferences.selectors import get_preference, list_preferences
from preferences.services import delete_preference, put_preference
from preferences.values import check_revision, check_tags
from preferences.views import normalize_prefix, withheld_as_json
from tenants.callers import Caller
from tenants.documents import JSONValue, canonical
from tenants.exceptions import (
    FieldError,
    Forbidden,
    ServiceError,
    ValidationError,
)
from tenants.observation import note_fault
from tenants.problems import as_service_error
from tenants.scopes import Scope, check_key
from tenants.units import record_denied, unit_of_work
from tenants.views import check_members

#: Shows a question to the person; tells whether they agreed. The second text names what it is about:
#: an answer counts for that alone.
type Confirm = Callable[[str, str], bool]

#: One encoder for all, which leaves characters as themselves.
_json = json.JSONEncoder(ensure_ascii=False).encode

#: By code and place, what a part of a request over HTTP is called as an argument.
_ARGUMENTS = {
    ("invalid_revision", "/revision"): "/expected_revision",
    ("validation_error", "/provenance/detail"): "/detail",
    ("validation_error", "/headers/Idempotency-Key"): "/idempotency_key",
    ("invalid_scope", "/query/scope"): "/scope",
    ("validation_error", "/query/q"): "/query",
}


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool gave, or why it refused: one JSON object as text, either way."""

    text: str
    is_error: bool


def answer_tool(
    *, caller: Caller, name: str, arguments: JSONValue, confirm: Confirm | None = None
) -> ToolAnswer:
    """
    Call one tool and return its answer; whatever goes wrong is an answer too.

    A 403 leaves its denied event, as it does over HTTP; a fault of ours leaves a line in the log.

    Args:
        confirm: asks the person, where the protocol can.
    """
    try:
        text = call_tool(caller=caller, name=name, arguments=arguments, confirm=confirm)
    except Exception as problem:  # noqa: BLE001  a model is told of a fault like of a refusal
        return ToolAnswer(json.dumps(explain(_settle(problem, caller)), ensure_ascii=False), True)
    return ToolAnswer(text, False)


def call_tool(
    *, caller: Caller, name: str, arguments: JSONValue, confirm: Confirm | None = None
) -> str:
    """
    Call one tool; return what it gives as JSON text.

    Raises:
        ValidationError: no such tool or argument, or a required one is missing.
        ServiceError: whatever the services refuse.
    """
    tool = TOOLS.get(name)
    if tool is None:
        raise ValidationError("There is no such tool.", pointer="/name")
    if not isinstance(arguments, dict):
        raise ValidationError("The arguments are a JSON object.", pointer="")
    check_members(arguments, tool.properties, "")
    for required in tool.required:
        if required not in arguments:
            raise ValidationError(f"{required} is required.", pointer=f"/{required}")
    if tool.asks:
        return forget_memories(caller, arguments["keys"], arguments.get("scope"), confirm)
    return _FUNCTIONS[name](caller, **arguments)


def explain(refusal: ServiceError) -> dict[str, Any]:
    """Return a refusal as a tool tells it: the members of a problem over HTTP, for arguments."""
    told: dict[str, Any] = {
        "code": refusal.code,
        "status": refusal.status,
        "title": refusal.title,
        "detail": refusal.detail,
        **refusal.facts,
    }
    if refusal.errors:
        told["errors"] = [_error(one) for one in refusal.errors]
    if "Retry-After" in refusal.headers:
        told["retry_after"] = int(refusal.headers["Retry-After"])
    return told


# The tools ---------------------------------------------------------------------------------------


def get_memory(caller: Caller, key: object, scope: object = None) -> str:
    """Return the live record at one address."""
    place, key = read_address(caller, scope, key)
    check_no_reason(caller, place)
    return get_preference(caller=caller, scope=place, key=key).as_json()


def list_memories(
    caller: Caller,
    scope: object = None,
    key_prefix: object = None,
    tags: JSONValue = None,
    limit: object = None,
    cursor: object = None,
) -> str:
    """Return live records of one scope, or of the person's and all shared ones."""
    place = None if scope is None else read_scope(caller, scope)
    check_no_reason(caller, place)
    if key_prefix is not None and not isinstance(key_prefix, str):
        raise ValidationError("A prefix is a string.", pointer="/key_prefix")
    wanted = check_tags([] if tags is None else tags)
    most = read_limit(limit)
    scopes = own_scopes(caller) if place is None else [place]
    # A cursor goes on in the list that it was given with, and in no other.
    salt = f"consentful.tools.list:{caller.tenant_id}:{caller.subject}:" + canonical(
        [None if place is None else str(place), key_prefix, list(wanted)]
    )
    after = 0 if cursor is None else read_position(cursor, salt)
    with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor, subjects=persons_of(scopes)):
        records, withheld = list_preferences(
            caller=caller,
            scopes=scopes,
            with_shared=place is None,
            key_prefix=normalize_prefix(key_prefix),
            tags=wanted,
            after=after,
            most=most + 1,
        )
    following = None
    if len(records) > most:
        records = records[:most]
        following = signing.dumps(records[-1].id, salt=salt)
    shown = ", ".join(record.as_json() for record in records)
    return (
        f'{{"scope": {_json(None if place is None else str(place))}, "results": [{shown}],'
        f' "next_cursor": {_json(following)}, "withheld": {withheld_as_json(withheld)}}}'
    )


def search_memories(
    caller: Caller, query: object, scope: object = None, limit: object = None
) -> str:
    """Return the records whose text holds the words, best first, of one place or as a list does."""
    place: Place | None = None
    if scope is not None:
        place = parse_place(scope, me=caller.subject)
        if isinstance(place, Scope):
            # A search leaves out what may not be read; who names one place is told so.
            place = read_scope(caller, scope)
            check_no_reason(caller, place)
    hits, withheld = search_preferences(
        caller=caller,
        query=check_query(query),
        scopes=None if place is None else [place],
        limit=read_limit(limit),
    )
    shown = ", ".join(hit.as_json() for hit in hits)
    return (
        f'{{"scope": {_json(None if place is None else str(place))}, "results": [{shown}],'
        f' "withheld": {withheld_as_json(withheld)}}}'
    )


def set_memory(
    caller: Caller,
    key: object,
    value: JSONValue,
    scope: object = None,
    expected_revision: JSONValue = None,
    ttl_seconds: JSONValue = None,
    tags: JSONValue = None,
    detail: JSONValue = None,
    idempotency_key: object = None,
) -> str:
    """Create a record, or replace the version that the caller read."""
    place, key = read_address(caller, scope, key, creating=True)
    asked: dict[str, JSONValue] = {
        "value": value,
        "revision": expected_revision,
        "tags": tags,
        "provenance": {"detail": detail},
    }
    if ttl_seconds is not None:
        asked["ttl_seconds"] = ttl_seconds
    write = read_write(asked)
    for argument, part, name in (
        ("value", value, key), ("scope", str(place), ""), ("key", key, ""), ("tags", tags, ""),
        ("detail", detail, ""),
    ):  # fmt: skip
        check_no_credential(part, name=name, pointer=f"/{argument}")
    outcome = put_preference(
        caller=caller, scope=place, key=key, write=write,
        once=read_once(caller, idempotency_key, "set_memory", str(place), key, asked),
    )  # fmt: skip
    return (
        f'{outcome.record.as_json()[:-1]}, "created": {_json(outcome.is_created)},'
        f' "replayed": {_json(outcome.is_replayed)}}}'
    )


def delete_memory(
    caller: Caller,
    key: object,
    scope: object = None,
    expected_revision: JSONValue = None,
    idempotency_key: object = None,
) -> str:
    """Delete one record, whatever its consent; only one version of it where that is named."""
    place, key = read_address(caller, scope, key)
    check_no_reason(caller, place)
    revision = None if expected_revision is None else check_revision(expected_revision)
    is_replayed = delete_preference(
        caller=caller, scope=place, key=key,
        revisions=None if revision is None else [revision],
        once=read_once(caller, idempotency_key, "delete_memory", str(place), key, revision),
    )  # fmt: skip
    return _json(
        {
            "scope": str(place), "key": key, "revision": revision, "deleted": True,
            "replayed": is_replayed,
        }
    )  # fmt: skip


def forget_memories(caller: Caller, keys: object, scope: object, confirm: Confirm | None) -> str:
    """
    Delete several records of one scope, once the person has agreed; each for itself.

    Raises:
        ValidationError: nobody can be asked.
    """
    place = read_scope(caller, scope)
    check_no_reason(caller, place)
    if not isinstance(keys, list) or not 1 <= len(keys) <= MOST:
        raise ValidationError(f"keys is a list of 1 to {MOST} keys.", pointer="/keys")
    names = list(dict.fromkeys(check_key(key) for key in keys))
    if confirm is None:
        raise ValidationError(
            "Forgetting several memories takes the person's confirmation, which cannot be asked"
            " for here: delete them one by one with delete_memory."
        )
    listed = ", ".join(map(_json, names))
    question = f"Forget {len(names)} memories of {place} for good? They are: {listed}."
    if not confirm(question, _versions(caller, place, names)):
        return _json({"scope": str(place), "confirmed": False, "results": []})
    operations = read_operations(
        {"operations": [{"op": "delete", "scope": str(place), "key": name} for name in names]},
        caller,
    )
    run_batch(caller=caller, operations=operations, is_atomic=False)
    results = []
    for one in operations:
        if one.fault is not None:
            note_fault(one.fault, request_id=caller.request_id)
        refusal = one.refusal
        results.append(
            {
                "key": one.key,
                "forgotten": refusal is None,
                "code": refusal and refusal.code,
                "detail": refusal and refusal.detail,
            }
        )
    return _json({"scope": str(place), "confirmed": True, "results": results})


_FUNCTIONS: Mapping[str, Callable[..., str]] = {
    function.__name__: function
    for function in (get_memory, list_memories, search_memories, set_memory, delete_memory)
}

# What they share ---------------------------------------------------------------------------------


def _versions(caller: Caller, scope: Scope, keys: Sequence[str]) -> str:
    """Return a digest of what stands at these addresses now."""
    with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
        found = Preference.objects.filter(
            tenant_id=caller.tenant_id, scope=str(scope), key__in=keys
        ).order_by("key")
        text = " ".join(found.values_list("revision", flat=True))
    return salted_hmac("consentful.tools.forget", text, algorithm="sha256").hexdigest()


def _settle(problem: Exception, caller: Caller) -> ServiceError:
    """Return the refusal that stands for a problem, and leave what it must leave behind."""
    refusal = as_service_error(problem)
    if isinstance(refusal, Forbidden):
        try:
            record_denied(refusal, tenant_id=caller.tenant_id, actor=caller.actor)
        except Exception as fault:  # noqa: BLE001  without its event a 403 is no answer
            refusal, problem = as_service_error(fault), fault
    if refusal.status >= 500:
        note_fault(problem, request_id=caller.request_id)
    return refusal


def _error(error: FieldError) -> dict[str, str]:
    pointer = _ARGUMENTS.get((error.code, error.pointer), error.pointer)
    return {"pointer": pointer, "code": error.code, "detail": error.detail}
