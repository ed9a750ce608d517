"""Preferences and definitions over HTTP."""

import json
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from django.http import HttpResponse
from django.utils.datastructures import MultiValueDict
from rest_framework.request import Request

from audit.services import record_event
from preferences import openapi
from preferences.batches import Operation, read_operations, run_batch
from preferences.models import Definition
from preferences.places import own_scopes, persons_of, readable_scopes
from preferences.records import Record
from preferences.requests import MEMBERS, parse_tags, read_revisions, read_write
from preferences.resolution import Effective
from preferences.selectors import (
    Withheld,
    find_effective,
    get_preference,
    list_definitions,
    list_preferences,
)
from preferences.services import delete_preference, put_preference
from tenants.callers import Caller, check_reach
from tenants.entries import within
from tenants.exceptions import InvalidScope, PermissionDenied, ValidationError
from tenants.pages import envelope, read_cursor, read_limit, render_page
from tenants.problems import answer_problem, log_fault
from tenants.roles import ANYONE, READERS
from tenants.scopes import Scope, check_key, split_address
from tenants.units import database, unit_of_work
from tenants.views import TenantAPIView, answer, given_reason


class PreferenceView(TenantAPIView):
    """One record at one exact address."""

    roles = {"GET": READERS, "PUT": READERS, "DELETE": READERS}
    operations = {"GET": openapi.GET, "PUT": openapi.PUT, "DELETE": openapi.DELETE}
    parameters = {
        "GET": {"reason": False},
        "PUT": {"mode": False},
        "DELETE": {"revision": False, "reason": False},
    }

    scope: Scope
    key: str

    def read_path(self, **kwargs: Any) -> None:
        scope, key = split_address(kwargs["address"])
        # The key first: a malformed one comes before `me` that stands for nobody.
        self.key = check_key(key, creating=self.request.method == "PUT")
        self.scope = Scope.parse(
            scope, me=self.caller.subject, creating=self.request.method == "PUT"
        )

    def check_access(self, request: Request) -> None:
        try:
            check_reach(self.caller, self.scope.subject)
        except PermissionDenied as refusal:
            refusal.about |= {"scope": str(self.scope), "key": self.key}
            raise

    def get(self, request: Request, tenant: str, address: str) -> HttpResponse:
        caller = self.read_reason(self.read_parameters(), self.scope.subject)
        header = request.META.get("HTTP_IF_NONE_MATCH")
        tags = () if header is None else parse_tags(header, "If-None-Match")
        record = get_preference(caller=caller, scope=self.scope, key=self.key)
        if caller.reason is not None:
            record_disclosure(caller, self.scope, self.key, record.purpose)
        headers = {"ETag": f'"{record.revision}"'}
        # Weak comparison (RFC 9110, 13.1.2), and only after the gate.
        if "*" in tags or record.revision in {tag.removeprefix("W/") for tag in tags}:
            return answer(None, status=304, headers=headers)
        return answer(record.as_json(), headers=headers)

    def put(self, request: Request, tenant: str, address: str) -> HttpResponse:
        # JSON and members come before parameters, and all of them before anything is stored.
        body = self.read_body(MEMBERS)
        parameters = self.read_parameters()
        write = read_write(
            body,
            mode=parameters.get("mode"),
            if_match=request.META.get("HTTP_IF_MATCH"),
            if_none_match=request.META.get("HTTP_IF_NONE_MATCH"),
        )
        outcome = put_preference(
            caller=self.caller, scope=self.scope, key=self.key, write=write,
            once=self.read_idempotency_key(),
        )  # fmt: skip
        headers = {"ETag": f'"{outcome.record.revision}"'}
        if outcome.is_replayed:
            headers["Idempotency-Replayed"] = "true"
        status = 201 if outcome.is_created else 200
        return answer(outcome.record.as_json(), status=status, headers=headers)

    def delete(self, request: Request, tenant: str, address: str) -> HttpResponse:
        # A revision that is sent in the body must not be overlooked: it would delete anything.
        if request._request.body:
            self.read_body(())
        if "HTTP_IF_NONE_MATCH" in request.META:
            raise ValidationError(
                "If-None-Match asks for what is absent, which nobody can delete: send If-Match.",
                pointer="/headers/If-None-Match",
            )
        parameters = self.read_parameters()
        caller = self.read_reason(parameters, self.scope.subject)
        mode, revisions = read_revisions(
            parameters.get("revision"), request.META.get("HTTP_IF_MATCH")
        )
        is_replayed = delete_preference(
            caller=caller, scope=self.scope, key=self.key,
            revisions=None if mode is None else revisions, once=self.read_idempotency_key(),
        )  # fmt: skip
        return answer(
            None, status=204, headers={"Idempotency-Replayed": "true"} if is_replayed else {}
        )


