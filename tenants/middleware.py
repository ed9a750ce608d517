"""Around every request: its id, its line in the log, its count and its span. Never a value."""

import logging
import re
import time
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.crypto import salted_hmac

from tenants.metrics import count_request, method_label
from tenants.observation import REQUESTS, note, route_of
from tenants.problems import as_service_error, log_fault
from tenants.tracing import Span, describe_answer, request_span, trace_id_of

REQUEST_ID = re.compile(r"[!-~]{1,128}\Z")


def request_id_of(request: HttpRequest) -> str:
    """Return the id of a request: the caller's where it is 1-128 visible ASCII characters."""
    known = getattr(request, "consentful_request_id", None)
    if known is None:
        given = request.META.get("HTTP_X_REQUEST_ID", "")
        known = given if REQUEST_ID.match(given) else uuid.uuid4().hex
        request.consentful_request_id = known  # type: ignore[attr-defined]
    return str(known)


def mark_private(response: HttpResponseBase) -> None:
    """Keep an answer that depends on the caller out of every shared cache (RFC 9111)."""
    if response.get("Cache-Control") == "private, no-store":
        return  # by the view already
    response["Cache-Control"] = "private, no-store"
    patch_vary_headers(response, ("Authorization", "Cookie"))


class RequestIDMiddleware:
    """Gives every answer its `X-Request-ID`, and observes it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        request_id = request_id_of(request)
        with request_span(request) as span:
            response = self.get_response(request)
            response["X-Request-ID"] = request_id
            if "/tenants/" in request.path_info:
                mark_private(response)
            _observe(request, response, span, time.perf_counter() - started)
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        """Log a fault that no view of ours has caught: the admin's, say. Its answer is Django's."""
        if as_service_error(exception).status >= 500:
            log_fault(request, exception)


def _observe(request: HttpRequest, response: HttpResponse, span: Span, seconds: float) -> None:
    route = route_of(request)
    status = response.status_code
    code: str | None = getattr(response, "consentful_code", None)
    count_request(method=request.method, route=route, status=status, code=code, seconds=seconds)
    describe_answer(span, route=route, status=status, code=code)
    note(
        REQUESTS,
        logging.INFO,
        "request",
        request_id=request_id_of(request),
        method=method_label(request.method),
        route=route,
        # Ties lines about one address together without naming it.
        address=salted_hmac("consentful.log", request.path, algorithm="sha256").hexdigest()[:12],
        # Known once the caller is: the name in the path may be anything.
        tenant=getattr(request, "consentful_tenant", None),
        status=status,
        code=code,
        duration=round(seconds, 6),
        trace_id=trace_id_of(span),
    )
