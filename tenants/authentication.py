"""Credentials of the HTTP interface: bearer tokens and Django's session. A host may swap both."""

from typing import Any

from rest_framework.authentication import BaseAuthentication
from rest_framework.authentication import SessionAuthentication as DRFSessionAuthentication
from rest_framework.exceptions import PermissionDenied as DRFPermissionDenied
from rest_framework.request import Request

from tenants.callers import Caller, find_caller
from tenants.conf import resolve_tenant
from tenants.exceptions import CSRFFailed, InvalidToken
from tenants.tokens import digest_of


class TokenUser:
    """The user behind a token, as far as Django's request needs one: no row is loaded for it."""

    is_authenticated = True
    is_anonymous = False
    is_active = True
    is_staff = False
    is_superuser = False

    def __init__(self, caller: Caller) -> None:
        self.pk = self.id = caller.user_id
        self.username = caller.username

    def __str__(self) -> str:
        return self.username


class BearerAuthentication(BaseAuthentication):
    """``Authorization: Bearer <token>`` (RFC 6750). `request.auth` is then the resolved `Caller`."""

    def authenticate(self, request: Request) -> tuple[TokenUser, Caller] | None:
        scheme, _, credential = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        tenant = request.parser_context["kwargs"].get("tenant", "")
        caller = find_caller(
            tenant=resolve_tenant(request._request, tenant),
            digest=digest_of(credential.strip()),
        )
        if caller is None:
            raise InvalidToken
        return TokenUser(caller), caller

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class SessionAuthentication(DRFSessionAuthentication):
    """Django's session, with CSRF for every method that changes something."""

    def enforce_csrf(self, request: Request) -> None:
        try:
            super().enforce_csrf(request)
        except DRFPermissionDenied as refusal:
            raise CSRFFailed from refusal

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"

    def authenticate(self, request: Request) -> tuple[Any, None] | None:
        return super().authenticate(request)