class PreferencesView(TenantAPIView):
    """The live records that the caller may see, in the order of creation."""

    roles = {"GET": READERS}
    operations = {"GET": openapi.LIST}
    parameters = {
        "GET": {
            "scope": False, "key_prefix": False, "tag": True, "purpose": False, "archived": False,
            "limit": False, "cursor": False, "reason": False,
        }
    }  # fmt: skip

    scope: Scope | None = None

    def check_access(self, request: Request) -> None:
        text = request.query_params.get("scope")
        if text is None:
            return
        # A well-formed scope of another person is refused here; a malformed one is a parameter.
        with suppress(InvalidScope):
            self.scope = Scope.parse(text, me=self.caller.subject)
            check_reach(self.caller, self.scope.subject)

    def get(self, request: Request, tenant: str) -> HttpResponse:
        parameters = self.read_parameters()
        limit = read_limit(parameters)
        after = read_cursor(request._request, parameters)
        if "scope" in parameters and self.scope is None:
            with within("/query"):
                Scope.parse(parameters["scope"], me=self.caller.subject)  # says what is wrong
        subject = self.scope.subject if self.scope else None
        caller = self.read_reason(parameters, subject)
        scopes = [self.scope] if self.scope else own_scopes(caller)
        is_archived = read_flag(parameters, "archived")
        with unit_of_work(
            tenant_id=caller.tenant_id, actor=caller.actor, subjects=persons_of(scopes)
        ):
            records, withheld = list_preferences(
                caller=caller,
                scopes=scopes,
                with_shared=self.scope is None,
                key_prefix=normalize_prefix(parameters.get("key_prefix")),
                tags=parameters.getlist("tag"),
                purpose=parameters.get("purpose"),
                after=after,
                most=limit + 1,
                is_archived=is_archived,
            )
        if caller.reason is not None and self.scope is not None:
            record_disclosure(caller, self.scope, None, parameters.get("purpose"))
        return answer(
            render_page(
                request._request, parameters, records, limit,
                id_of=lambda record: record.id, render=Record.as_json,
                more=f', "withheld": {withheld_as_json(withheld)}',
            )
        )  # fmt: skip


class EffectiveView(TenantAPIView):
    """What applies over several scopes, in the caller's order."""

    roles = {"GET": READERS}
    operations = {"GET": openapi.APPLIES}
    parameters = {"GET": {"scope": True, "key": True}}

    def check_access(self, request: Request) -> None:
        check_scopes(request, self.caller, Scope.parse)

    def get(self, request: Request, tenant: str) -> HttpResponse:
        parameters = self.read_parameters()
        if not parameters.getlist("scope"):
            raise InvalidScope("Name at least one scope.", pointer="/query/scope")
        scopes = read_scopes(parameters, self.caller, Scope.parse)
        with within("/query"):
            keys = [check_key(text) for text in parameters.getlist("key")] or None
        readable = readable_scopes(self.caller, scopes)
        with unit_of_work(
            tenant_id=self.caller.tenant_id,
            actor=self.caller.actor,
            subjects=persons_of(readable),
        ):
            found, withheld = find_effective(
                caller=self.caller,
                scopes=readable,
                kinds={scope.kind for scope in scopes},
                keys=None if keys is None else list(dict.fromkeys(keys)),
            )
        return answer(results_as_json([effective_as_json(one) for one in found], withheld))


