"""What a person says besides yes and no, over HTTP: restrict, object, confirm; and who says it for them."""

from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from consent import rights_openapi as openapi
from consent.confirmations import confirm
from consent.objections import lift_objection, list_stands, object_to
from consent.receipts import issue_receipt
from consent.restrictions import (
    lift_restriction,
    list_restrictions,
    restrict,
    restriction_as_json,
)
from consent.views import DECIDERS, OwnView, SubjectView, read_deadline, read_text
from tenants.exceptions import PermissionDenied, ValidationError
from tenants.guardians import (
    check_appointer,
    end_guardianship,
    grant_guardianship,
    list_guardians,
)
from tenants.models import Guardianship
from tenants.pages import envelope
from tenants.roles import ANYONE, Role
from tenants.scopes import check_key
from tenants.times import format_time
from tenants.trail_views import proving
from tenants.units import unit_of_work
from tenants.views import answer

REASON = {"reason": False}
#: Not even an agent that has other roles: `OwnView` refuses it.
PEOPLE = ANYONE - {Role.AGENT}


class RestrictionsView(OwnView):
    """What is restricted about a person, and what was, with who lifted it and why."""

    roles = {"GET": DECIDERS}
    operations = {"GET": openapi.RESTRICTIONS}
    parameters = {"GET": REASON}

    def get(self, request: Request, tenant: str, subject: str) -> HttpResponse:
        caller = self.read_reason(self.read_parameters(), self.subject)
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            rows = list_restrictions(tenant_id=caller.tenant_id, subject=self.subject)
            self.record_disclosure(caller)
        return answer(envelope([restriction_as_json(row) for row in rows]))


class RestrictionView(OwnView):
    """Everything about a person: kept and not used."""

    roles = {"PUT": DECIDERS, "DELETE": DECIDERS}
    operations = {"PUT": openapi.RESTRICT, "DELETE": openapi.LIFT}
    parameters = {"DELETE": REASON}
    #: Of the one record, where it is one.
    key: str | None = None

    def put(self, request: Request, **path: Any) -> HttpResponse:
        self.read_parameters()
        body = self.read_body(("evidence",))
        row = restrict(
            caller=self.caller, subject=self.subject, key=self.key,
            evidence=read_text(body, "evidence", 2048),
        )  # fmt: skip
        return answer(restriction_as_json(row))

    def delete(self, request: Request, **path: Any) -> HttpResponse:
        caller = self.read_reason(self.read_parameters(), self.subject)
        lift_restriction(caller=caller, subject=self.subject, key=self.key, reason=caller.reason)
        return answer(None, status=204)


class KeyRestrictionView(RestrictionView):
    """The record of one key of a person: kept and not used."""

    operations = {"PUT": openapi.RESTRICT_KEY, "DELETE": openapi.LIFT_KEY}

    def read_path(self, **kwargs: Any) -> None:
        super().read_path(**kwargs)
        self.key = check_key(kwargs["key"])


class ObjectionsView(OwnView):
    """Where a person stands on every purpose that can be objected to."""

    roles = {"GET": DECIDERS}
    operations = {"GET": openapi.OBJECTIONS}
    parameters = {"GET": REASON}

    def get(self, request: Request, tenant: str, subject: str) -> HttpResponse:
        caller = self.read_reason(self.read_parameters(), self.subject)
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            stands = list_stands(tenant_id=caller.tenant_id, subject=self.subject)
            self.record_disclosure(caller)
        return answer(envelope([stand.as_json() for stand in stands]))


class ObjectionView(OwnView):
    """An objection of one person to one purpose."""

    roles = {"PUT": DECIDERS, "DELETE": DECIDERS}
    operations = {"PUT": openapi.OBJECT, "DELETE": openapi.LIFT_OBJECTION}
    parameters = {"DELETE": REASON}

    def put(self, request: Request, tenant: str, subject: str, purpose: str) -> HttpResponse:
        self.read_parameters()
        body = self.read_body(("evidence",))
        stand = object_to(
            caller=self.caller, subject=self.subject, purpose=purpose,
            evidence=read_text(body, "evidence", 2048),
        )  # fmt: skip
        return answer(stand.as_json())

    def delete(self, request: Request, tenant: str, subject: str, purpose: str) -> HttpResponse:
        caller = self.read_reason(self.read_parameters(), self.subject)
        lift_objection(caller=caller, subject=self.subject, purpose=purpose, reason=caller.reason)
        return answer(None, status=204)


