"""The trail over HTTP, for those who watch."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.datastructures import MultiValueDict
from rest_framework.request import Request

from audit.exceptions import SigningKeyMissing
from audit.models import Event
from audit.signing import as_jwk_set, trusted_keys
from tenants import trail_openapi
from tenants.entries import within
from tenants.exceptions import MethodNotAllowed, NotFound, PermissionDenied, ValidationError
from tenants.middleware import request_id_of
from tenants.pages import read_cursor, read_limit, render_page
from tenants.proof import export_trail, get_checkpoint
from tenants.roles import WATCHERS
from tenants.scopes import Scope, check_key
from tenants.times import parse_time
from tenants.trail import TrailFilter, event_as_json, list_changes, list_events
from tenants.units import unit_of_work
from tenants.views import TenantAPIView, answer


class WatchersView(TenantAPIView):
    """Base of what auditors and owners read, and no agent."""

    roles = {"GET": WATCHERS}

    def check_access(self, request: Request) -> None:
        if self.caller.is_agent:
            raise PermissionDenied("An agent never reads the trail, whatever other roles it has.")

    def read_after(self, parameters: MultiValueDict[str, str]) -> int:
        """
        Return `?after=`, the place of a link in the chain; 0 where it is not given.

        Raises:
            ValidationError: it is no such number.
        """
        text = parameters.get("after", "0")
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            raise ValidationError(
                "It is the sequence of an event, a number from 0.", pointer="/query/after"
            )
        return int(text)


class TrailView(WatchersView):
    """What happened in the tenant, newest first. No values."""

    parameters = {
        "GET": {
            "scope": False, "key": False, "action": False, "actor": False, "since": False,
            "until": False, "limit": False, "cursor": False,
        }
    }  # fmt: skip
    operations = {"GET": trail_openapi.TRAIL}

    def get(self, request: Request, tenant: str) -> HttpResponse:
        parameters = self.read_parameters()
        limit = read_limit(parameters)
        before = read_cursor(request._request, parameters)
        scope, key = parameters.get("scope"), parameters.get("key")
        with within("/query"):
            if scope is not None:
                scope = str(Scope.parse(scope, me=self.caller.subject))
            if key is not None:
                key = check_key(key)
        wanted = TrailFilter(
            scope=scope,
            key=key,
            action=parameters.get("action"),
            actor=parameters.get("actor"),
            since=_moment(parameters, "since"),
            until=_moment(parameters, "until"),
        )
        with unit_of_work(tenant_id=self.caller.tenant_id, actor=self.caller.actor):
            events = list(
                list_events(
                    tenant_id=self.caller.tenant_id, wanted=wanted, before=before, most=limit + 1
                )
            )
        return answer(
            render_page(request._request, parameters, events, limit, id_of=_id, render=_render)
        )


class ChangesView(WatchersView):
    """Sealed events in their order, for what follows the tenant. No values."""

    parameters = {"GET": {"after": False, "limit": False}}
    operations = {"GET": trail_openapi.CHANGES}

    def get(self, request: Request, tenant: str) -> HttpResponse:
        parameters = self.read_parameters()
        limit = read_limit(parameters)
        after = self.read_after(parameters)
        with unit_of_work(tenant_id=self.caller.tenant_id, actor=self.caller.actor):
            events = list_changes(
                tenant_id=self.caller.tenant_id,
                after=after if "after" in parameters else None,
                most=limit + 1,
            )
        next_url = None
        if len(events) > limit:
            events = events[:limit]
            address = request._request.build_absolute_uri(request._request.path)
            next_url = f"{address}?after={events[-1].sequence}&limit={limit}"
        results = [event_as_json(event) for event in events]
        return answer({"results": results, "next": next_url, "previous": None})


class CheckpointView(WatchersView):
    """Where the chain stands, signed."""

    parameters = {"GET": {}}
    operations = {"GET": trail_openapi.CHECKPOINT}

    def get(self, request: Request, tenant: str) -> HttpResponse:
        self.read_parameters()
        with proving():
            checkpoint = get_checkpoint(
                self.caller.tenant_id, self.caller.tenant, actor=self.caller.actor
            )
        if checkpoint is None:
            raise NotFound("The chain has no link yet.")
        return answer(
            {
                "tenant": checkpoint.tenant,
                "sequence": checkpoint.sequence,
                "hash": checkpoint.hash,
                "count": checkpoint.count,
                "time": checkpoint.time,
                "key": checkpoint.key,
                "jws": checkpoint.jws,
            }
        )


class ExportView(WatchersView):
    """The whole sealed trail as one document that proves itself. No values."""

    parameters = {"GET": {"after": False}}
    operations = {"GET": trail_openapi.EXPORT}

    def get(self, request: Request, tenant: str) -> HttpResponseBase:
        after = self.read_after(self.read_parameters())
        with proving():
            document = export_trail(
                self.caller.tenant_id, self.caller.tenant, after=after, actor=self.caller.actor
            )
        name = f"audit-{self.caller.tenant}.json"
        return StreamingHttpResponse(
            () if request.method == "HEAD" else document,
            content_type="application/json",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )


class KeysView(TenantAPIView):
    """The public keys whose signatures are good, as a JWK set (RFC 7517)."""

    authentication_classes = []
    operations = {"GET": trail_openapi.KEYS}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        request_id_of(request._request)
        if request.method not in ("GET", "HEAD", "OPTIONS"):
            raise MethodNotAllowed(headers={"Allow": ", ".join(self.allowed_methods)})
        self.check_media(request)

    def get(self, request: Request) -> HttpResponse:
        self.read_parameters()
        with proving():
            return answer(as_jwk_set(trusted_keys().values()))


@contextmanager
def proving() -> Iterator[None]:
    """Answer 404 where this installation signs nothing."""
    try:
        yield
    except SigningKeyMissing as fault:
        raise NotFound("Nothing is signed here: the operator has set no signing key.") from fault


def _moment(parameters: MultiValueDict[str, str], name: str) -> datetime | None:
    text = parameters.get(name)
    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError as fault:
        raise ValidationError(str(fault), pointer=f"/query/{name}") from fault


def _id(event: Event) -> int:
    return event.pk


def _render(event: Event) -> str:
    return json.dumps(event_as_json(event), ensure_ascii=False)
