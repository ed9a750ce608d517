"""A person's own data over HTTP. Outside the gate: access never needs consent."""

import json
from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from consent.models import Purpose
from consent.selectors import list_states
from consent.views import SubjectView, history_as_json
from preferences.records import Record
from preferences.selectors import list_personal_data
from privacy import openapi
from tenants.exceptions import PermissionDenied
from tenants.roles import Role
from tenants.units import unit_of_work
from tenants.views import answer


class SubjectDataView(SubjectView):
    """Everything that is held about one person, with where it came from and how long it stays."""

    roles = {"GET": frozenset({Role.MEMBER, Role.OPERATOR, Role.OWNER})}
    operations = {"GET": openapi.DATA}
    parameters = {"GET": {"reason": False}}

    def check_access(self, request: Request) -> None:
        caller = self.caller
        if caller.is_agent or not (caller.stands_for(self.subject) or caller.is_steward):
            raise PermissionDenied(
                "Only the person, or an operator with a reason, sees all that is held.",
                about={"subject": self.subject},
            )

    def get(self, request: Request, tenant: str, subject: str) -> HttpResponse:
        caller = self.read_reason(self.read_parameters(), self.subject)
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            records = list_personal_data(caller=caller, subject=self.subject)
            consents = self.list_consents(caller.tenant_id)
            self.record_disclosure(caller)
        preferences = ", ".join(_with_retention(record) for record in records)
        return answer(
            f'{{"subject": {json.dumps(self.subject)}, "preferences": [{preferences}], '
            f'"consents": {json.dumps(consents, ensure_ascii=False)}}}'
        )

    def list_consents(self, tenant_id: int) -> list[dict[str, Any]]:
        """Return the state of every purpose with the decisions that led to it."""
        purposes = {one.slug: one for one in Purpose.objects.filter(tenant_id=tenant_id)}
        return [
            {
                **state.as_json(),
                "history": history_as_json(tenant_id, self.subject, purposes[state.purpose]),
            }
            for state in list_states(tenant_id=tenant_id, subject=self.subject)
        ]


def _with_retention(record: Record) -> str:
    """Return a record with when it goes; without a deadline it stays until it is deleted."""
    until = record.current["expires_at"]
    retention = {"until": until, "rule": "deadline" if until else "until_deleted"}
    return f'{record.as_json()[:-1]}, "retention": {json.dumps(retention)}}}'
