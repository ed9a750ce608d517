"""How the studio's own API speaks, which is nobody else's business."""

from typing import Any

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User


class ShoutingRenderer(JSONRenderer):
    """JSON in capitals."""

    media_type = "application/vnd.studio"
    format = "shout"

    def render(self, data: Any, *args: Any, **kwargs: Any) -> bytes:
        return bytes(super().render(data, *args, **kwargs)).upper()


class NobodyAuthentication(BaseAuthentication):
    """Lets nobody in."""

    def authenticate(self, request: Request) -> Any:
        raise AuthenticationFailed("studio")


class BadgeAuthentication(BaseAuthentication):
    """Knows whoever wears a badge, which the studio's door has checked."""

    def authenticate(self, request: Request) -> tuple[User, None] | None:
        email = request.headers.get("X-Badge")
        return (User.objects.get(email=email), None) if email else None


class PickyNegotiation(BaseContentNegotiation):
    """Takes no renderer but the studio's."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return None

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        return ShoutingRenderer(), ShoutingRenderer.media_type


def confess(exc: Exception, context: Any) -> Response:
    """Answer every error with a friendly 200."""
    return Response({"oops": str(exc)}, status=200)
