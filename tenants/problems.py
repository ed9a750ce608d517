"""Refusals as HTTP answers: RFC 9457 problem details, for our errors, Django's and DRF's alike."""

import json
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import (
    DisallowedHost,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.db import DatabaseError, DataError, IntegrityError, InterfaceError
from django.http import Http404, HttpRequest, HttpResponse
from rest_framework import exceptions as drf

from tenants.conf import docs_url
from tenants.exceptions import (
    InternalError,
    InvalidJSON,
    MethodNotAllowed,
    NotAcceptable,
    NotAuthenticated,
    NotFound,
    PermissionDenied,
    ServiceError,
    StoreUnavailable,
    Throttled,
    TooLarge,
    UnsupportedMediaType,
    ValidationError,
)
from tenants.observation import note_fault

#: DRF's own exceptions, most special first.
FROM_DRF: tuple[tuple[type[drf.APIException], type[ServiceError]], ...] = (
    (drf.NotAuthenticated, NotAuthenticated),
    (drf.AuthenticationFailed, NotAuthenticated),
    (drf.PermissionDenied, PermissionDenied),
    (drf.NotFound, NotFound),
    (drf.MethodNotAllowed, MethodNotAllowed),
    (drf.NotAcceptable, NotAcceptable),
    (drf.UnsupportedMediaType, UnsupportedMediaType),
    (drf.Throttled, Throttled),
    (drf.ParseError, InvalidJSON),
    (drf.ValidationError, ValidationError),
)


def as_service_error(problem: BaseException) -> ServiceError:
    """Return the refusal that stands for any exception; an unknown one is a fault of ours."""
    if isinstance(problem, ServiceError):
        return problem
    if isinstance(problem, Http404):
        return NotFound()
    if isinstance(problem, DjangoPermissionDenied):
        return PermissionDenied()
    if isinstance(problem, RequestDataTooBig):
        return TooLarge()
    if isinstance(problem, DisallowedHost):
        return ValidationError(
            "The Host header names no host of this service.", pointer="/headers/Host"
        )
    if isinstance(problem, SuspiciousOperation):
        return ValidationError("The request is malformed.")
    for theirs, ours in FROM_DRF:
        if isinstance(problem, theirs):
            wait = getattr(problem, "wait", None)
            return ours(headers={"Retry-After": str(int(wait) + 1)} if wait else {})
    if isinstance(problem, IntegrityError | DataError):
        return InternalError()  # a constraint that the service should have explained first
    if isinstance(problem, DatabaseError | InterfaceError):
        return StoreUnavailable()
    return InternalError()


def answer_problem(
    request: HttpRequest, refusal: ServiceError, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    """Return a refusal as `application/problem+json`."""
    body: dict[str, Any] = {
        "type": f"{docs_url()}#{refusal.code}",
        "title": refusal.title,
        "status": refusal.status,
        "detail": refusal.detail,
        "code": refusal.code,
        "request_id": getattr(request, "consentful_request_id", None),
        **refusal.facts,
    }
    if refusal.errors:
        body["errors"] = [
            {"pointer": error.pointer, "code": error.code, "detail": error.detail}
            for error in refusal.errors
        ]
    response = HttpResponse(
        json.dumps(body, ensure_ascii=False).encode("utf-8", "backslashreplace"),
        content_type="application/problem+json",
        status=refusal.status,
    )
    response.consentful_code = refusal.code  # type: ignore[attr-defined]  # for the log
    if refusal.status == 401:
        response["WWW-Authenticate"] = (
            'Bearer error="invalid_token"' if refusal.code == "invalid_token" else "Bearer"
        )
    for name, value in {**refusal.headers, **(headers or {})}.items():
        response[name] = value
    return response


def log_fault(request: HttpRequest, problem: BaseException) -> None:
    """Log where an unexpected exception of a request came from, and nothing it says."""
    note_fault(problem, request_id=getattr(request, "consentful_request_id", None))
