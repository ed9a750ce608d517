"""For suites that cannot send a token: whoever asks has that of the environment."""

import os
from typing import Any

from rest_framework.request import Request

from tenants.authentication import BearerAuthentication


class Everyone(BearerAuthentication):
    """Takes every request for one with the token in `MCP_SUITE_TOKEN`."""

    def authenticate(self, request: Request) -> Any:
        request.META["HTTP_AUTHORIZATION"] = f"Bearer {os.environ['MCP_SUITE_TOKEN']}"
        return super().authenticate(request)
