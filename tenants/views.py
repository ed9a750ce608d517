"""The base of every view below a tenant, and the answers to what no view catches."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import unquote_to_bytes

from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.datastructures import MultiValueDict
from django.utils.module_loading import import_string
from django.views.decorators.csrf import csrf_exempt
from rest_framework.authentication import BaseAuthentication
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from tenants.callers import Caller, find_caller
from tenants.conf import authentication_classes, resolve_tenant
from tenants.documents import JSONValue, read
from tenants.exceptions import (
    CSRFFailed,
    Forbidden,
    InternalError,
    LengthRequired,
    MethodNotAllowed,
    NotAcceptable,
    NotAuthenticated,
    NotFound,
    PermissionDenied,
    ServiceError,
    TooLarge,
    UnsupportedMediaType,
    ValidationError,
)
from tenants.idempotency import IdempotencyKey
from tenants.middleware import mark_private, request_id_of
from tenants.openapi import Operation, TenantSchema
from tenants.privacy_control import announce
from tenants.problems import answer_problem, as_service_error, log_fault
from tenants.restores import check_current
from tenants.roles import Role
from tenants.units import record_denied

#: Bytes that a request's body may have.
MOST_BYTES = 256 * 1024

#: How Django writes a byte of the path that is no UTF-8 (`repercent_broken_unicode`).
BROKEN_BYTE = re.compile("%[89A-F][0-9A-F]")


class TenantAPIView(APIView):
    """
    One resource of one tenant. Refuses in the order of the contract:

    1. authenticate: 401, `csrf_failed`
    2. the method: 405
    3. the tenant: 404, the same for one that is absent and one without a role
    4. the path: `read_path`, 400
    5. the role: `roles` per method and `check_access`, 403
    6. what is sent and what may be answered: 415, 406, 413

    Then the handler runs. OPTIONS is answered from the route alone. All policies are pinned:
    a host's DRF defaults change nothing but throttling, and a setting names who authenticates.
    """

    renderer_classes = [JSONRenderer]
    parser_classes = []
    permission_classes = []

    schema = TenantSchema()
    #: What each method takes and answers, for the OpenAPI document.
    operations: ClassVar[Mapping[str, Operation]] = {}
    #: Who may use each method at all.
    roles: ClassVar[Mapping[str, frozenset[Role]]] = {}
    #: Whether it is about one person: refused while a restored database awaits its erasures.
    is_personal: ClassVar[bool] = False
    #: Query parameters by method; True where one may be repeated.
    parameters: ClassVar[Mapping[str, Mapping[str, bool]]] = {}

    #: The methods of the route: fixed, but told with every answer.
    allow: ClassVar[str] = ""

    caller: Caller

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # What is read answers HEAD too: Django sees to it with each request.
        answered = {"head": "get"}
        cls.allow = ", ".join(
            name.upper() for name in cls.http_method_names if hasattr(cls, answered.get(name, name))
        )

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        view = csrf_exempt(super().as_view(**initkwargs))
        # A host's ATOMIC_REQUESTS would take the denied event back with the refused request.
        for alias in connections:
            view = transaction.non_atomic_requests(alias)(view)
        return view

    def get_authenticators(self) -> list[BaseAuthentication]:
        return [import_string(path)() for path in authentication_classes()]

    # The pipeline ------------------------------------------------------------------------------

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if request.method == "OPTIONS":
            return
        request_id = request_id_of(request._request)
        caller = self.authenticate(request, kwargs["tenant"])
        method = str(request.method)
        if method.lower() not in self.http_method_names or not hasattr(self, method.lower()):
            raise MethodNotAllowed(headers={"Allow": self.allow})
        if not caller.tenant_id:
            raise NotFound
        request._request.consentful_tenant = caller.tenant  # type: ignore[attr-defined]  # for the log
        self.caller = replace(caller, request_id=request_id)
        self.check_encoding(request)
        self.read_path(**kwargs)
        if not caller.roles & self.roles["GET" if method == "HEAD" else method]:
            raise PermissionDenied
        self.check_access(request)
        if self.is_personal:
            check_current()
        self.check_media(request)
        self.check_throttles(request)
        # Before the handler: what the person decides with this very request is the later word.
        if request.META.get("HTTP_SEC_GPC") == "1":
            announce(self.caller)

    def authenticate(self, request: Request, tenant: str) -> Caller:
        """Return who asks; a caller without tenant where it has no role in this one."""
        # Runs the authenticators. A host may have chosen None for nobody.
        user: Any = request.user
        if isinstance(request.auth, Caller):
            return request.auth
        caller = None
        if user is not None and user.is_authenticated:
            caller = find_caller(
                tenant=resolve_tenant(request._request, tenant), user_id=str(user.pk)
            )
        if caller is None:
            raise NotAuthenticated
        return caller

    def check_encoding(self, request: Request) -> None:
        """A path that is no UTF-8 would otherwise become another, legible address."""
        if not _has_utf8_path(request._request):
            raise ValidationError("The path is not UTF-8.", pointer="/path")

    def read_path(self, **kwargs: Any) -> None:
        """Parse what the path names; 400 where it is malformed."""

    def check_access(self, request: Request) -> None:
        """Refuse what the role does not reach, before any record is looked up; 403."""

    def check_media(self, request: Request) -> None:
        """Refuse media types and sizes before anything is read."""
        meta = request.META
        if request.method in ("PUT", "POST"):
            mime, _, parameters = meta.get("CONTENT_TYPE", "").partition(";")
            if mime.strip().lower() != "application/json" or (
                "charset" in parameters.lower() and "utf-8" not in parameters.lower()
            ):
                raise UnsupportedMediaType(headers={"Accept": "application/json"})
            if meta.get("HTTP_CONTENT_ENCODING", "").strip().lower() not in ("", "identity"):
                raise UnsupportedMediaType(
                    "A body is sent as it is, without a content coding.",
                    headers={"Accept": "application/json", "Accept-Encoding": "identity"},
                )
        if not _accepts_json(meta.get("HTTP_ACCEPT", "*/*")):
            raise NotAcceptable
        if meta.get("HTTP_TRANSFER_ENCODING") and not meta.get("CONTENT_LENGTH"):
            raise LengthRequired
        length = meta.get("CONTENT_LENGTH") or "0"
        if not length.isdecimal():
            raise ValidationError("Content-Length is a number.", pointer="/headers/Content-Length")
        if int(length) > MOST_BYTES:
            raise TooLarge(f"A body may have {MOST_BYTES} bytes.")

    # What handlers read ------------------------------------------------------------------------

    def read_parameters(self) -> MultiValueDict[str, str]:
        """
        Return the query parameters.

        Raises:
            ValidationError: an unknown one, a repeated one where repetition is not defined, or
                one that is no UTF-8, which would otherwise name something else.
        """
        query = str(self.request.META.get("QUERY_STRING", ""))
        if not _is_utf8(unquote_to_bytes(query.encode("utf-8", "surrogateescape"))):
            raise ValidationError("The query is not UTF-8.", pointer="/query")
        method = "GET" if self.request.method == "HEAD" else str(self.request.method)
        known = self.parameters.get(method, {})
        given = self.request.query_params
        for name, values in given.lists():
            if name not in known:
                raise ValidationError(
                    "There is no such query parameter here.", pointer=f"/query/{name[:64]}"
                )
            if len(values) > 1 and not known[name]:
                raise ValidationError("This parameter may stand once.", pointer=f"/query/{name}")
            if any("\x00" in value for value in values):
                raise ValidationError("A parameter holds no NUL.", pointer=f"/query/{name}")
        return given

    def read_body(self, members: Iterable[str]) -> dict[str, JSONValue]:
        """
        Return the JSON object of the body.

        Raises:
            InvalidJSON, InvalidValue: see `tenants.documents.read`.
            ValidationError: no object, or a member that is not among `members`.
        """
        body = read(self.request._request.body)
        if not isinstance(body, dict):
            raise ValidationError("The body must be a JSON object.", pointer="")
        check_members(body, members, "")
        return body

    def read_reason(self, parameters: MultiValueDict[str, str], subject: str | None) -> Caller:
        """
        Return the caller with the reason that a steward gives for another person's data.

        Raises:
            ValidationError: the reason is missing or is not 1-500 characters.
        """
        reason = given_reason(parameters)
        if not self.caller.discloses(subject):
            return self.caller  # nothing is disclosed to anyone else
        if reason is None:
            raise ValidationError(
                "Say why: ?reason= is required for another person's data.",
                pointer="/query/reason",
            )
        self.caller = replace(self.caller, reason=reason)  # a refusal's event tells it, too
        return self.caller

    def read_idempotency_key(self) -> IdempotencyKey | None:
        """Return the request's Idempotency-Key with its digests, if it came with one."""
        request = self.request._request
        header = request.META.get("HTTP_IDEMPOTENCY_KEY")
        if header is None:
            return None
        meta = request.META
        return IdempotencyKey.of_request(
            header,
            tenant_id=self.caller.tenant_id,
            caller=f"{self.caller.user_id}:{self.caller.on_behalf_of or ''}",
            request=(
                *(
                    part.encode("utf-8", "surrogateescape")
                    for part in (
                        str(request.method),
                        request.path,
                        meta.get("QUERY_STRING", ""),
                        meta.get("HTTP_IF_MATCH", ""),
                        meta.get("HTTP_IF_NONE_MATCH", ""),
                    )
                ),
                request.body,
            ),
        )

    # Answers -----------------------------------------------------------------------------------

    @property
    def default_response_headers(self) -> dict[str, str]:
        return {"Allow": self.allow}

    def options(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:  # type: ignore[override]  # no DRF renderer needed
        """Answer from the route alone: the same for what exists and what does not."""
        return _empty(200, {"Allow": self.allow})

    def handle_exception(self, exc: Exception) -> HttpResponseBase:  # type: ignore[override]  # as above
        """Turn whatever was raised into a problem; a refusal inside a tenant leaves its event."""
        refusal = as_service_error(exc)
        request = self.request._request
        if refusal.status >= 500:
            log_fault(request, exc)
        caller = getattr(self, "caller", None)
        if isinstance(refusal, Forbidden) and not isinstance(refusal, CSRFFailed) and caller:
            try:
                record_denied(refusal, tenant_id=caller.tenant_id, actor=caller.actor)
            except Exception as fault:  # noqa: BLE001  without its event a 403 is no answer
                log_fault(request, fault)
                refusal = as_service_error(fault)
        return answer_problem(request, refusal)

    def finalize_response(  # type: ignore[override]  # as above
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        answered: HttpResponseBase = super().finalize_response(request, response, *args, **kwargs)
        answered["X-Request-ID"] = request_id_of(request._request)
        mark_private(answered)
        # Django's own line about a refusal names the path, and the mail to admins that it sends
        # for a fault holds headers and body besides: the middleware's line stands for both.
        answered._has_been_logged = True  # type: ignore[attr-defined]  # read by django.utils.log
        return answered


def check_members(body: Mapping[str, Any], known: Iterable[str], pointer: str) -> None:
    """
    Refuse members that nothing reads: a misspelt one must not be ignored.

    Raises:
        ValidationError: names the first unknown member.
    """
    for name in body:
        if name not in known:
            escaped = name[:64].replace("~", "~0").replace("/", "~1")
            raise ValidationError("There is no such member here.", pointer=f"{pointer}/{escaped}")


def given_reason(parameters: MultiValueDict[str, str]) -> str | None:
    """
    Return `?reason=`, if there is one.

    Raises:
        ValidationError: it is not 1-500 characters.
    """
    reason = parameters.get("reason")
    if reason is not None and not 1 <= len(reason.strip()) <= len(reason) <= 500:
        raise ValidationError("A reason has 1 to 500 characters.", pointer="/query/reason")
    return reason


def answer(
    body: str | Mapping[str, Any] | None,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> HttpResponse:
    """Return JSON; text is passed on as it is."""
    if body is None:
        return _empty(status, headers or {})
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return HttpResponse(
        text.encode("utf-8"),
        status=status,
        headers=dict(headers or {}),
        content_type="application/json",
    )


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _has_utf8_path(request: HttpRequest) -> bool:
    # As the client wrote it: where Django cannot decode a byte, it leaves a percent sign and two
    # digits, which a key may hold as well.
    target = request.META.get("REQUEST_URI") or request.META.get("RAW_URI")
    if target is None:
        return not BROKEN_BYTE.search(request.path)
    return _is_utf8(unquote_to_bytes(str(target).partition("?")[0]))


def _empty(status: int, headers: Mapping[str, str]) -> HttpResponse:
    response = HttpResponse(status=status, headers=dict(headers))
    del response["Content-Type"]  # Django's default is HTML, and there is nothing
    return response


def _accepts_json(header: str) -> bool:
    """Whether an Accept header (RFC 9110, 12.5.1) lets `application/json` through."""
    best: tuple[int, float] = (-1, 0.0)
    for part in header.split(","):
        media, *parameters = (piece.strip().lower() for piece in part.split(";"))
        specificity = {"*/*": 0, "application/*": 1, "application/json": 2}.get(media, -1)
        if media == "application/problem+json":
            specificity = 0
        quality = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    quality = float(parameter[2:])
                except ValueError:
                    quality = 0.0
        if specificity >= 0 and (specificity, quality) > best:
            best = (specificity, quality)
    return best[1] > 0


class UnknownRoute(TenantAPIView):
    """Everything below the API that no route names."""

    def get_authenticators(self) -> list[BaseAuthentication]:
        return []

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        request_id_of(request._request)
        raise NotFound("There is no such route.")


def _handler(refusal: type[ServiceError]) -> Any:
    def view(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
        request_id_of(request)
        if exception is not None and refusal is ValidationError:
            return answer_problem(request, as_service_error(exception))
        return answer_problem(request, refusal())

    return view


#: For a project's `handler400` and its siblings.
bad_request = _handler(ValidationError)
permission_denied = _handler(PermissionDenied)
not_found = _handler(NotFound)
server_error = _handler(InternalError)
