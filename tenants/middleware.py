"""Around every request of the standalone service: its id, its headers, its one line in the log."""

import logging
import re
import time
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.crypto import salted_hmac

REQUEST_ID = re.compile(r"[!-~]{1,128}\Z")

logger = logging.getLogger("consentful")


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
    response["Cache-Control"] = "private, no-store"
    patch_vary_headers(response, ("Authorization", "Cookie"))


def _view_name(request: HttpRequest) -> str:
    match = request.resolver_match
    if match is None:
        return "-"
    return str(getattr(getattr(match.func, "cls", match.func), "__name__", "-"))


class RequestIDMiddleware:
    """Gives every answer its `X-Request-ID` and logs one line without values."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        request_id = request_id_of(request)
        response = self.get_response(request)
        response["X-Request-ID"] = request_id
        if "/tenants/" in request.path_info:
            mark_private(response)
        logger.info(
            "request=%s method=%s view=%s address=%s status=%s code=%s ms=%.1f",
            request_id,
            request.method,
            _view_name(request),
            # Ties lines about one address together without naming it.
            salted_hmac("consentful.log", request.path, algorithm="sha256").hexdigest()[:12],
            response.status_code,
            getattr(response, "consentful_code", "-"),
            (time.perf_counter() - started) * 1000,
        )
        return response
