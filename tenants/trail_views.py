"""The trail over HTTP, for those who watch."""

import json
from datetime import datetime

from django.http import HttpResponse
from django.utils.datastructures import MultiValueDict
from rest_framework.request import Request

from audit.models import Event
from tenants import trail_openapi
from tenants.exceptions import PermissionDenied, ValidationError
from tenants.pages import read_cursor, read_limit, render_page
from tenants.roles import WATCHERS
from tenants.scopes import Scope, check_key
from tenants.times import parse_time
from tenants.trail import TrailFilter, event_as_json, list_events
from tenants.units import unit_of_work
from tenants.views import TenantAPIView, answer


class TrailView(TenantAPIView):
    """What happened in the tenant, newest first. No values."""

    roles = {"GET": WATCHERS}
    parameters = {
        "GET": {
            "scope": False, "key": False, "action": False, "actor": False, "since": False,
            "until": False, "limit": False, "cursor": False,
        }
    }  # fmt: skip
    operations = {"GET": trail_openapi.TRAIL}

    def check_access(self, request: Request) -> None:
        if self.caller.is_agent:
            raise PermissionDenied("An agent never reads the trail, whatever other roles it has.")

    def get(self, request: Request, tenant: str) -> HttpResponse:
        parameters = self.read_parameters()
        limit = read_limit(parameters)
        before = read_cursor(request._request, parameters)
        scope, key = parameters.get("scope"), parameters.get("key")
        wanted = TrailFilter(
            scope=None if scope is None else str(Scope.parse(scope, me=self.caller.subject)),
            key=None if key is None else check_key(key),
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
