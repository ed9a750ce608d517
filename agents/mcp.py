"""
The Model Context Protocol over HTTP: one endpoint per tenant, for the tools of `agents.tools`.

django-mcpz speaks the protocol: versions, headers, discovery, the list of tools, questions to the
person. Around it stands what the HTTP interface does for every request, so that the two cannot
differ: who asks, which tenant, sizes, refusals, the log. The library never sees arguments or
values; it is given a digest in their place.
"""

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import Resolver404, get_script_prefix, resolve
from django.utils.crypto import salted_hmac
from django.utils.module_loading import import_string
from django_mcpz.jsonrpc import INVALID_REQUEST, PARSE_ERROR, error_response
from django_mcpz.legacy import is_legacy_request
from django_mcpz.server import (
    ElicitationDeclinedError,
    ElicitationUnavailableError,
    MCPServer,
    ToolError,
    elicit,
)
from rest_framework.authentication import BaseAuthentication
from rest_framework.authentication import SessionAuthentication as DRFSessionAuthentication
from rest_framework.request import Request

from agents.conf import authorization_servers, mcp_origins, public_url
from agents.mcp_messages import Message, read_message
from agents.tool_schemas import INSTRUCTIONS, TOOLS, Tool
from agents.tools import ToolAnswer, answer_tool, explain
from tenants.callers import Caller
from tenants.conf import authentication_classes
from tenants.documents import JSONValue, canonical
from tenants.exceptions import BadRequest, NotFound, PermissionDenied, ValidationError
from tenants.roles import READERS
from tenants.views import TenantAPIView, answer

WELL_KNOWN = "/.well-known/oauth-protected-resource"

#: What the person is asked with: one box to tick.
CONFIRMATION = {
    "type": "object",
    "properties": {"confirm": {"type": "boolean", "title": "Yes, forget them", "default": False}},
    "required": ["confirm"],
}


class Call:
    """One request: who sent it, and the arguments that the library is not shown."""

    def __init__(self, caller: Caller, message: Message) -> None:
        self.caller = caller
        self.fault = message.fault
        self.arguments: JSONValue = message.params.get("arguments") or {}


class Server(MCPServer):
    """The protocol itself. Where a request comes from was judged by the view."""

    def _origin_allowed(self, request: HttpRequest) -> bool:
        return True

    def _tool_error(self, request: HttpRequest, request_id: str | int, text: str) -> HttpResponse:
        """Return a refusal as text and, for programs, as the same object."""
        content = {"content": [{"type": "text", "text": text}], "isError": True}
        structured = {"structuredContent": msgspec.Raw(text.encode("utf-8"))}
        return self._result(request, request_id, {**content, **structured})


class Endpoint(TenantAPIView):
    """
    What an MCP client talks to. Refuses like every resource of a tenant, and before all of that a
    foreign `Origin`. Takes no session of Django: a page that somebody visits could use it.
    """

    roles = {"POST": READERS}
    # The protocol describes itself.
    schema = None  # type: ignore[assignment]

    def get_authenticators(self) -> list[BaseAuthentication]:
        classes = [import_string(path) for path in authentication_classes()]
        return [one() for one in classes if not issubclass(one, DRFSessionAuthentication)]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        check_origin(request._request)
        super().initial(request, *args, **kwargs)

    def authenticate(self, request: Request, tenant: str) -> Caller:
        caller = super().authenticate(request, tenant)
        # None is ever opened here, so whoever names one of the older protocol's starts anew.
        if "HTTP_MCP_SESSION_ID" in request.META and is_legacy_request(request._request):
            raise NotFound("There is no such session: send the request without one.")
        return caller

    def post(self, request: Request, tenant: str) -> HttpResponse:
        plain = request._request
        try:
            message = read_message(plain.body)
        except BadRequest as refusal:
            return error_response(None, PARSE_ERROR, refusal.detail, status=HTTPStatus.BAD_REQUEST)
        if not isinstance(message.content, dict):
            return error_response(
                None, INVALID_REQUEST, "A message is one object.", status=HTTPStatus.BAD_REQUEST
            )
        plain.consentful_call = Call(self.caller, message)  # type: ignore[attr-defined]
        plain._body = self.conceal(message)
        response = server(plain)
        if not response.content:
            del response["Content-Type"]
        return response

    def conceal(self, message: Message) -> bytes:
        """
        Return the message for the library: with a digest in the place of what is to be kept.

        The digest binds a question to this caller and these arguments. The library logs what it
        was given, and its reader makes -0 of -0.0.
        """
        params = message.params
        if isinstance(params.get("arguments"), dict):
            caller = self.caller
            text = canonical(
                [caller.tenant_id, caller.user_id, caller.on_behalf_of, params["arguments"]]
            )
            digest = salted_hmac("consentful.mcp", text, algorithm="sha256").hexdigest()
            params["arguments"] = {"digest": digest}
        elif "arguments" in params and params["arguments"] is not None:
            params["arguments"] = []
        return json.dumps(message.content).encode("utf-8")

    def handle_exception(self, exc: Exception) -> HttpResponseBase:  # type: ignore[override]  # as in the base
        response = super().handle_exception(exc)
        where = f'resource_metadata="{metadata_url(self.request._request)}"'
        if response.status_code == 401:
            challenge = str(response["WWW-Authenticate"])
            response["WWW-Authenticate"] = f"{challenge}{',' if '=' in challenge else ''} {where}"
        # A foreign origin is refused before it is known who asks; no other token would help.
        elif response.status_code == 403 and hasattr(self, "caller"):
            response["WWW-Authenticate"] = f'Bearer error="insufficient_scope", {where}'
        return response