class BatchView(TenantAPIView):
    """Up to a hundred operations in one request."""

    roles = {"POST": READERS}
    operations = {"POST": openapi.POST_BATCH}
    parameters = {"POST": {"reason": False}}

    def post(self, request: Request, tenant: str) -> HttpResponse:
        body = self.read_body(("atomic", "operations"))
        caller = replace(self.caller, reason=given_reason(self.read_parameters()))
        operations = read_operations(body, caller)
        failed, is_replayed = run_batch(
            caller=caller, operations=operations, is_atomic=body.get("atomic", True) is True,
            once=self.read_idempotency_key(),
        )  # fmt: skip
        for one in operations:
            if one.fault is not None:
                log_fault(request._request, one.fault)
            is_found = one.verb == "get" and one.status == 200
            if is_found and one.scope and caller.discloses(one.scope.subject):
                record_disclosure(caller, one.scope, one.key, one.purpose)
        results = ", ".join(self.render(operation) for operation in operations)
        if failed is None:
            return answer(
                f'{{"results": [{results}]}}',
                headers={"Idempotency-Replayed": "true"} if is_replayed else {},
            )
        failed.facts["results"] = json.loads(f"[{results}]")
        raise failed

    def render(self, operation: Operation) -> str:
        """Return one result as JSON text; a refusal is the problem it would be alone."""
        refusal = operation.refusal or operation.absence
        if refusal is None:
            return f'{{"status": {operation.status}, "body": {operation.body}}}'
        problem = answer_problem(self.request._request, refusal)
        return f'{{"status": {refusal.status}, "body": {problem.content.decode()}}}'


class DefinitionsView(TenantAPIView):
    """The declared settings in force."""

    roles = {"GET": ANYONE}
    operations = {"GET": openapi.DEFINITIONS}

    def get(self, request: Request, tenant: str) -> HttpResponse:
        self.read_parameters()
        with unit_of_work(tenant_id=self.caller.tenant_id, actor=self.caller.actor):
            found = [_definition(one) for one in list_definitions(tenant_id=self.caller.tenant_id)]
        return answer(envelope(found))


def normalize_prefix(text: str | None) -> str | None:
    """Return the beginning of a key in the form that keys have; its characters stay literal."""
    return None if text is None else unicodedata.normalize("NFC", text)


def read_flag(parameters: MultiValueDict[str, str], name: str) -> bool:
    """
    Return whether a query parameter says yes; left out, it says no.

    Raises:
        ValidationError: it says neither ``true`` nor ``false``.
    """
    text = parameters.get(name, "false")
    if text not in ("true", "false"):
        raise ValidationError("This is true or false.", pointer=f"/query/{name}")
    return text == "true"


def record_disclosure(caller: Caller, scope: Scope, key: str | None, purpose: str | None) -> None:
    """Leave an event: somebody read another person's data, and why."""
    record_event(
        "data.disclosed", tenant_id=caller.tenant_id, actor=caller.actor, subject=scope.subject,
        scope=str(scope), key=key, purpose=purpose, using=database(),
    )  # fmt: skip


def check_scopes(request: Request, caller: Caller, parse: Callable[..., object]) -> None:
    """Refuse ``me`` where the caller stands for nobody, before any parameter is looked at."""
    for text in request.query_params.getlist("scope"):
        with suppress(InvalidScope):  # a malformed one is a parameter
            parse(text, me=caller.subject)


def read_scopes[Named](
    parameters: MultiValueDict[str, str], caller: Caller, parse: Callable[..., Named]
) -> list[Named]:
    """Return the scopes that a query names, as `parse` reads them; a malformed one is pointed at."""
    with within("/query"):
        return [parse(text, me=caller.subject) for text in parameters.getlist("scope")]


def results_as_json(results: Sequence[str], withheld: list[Withheld]) -> str:
    """Return the list envelope of what is not divided into pages, from JSON texts."""
    return (
        f'{{"results": [{", ".join(results)}], "next": null, "previous": null, '
        f'"withheld": {withheld_as_json(withheld)}}}'
    )


def withheld_as_json(withheld: list[Withheld]) -> str:
    """Return what was left out, by purpose and reason, as JSON text."""
    return json.dumps([{"purpose": one.purpose, "reason": one.reason} for one in withheld])


def effective_as_json(one: Effective) -> str:
    """Return what applies for one key as JSON text."""
    record = one.record
    value = record.value_text if record else one.default_text
    return (
        f'{{"key": {json.dumps(one.key)}, "value": {value}, '
        f'"scope": {json.dumps(record.scope if record else None)}, '
        f'"revision": {json.dumps(record.revision if record else None)}, '
        f'"origin": "{"stored" if record else "default"}", "shadows": {json.dumps(list(one.shadows))}}}'
    )


def _definition(definition: Definition) -> dict[str, Any]:
    return {
        "key": definition.key,
        "purpose": definition.purpose.slug,
        "schema": json.loads(definition.schema),
        "default": None if definition.default is None else json.loads(definition.default),
        "ttl_default": definition.ttl_default,
        "ttl_max": definition.ttl_max,
        "scopes": definition.scopes,
        "writers": definition.writers,
        "transitions": definition.transitions and json.loads(definition.transitions),
        "description": definition.description,
    }
