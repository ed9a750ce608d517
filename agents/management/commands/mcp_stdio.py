"""Let a desktop client that speaks MCP over standard input and output use the service."""

import os
import sys
from contextlib import suppress
from typing import Any

from django.core.management.base import CommandError

from agents.stdio import Bridge, take_output
from tenants.commands import ServiceCommand


class Command(ServiceCommand):
    help = (
        "Pass MCP messages from standard input on to the service, and its answers to standard"
        " output, until the input ends. CONSENTFUL_MCP_URL names the endpoint of a tenant,"
        " CONSENTFUL_TOKEN holds the token."
    )

    def run(self, **options: Any) -> None:
        output = take_output()
        try:
            bridge = Bridge(
                os.environ.get("CONSENTFUL_MCP_URL", ""), os.environ.get("CONSENTFUL_TOKEN", "")
            )
        except ValueError as mistake:
            raise CommandError(
                f"{mistake} Set CONSENTFUL_MCP_URL and CONSENTFUL_TOKEN."
            ) from mistake
        # The client left, or whoever started this from a terminal.
        with suppress(BrokenPipeError, KeyboardInterrupt):
            bridge.run(sys.stdin.buffer, output)
