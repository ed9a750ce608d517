"""Retiring records and bringing them back, over HTTP."""

from collections.abc import Callable
from typing import ClassVar

from django.http import HttpResponse
from rest_framework.request import Request

from preferences import openapi
from preferences.attempts import Outcome
from preferences.services import archive_preference, restore_preference
from preferences.values import check_revision
from tenants.callers import check_reach
from tenants.roles import READERS
from tenants.scopes import Scope, check_key
from tenants.views import TenantAPIView, answer


class RetiringView(TenantAPIView):
    """One record, named in the body with the revision that the caller saw."""

    roles = {"POST": READERS}
    change: ClassVar[Callable[..., Outcome]]

    def post(self, request: Request, tenant: str) -> HttpResponse:
        body = self.read_body(("scope", "key", "revision"))
        self.read_parameters()
        # The key first, then whose record it is, as at an address.
        key = check_key(body.get("key"))
        scope = Scope.parse(body.get("scope"), me=self.caller.subject)
        check_reach(self.caller, scope.subject)
        outcome = type(self).change(
            caller=self.caller,
            scope=scope,
            key=key,
            revision=check_revision(body.get("revision")),
            once=self.read_idempotency_key(),
        )
        headers = {"ETag": f'"{outcome.record.revision}"'}
        if outcome.is_replayed:
            headers["Idempotency-Replayed"] = "true"
        return answer(outcome.record.as_json(), headers=headers)


class ArchiveView(RetiringView):
    """Archive one record."""

    operations = {"POST": openapi.ARCHIVE}
    change = staticmethod(archive_preference)


class RestoreView(RetiringView):
    """Restore one record."""

    operations = {"POST": openapi.RESTORE}
    change = staticmethod(restore_preference)
