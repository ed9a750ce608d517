"""Selected context over HTTP."""

from collections.abc import Mapping
from typing import Any, Literal

from django.http import HttpResponse
from rest_framework.request import Request

from agents import context_openapi as openapi
from agents.context import Format, build_context
from tenants.exceptions import InvalidScope, ValidationError
from tenants.roles import READERS
from tenants.scopes import Scope
from tenants.views import TenantAPIView, answer

MEMBERS = ("purpose", "scopes", "keys", "current", "format", "budget_chars")


class ContextView(TenantAPIView):
    """The facts that one request of a language model may use."""

    roles = {"POST": READERS}
    operations = {"POST": openapi.POST_CONTEXT}

    def post(self, request: Request, tenant: str) -> HttpResponse:
        body = self.read_body(MEMBERS)
        self.read_parameters()
        if "HTTP_IDEMPOTENCY_KEY" in request.META:
            raise ValidationError(
                "An answer that holds values is not kept: a context takes no Idempotency-Key.",
                pointer="/headers/Idempotency-Key",
            )
        texts = _read_texts(body, "scopes")
        context = build_context(
            caller=self.caller,
            purpose=_read_text(body, "purpose"),
            scopes=[self.read_scope(text, index) for index, text in enumerate(texts)],
            keys=_read_texts(body, "keys"),
            current=_read_current(body),
            format=_read_format(body),
            budget_chars=_read_budget(body),
        )
        return answer(context.as_json())

    def read_scope(self, text: str, index: int) -> Scope:
        try:
            return Scope.parse(text, me=self.caller.subject)
        except InvalidScope as refusal:
            raise InvalidScope(refusal.detail, pointer=f"/scopes/{index}") from None


def _read_text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise ValidationError(f"{name} is required, and a string.", pointer=f"/{name}")
    return value


def _read_texts(body: Mapping[str, Any], name: str) -> list[str]:
    value = body.get(name)
    if not isinstance(value, list):
        raise ValidationError(f"{name} is required, and a list of strings.", pointer=f"/{name}")
    for index, one in enumerate(value):
        if not isinstance(one, str):
            raise ValidationError("It is no string.", pointer=f"/{name}/{index}")
    return value


def _read_current(body: Mapping[str, Any]) -> dict[str, Any] | None:
    value = body.get("current")
    if value is not None and not isinstance(value, dict):
        raise ValidationError("current is an object: values by key.", pointer="/current")
    return value


def _read_format(body: Mapping[str, Any]) -> Format:
    value: Any = body.get("format")
    chosen: Literal["json", "text"] = "json" if value is None else value
    return chosen


def _read_budget(body: Mapping[str, Any]) -> int | None:
    value = body.get("budget_chars")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValidationError("budget_chars is a whole number.", pointer="/budget_chars")
    return value