class ResourceMetadata(TenantAPIView):
    """
    What a client must know to get a token for an endpoint (RFC 9728). Answered from the route
    alone, so that it tells nobody whether a tenant exists.
    """

    schema = None  # type: ignore[assignment]

    def get_authenticators(self) -> list[BaseAuthentication]:
        return []

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        self.check_encoding(request)
        path = "/" + kwargs["resource"]
        prefix = get_script_prefix()
        try:
            found = resolve(path[len(prefix) - 1 :]) if path.startswith(prefix) else None
        except Resolver404:
            found = None
        if found is None or getattr(found.func, "cls", None) is not Endpoint:
            raise NotFound

    def get(self, request: Request, resource: str) -> HttpResponse:
        told: dict[str, Any] = {
            "resource": f"{site(request._request)}/{quote(resource, safe=SAFE)}",
            "resource_name": "Consentful",
            "bearer_methods_supported": ["header"],
        }
        if servers := authorization_servers():
            told["authorization_servers"] = list(servers)
        return answer(told)


#: What stands in a path as it is (RFC 3986, section 3.3).
SAFE = "/:@!$&'()*+,;=~-._"


def site(request: HttpRequest) -> str:
    """Return scheme and host of this site, as clients know them; nothing for a foreign host."""
    try:
        return public_url() or f"{request.scheme}://{request.get_host()}"
    except DisallowedHost:
        return ""  # the request is being refused for that


def metadata_url(request: HttpRequest) -> str:
    """Return where the metadata of the endpoint at this path stands (RFC 9728, section 3.1)."""
    return f"{site(request)}{WELL_KNOWN}{quote(request.path, safe=SAFE)}"


def check_origin(request: HttpRequest) -> None:
    """
    Refuse a request that a web page of another site made a browser send.

    Raises:
        PermissionDenied: the origin is neither the site's own nor among `CONSENTFUL_MCP_ORIGINS`.
    """
    own = {f"{request.scheme}://{request.get_host()}", public_url()}
    origin = request.META.get("HTTP_ORIGIN")
    if origin is None:
        return
    if origin.lower() not in {one.lower() for one in (*own, *mcp_origins()) if one}:
        raise PermissionDenied("Pages of this origin may not call this endpoint.")


def run(tool: Tool) -> Callable[[HttpRequest, object], object]:
    """Return the function that the library calls for `tool`."""

    def call(request: HttpRequest, _: object) -> object:
        sent: Call = request.consentful_call  # type: ignore[attr-defined]
        if sent.fault is not None:
            given = ToolAnswer(json.dumps(explain(sent.fault), ensure_ascii=False), True)
        else:
            given = answer_tool(
                caller=sent.caller,
                name=tool.name,
                arguments=sent.arguments,
                confirm=lambda question, about: confirm(request, question, about),
            )
        if given.is_error:
            raise ToolError(given.text)
        return msgspec.Raw(given.text.encode("utf-8"))

    return call


def confirm(request: HttpRequest, question: str, about: str) -> bool:
    """
    Ask the person; the first time, this ends the call with the question as its answer.

    Args:
        about: what the question is about. Once that is something else, the person is asked anew.

    Raises:
        ValidationError: this client cannot ask.
    """
    try:
        given = elicit(request, question, CONFIRMATION, key=about)
    except ElicitationDeclinedError:
        return False
    except ElicitationUnavailableError as problem:
        raise ValidationError(
            "Forgetting several memories takes the person's confirmation, which this client cannot"
            " ask for (form mode elicitation of MCP 2026-07-28): delete them one by one with"
            " delete_memory."
        ) from problem
    return given.get("confirm") is True


def make_server() -> Server:
    """Return the protocol with every tool."""
    made = Server(
        name="consentful",
        version="1",
        title="Consentful",
        instructions=INSTRUCTIONS,
        # The view has settled who asks.
        auth=lambda request: None,
    )
    for tool in TOOLS.values():
        made.tool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=tool.takes,
            output_schema=dict(tool.gives),
            read_only=tool.only_reads,
            destructive=tool.destroys,
            idempotent=True,
            open_world=False,
        )(run(tool))
    return made


server = make_server()