class ConfirmationView(OwnView):
    """The second step of a double opt-in."""

    roles = {"POST": DECIDERS}
    operations = {"POST": openapi.CONFIRM}

    def post(self, request: Request, tenant: str, subject: str, purpose: str) -> HttpResponse:
        self.read_parameters()
        token = read_text(self.read_body(("token",)), "token", 200)
        if token is None:
            raise ValidationError("Bring the token.", pointer="/token")
        state = confirm(caller=self.caller, subject=self.subject, purpose=purpose, token=token)
        return answer(state.as_json())


class ReceiptView(SubjectView):
    """A signed receipt of one decision: the newest, or the one that is named."""

    roles = {"GET": PEOPLE}
    operations = {"GET": openapi.RECEIPT}
    parameters = {"GET": {"reason": False, "entry": False}}

    def check_access(self, request: Request) -> None:
        if self.caller.is_agent:
            raise PermissionDenied(about={"subject": self.subject})
        super().check_access(request)

    def get(self, request: Request, tenant: str, subject: str, purpose: str) -> HttpResponse:
        caller = self.read_disclosure()
        with (
            proving(),
            unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor),
        ):
            receipt, key, jws = issue_receipt(
                caller=caller, subject=self.subject, purpose=purpose,
                entry=request.query_params.get("entry"),
                withdraw_at=request._request.build_absolute_uri(
                    request._request.path.removesuffix("/receipt")
                ),
            )  # fmt: skip
            self.record_disclosure(caller)
        return answer({"receipt": receipt, "key": key, "jws": jws})


class GuardiansView(OwnView):
    """Who may act for a person."""

    roles = {"GET": DECIDERS}
    operations = {"GET": openapi.GUARDIANS}
    parameters = {"GET": REASON}

    def get(self, request: Request, tenant: str, subject: str) -> HttpResponse:
        caller = self.read_reason(self.read_parameters(), self.subject)
        with unit_of_work(tenant_id=caller.tenant_id, actor=caller.actor):
            rows = list_guardians(tenant_id=caller.tenant_id, subject=self.subject)
            self.record_disclosure(caller)
        return answer(envelope([_guardian(row) for row in rows]))


class GuardianView(SubjectView):
    """One login that may act for one person."""

    roles = {
        "PUT": frozenset({Role.OPERATOR, Role.OWNER}),
        "DELETE": frozenset({Role.OPERATOR, Role.OWNER}),
    }
    operations = {"PUT": openapi.APPOINT, "DELETE": openapi.DISMISS}
    parameters = {"DELETE": REASON}

    def check_access(self, request: Request) -> None:
        check_appointer(self.caller)

    def put(self, request: Request, tenant: str, subject: str, username: str) -> HttpResponse:
        self.read_parameters()
        body = self.read_body(("evidence", "expires_at"))
        row = grant_guardianship(
            tenant_id=self.caller.tenant_id, username=username, subject=self.subject,
            evidence=read_text(body, "evidence", 2048) or "",
            expires_at=read_deadline(body.get("expires_at")), actor=self.caller.actor,
        )  # fmt: skip
        return answer(_guardian(row))

    def delete(self, request: Request, tenant: str, subject: str, username: str) -> HttpResponse:
        caller = self.read_reason(self.read_parameters(), self.subject)
        end_guardianship(
            tenant_id=caller.tenant_id, username=username, subject=self.subject, actor=caller.actor
        )
        return answer(None, status=204)


def _guardian(row: Guardianship) -> dict[str, Any]:
    return {
        "username": row.user.get_username(),
        "evidence": row.evidence,
        "expires_at": row.expires_at and format_time(row.expires_at),
    }
