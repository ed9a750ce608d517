"""Ordering a loaf, and remembering how the customer likes it sliced."""

import json

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from orders.models import Order
from preferences.services import set_preference
from tenants.callers import find_caller
from tenants.exceptions import ServiceError
from tenants.scopes import Scope

TENANT = "bakery"


class OvenIsCold(Exception):
    """The order cannot be taken after all."""


@csrf_exempt  # a till in the shop, no browser
def place_order(request: HttpRequest) -> JsonResponse:
    """Take an order; the order and the preference stand together or not at all."""
    wanted = json.loads(request.body)
    caller = find_caller(tenant=TENANT, user_id=wanted["customer_id"])
    try:
        with transaction.atomic():
            order = Order.objects.create(customer=caller.username, slicing=wanted["slicing"])
            if wanted["remember"]:
                set_preference(
                    caller=caller,
                    scope=Scope.of_subject(caller.subject),
                    key="slicing",
                    value=wanted["slicing"],
                    upsert=True,
                )
            if wanted.get("oven_is_cold"):
                raise OvenIsCold
    except ServiceError as refusal:
        return JsonResponse({"code": refusal.code}, status=refusal.status)
    except OvenIsCold:
        return JsonResponse({"code": "oven_is_cold"}, status=503)
    return JsonResponse({"order": order.pk}, status=201)
