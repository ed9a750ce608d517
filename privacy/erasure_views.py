"""Forgetting over HTTP: the request, what became of it, and its receipt. Never needs consent."""

from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from audit.exceptions import SigningKeyMissing
from consent.views import SubjectView
from privacy import erasure_openapi as openapi
from privacy.receipts import sign_receipt
from privacy.selectors import erasure_as_json, get_erasure
from privacy.services import check_may_erase, request_erasure
from tenants.exceptions import NotFound, PermissionDenied, ValidationError
from tenants.roles import Role
from tenants.views import TenantAPIView, answer

FORGETTERS = frozenset({Role.MEMBER, Role.OPERATOR, Role.OWNER})


class ErasuresView(SubjectView):
    """Have everything that is held about one person erased, or some of it."""

    roles = {"POST": FORGETTERS}
    operations = {"POST": openapi.ERASE}
    parameters = {"POST": {"reason": False}}

    def check_access(self, request: Request) -> None:
        check_may_erase(self.caller, self.subject)

    def post(self, request: Request, tenant: str, subject: str) -> HttpResponse:
        body = self.read_body(("keys", "purposes"))
        caller = self.read_reason(self.read_parameters(), self.subject)
        once = self.read_idempotency_key()
        erasure, was_there = request_erasure(
            caller=caller, subject=self.subject, keys=_names(body, "keys"),
            purposes=_names(body, "purposes"), once=once,
        )  # fmt: skip
        headers = {"Location": f"/api/v1/tenants/{caller.tenant}/erasures/{erasure.reference}"}
        if was_there and once is not None:
            headers["Idempotency-Replayed"] = "true"
        return answer(erasure_as_json(erasure), status=201, headers=headers)


class ErasureView(TenantAPIView):
    """What became of one erasure, holder by holder."""

    roles = {"GET": FORGETTERS}
    operations = {"GET": openapi.ERASURE}

    def check_access(self, request: Request) -> None:
        if self.caller.is_agent:
            raise PermissionDenied("An agent sees no erasure.")

    def get(self, request: Request, tenant: str, reference: str) -> HttpResponse:
        self.read_parameters()
        return answer(erasure_as_json(get_erasure(caller=self.caller, reference=reference)))


class ErasureReceiptView(ErasureView):
    """The signed receipt of one erasure that is finished."""

    operations = {"GET": openapi.RECEIPT}

    def get(self, request: Request, tenant: str, reference: str) -> HttpResponse:
        self.read_parameters()
        erasure = get_erasure(caller=self.caller, reference=reference)
        try:
            receipt = sign_receipt(erasure, tenant=self.caller.tenant)
        except SigningKeyMissing as fault:
            raise NotFound("This service signs nothing: it has no key.") from fault
        return answer({"receipt": receipt.jws, "payload": receipt.payload, "kid": receipt.key})


def _names(body: dict[str, Any], member: str) -> list[str] | None:
    value = body.get(member)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValidationError("This is a list of texts.", pointer=f"/{member}")
    return value
