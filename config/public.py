"""What strangers may read: these pages answer like the rest of the API, and to any method."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from tenants.exceptions import MethodNotAllowed
from tenants.middleware import request_id_of
from tenants.problems import answer_problem

ALLOW = "GET, HEAD, OPTIONS"


def public(view: Callable[..., Any]) -> Callable[..., HttpResponseBase]:
    """Let a page be read; OPTIONS is answered from the route alone, anything else is refused."""

    @csrf_exempt
    @wraps(view)
    def answer(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        request_id_of(request)
        if request.method == "OPTIONS":
            response = HttpResponse(headers={"Allow": ALLOW})
            del response["Content-Type"]
            return response
        if request.method not in ("GET", "HEAD"):
            return answer_problem(request, MethodNotAllowed(headers={"Allow": ALLOW}))
        page: HttpResponseBase = view(request, **kwargs)
        return page

    return answer
