"""Legal holds over HTTP."""

from django.http import HttpResponse
from rest_framework.request import Request

from consent.views import DECIDERS, OwnView, SubjectView, read_deadline, read_text
from preferences import openapi
from preferences.holds import hold, hold_as_json, list_holds, release
from tenants.exceptions import PermissionDenied
from tenants.pages import envelope
from tenants.roles import STEWARDS
from tenants.scopes import check_key
from tenants.units import unit_of_work
from tenants.views import answer


class HoldsView(OwnView):
    """What of a person is held, why and until when: the person sees it, too."""

    roles = {"GET": DECIDERS}
    operations = {"GET": openapi.HOLDS}
    parameters = {"GET": {"reason": False}}

    def get(self, request: Request, tenant: str, subject: str) -> HttpResponse:
        caller = self.read_reason(self.read_parameters(), self.subject)
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            rows = list_holds(tenant_id=caller.tenant_id, subject=self.subject)
            self.record_disclosure(caller)
        return answer(envelope([hold_as_json(row) for row in rows]))


class HoldView(SubjectView):
    """A hold on the record of one key."""

    roles = {"PUT": STEWARDS, "DELETE": STEWARDS}
    operations = {"PUT": openapi.HOLD, "DELETE": openapi.RELEASE}
    parameters = {"DELETE": {"reason": False}}
    key: str

    def read_path(self, **kwargs: object) -> None:
        super().read_path(**kwargs)
        self.key = check_key(kwargs["key"])

    def check_access(self, request: Request) -> None:
        if not self.caller.is_steward:
            raise PermissionDenied(
                "Only an operator holds a record, or ends a hold.", about={"subject": self.subject}
            )

    def put(self, request: Request, tenant: str, subject: str, key: str) -> HttpResponse:
        self.read_parameters()
        body = self.read_body(("reason", "until"))
        row = hold(
            caller=self.caller, subject=self.subject, key=self.key,
            reason=read_text(body, "reason", 2000) or "",
            until=read_deadline(body.get("until"), name="until"),
        )  # fmt: skip
        return answer(hold_as_json(row))

    def delete(self, request: Request, tenant: str, subject: str, key: str) -> HttpResponse:
        caller = self.read_reason(self.read_parameters(), self.subject)
        release(caller=caller, subject=self.subject, key=self.key, reason=caller.reason or "")
        return answer(None, status=204)
