"""Writing a brief, and remembering how its author likes paper cut. Runs under ATOMIC_REQUESTS."""

import json
from uuid import UUID

from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from accounts.models import Organisation, User
from briefs.models import Brief
from metrics.models import Hit
from preferences.selectors import get_preference
from preferences.services import set_preference
from tenants.callers import find_caller
from tenants.exceptions import ServiceError
from tenants.scopes import Scope


class PrinterOnFire(Exception):
    """The brief cannot be printed after all; Django undoes the request."""


@csrf_exempt  # a plotter, no browser
def write_brief(request: HttpRequest, organisation: UUID) -> JsonResponse:
    """Store a brief, and set or read what its author prefers, in the request's transaction."""
    wanted = json.loads(request.body)
    Hit.objects.create(path=request.path)
    tenant = Organisation.objects.get(pk=organisation).short_name
    author = User.objects.get(email=wanted["author"])
    caller = find_caller(tenant=tenant, user_id=str(author.pk))
    scope = Scope.of_subject(caller.subject)
    Brief.objects.create(author=author.email, text=wanted["text"])
    try:
        if "slicing" in wanted:
            set_preference(
                caller=caller, scope=scope, key="slicing", value=wanted["slicing"], upsert=True
            )
        record = get_preference(caller=caller, scope=scope, key="slicing")
    except ServiceError as refusal:
        # Caught, so that the request commits: the brief stays, and the refusal's event with it.
        return JsonResponse({"code": refusal.code}, status=refusal.status)
    if wanted.get("is_on_fire"):
        raise PrinterOnFire
    return JsonResponse(
        {
            "slicing": record.value,
            "is_atomic": connection.in_atomic_block,
        },
        status=201,
    )
