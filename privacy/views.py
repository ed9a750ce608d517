"""A person's own data over HTTP. Outside the gate: access never needs consent."""

import json
from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from consent.objections import list_stands
from consent.personal_data import histories
from consent.selectors import list_states
from consent.views import SubjectView
from preferences.holds import hold_as_json, list_holds
from preferences.readings import flush_readings, note_disclosure
from privacy import openapi
from privacy.activity import list_activity
from privacy.holders import stores
from tenants.exceptions import PermissionDenied
from tenants.pages import read_limit, read_position, render_page
from tenants.roles import Role
from tenants.units import unit_of_work
from tenants.views import answer

#: Stores that are long, and shown elsewhere: beside each record, and as the activity.
LONG = frozenset({"readings", "events"})


class PersonView(SubjectView):
    """Base of what a person sees about itself, and an operator about a person, with a reason."""

    roles = {"GET": frozenset({Role.MEMBER, Role.OPERATOR, Role.OWNER})}

    def check_access(self, request: Request) -> None:
        caller = self.caller
        if caller.is_agent or not (caller.stands_for(self.subject) or caller.is_steward):
            raise PermissionDenied(
                "Only the person, or an operator with a reason, sees all that is held.",
                about={"subject": self.subject},
            )


class SubjectDataView(PersonView):
    """Everything that is held about one person, with where it came from and how long it stays."""

    operations = {"GET": openapi.DATA}
    parameters = {"GET": {"reason": False}}

    def get(self, request: Request, tenant: str, subject: str) -> HttpResponse:
        caller = self.read_reason(self.read_parameters(), self.subject)
        flush_readings()  # those of this process; others write theirs within a second
        held: dict[str, Any] = {"subject": self.subject}
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            for holder, store in stores():
                if store.name not in LONG:
                    found = holder.export(
                        tenant_id=caller.tenant_id, subject=self.subject, store=store.name
                    )
                    held[store.name] = list(found)
            decisions = histories(tenant_id=caller.tenant_id, subject=self.subject)
            # Undecided purposes too, each with what led to where the person stands.
            held["consents"] = [
                {**state.as_json(), "history": decisions.get(state.purpose, [])}
                for state in list_states(tenant_id=caller.tenant_id, subject=self.subject)
            ]
            held["objections"] = [
                {**stand.as_json(), "history": decisions.get(stand.purpose, [])}
                for stand in list_stands(tenant_id=caller.tenant_id, subject=self.subject)
            ]
            held["holds"] = [
                hold_as_json(row)
                for row in list_holds(tenant_id=caller.tenant_id, subject=self.subject)
            ]
            self.record_disclosure(caller)
            if caller.reason is not None or caller.is_guardian:
                note_disclosure(caller=caller, subject=self.subject)
        return answer(json.dumps(held, ensure_ascii=False))


class SubjectActivityView(PersonView):
    """Who read or changed something about one person, newest first. No values."""

    operations = {"GET": openapi.ACTIVITY}
    parameters = {"GET": {"limit": False, "cursor": False, "reason": False}}

    def get(self, request: Request, tenant: str, subject: str) -> HttpResponse:
        parameters = self.read_parameters()
        limit = read_limit(parameters)
        before = read_position(request._request, parameters)
        caller = self.read_reason(parameters, self.subject)
        flush_readings()
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            found = list_activity(
                tenant_id=caller.tenant_id, subject=self.subject, before=before, most=limit + 1
            )
            self.record_disclosure(caller)
        return answer(
            render_page(
                request._request, parameters, found, limit,
                id_of=lambda one: one.position,
                render=lambda one: json.dumps(one.item, ensure_ascii=False),
            )
        )  # fmt: skip
