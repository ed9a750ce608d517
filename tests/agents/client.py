"""A small client of MCP, in-process: both eras of the protocol, and requests that no client sends."""

import json
from functools import cached_property
from typing import Any

from django.test import Client

MODERN = "2026-07-28"
LEGACY = "2025-11-25"


class Reply:
    """What came back over HTTP, and the JSON-RPC message in it."""

    def __init__(self, response: Any) -> None:
        self.status: int = response.status_code
        self.headers = response.headers
        self.content: bytes = response.content
        assert self.headers["Cache-Control"] == "private, no-store"
        assert self.headers["X-Request-ID"]
        assert "html" not in self.headers.get("Content-Type", "")
        # No request whatever may be answered so.
        assert self.status != 500, self.content

    def __repr__(self) -> str:
        return f"<{self.status} {self.content[:500]!r}>"

    @cached_property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def fault(self) -> tuple[int, int]:
        """HTTP status and code of a JSON-RPC error."""
        return self.status, self.json["error"]["code"]

    @property
    def result(self) -> Any:
        assert self.status == 200, self
        return self.json["result"]

    @property
    def given(self) -> Any:
        """What a tool gave, which both of its forms must agree on."""
        result = self.result
        assert result["isError"] is False, self
        return self._structured(result)

    @property
    def refusal(self) -> Any:
        """Why a tool refused."""
        result = self.result
        assert result["isError"] is True, self
        return self._structured(result)

    @property
    def code(self) -> str:
        """The code with which a tool refused."""
        return self.refusal["code"]

    def _structured(self, result: Any) -> Any:
        (block,) = result["content"]
        assert block["type"] == "text"
        assert json.loads(block["text"]) == result["structuredContent"]
        return result["structuredContent"]


class MCP:
    """Requests of one credential to the endpoint of one tenant."""

    def __init__(
        self, tenant: str, token: str | None = None, *, era: str = MODERN, can_ask: bool = False
    ) -> None:
        self.path = f"/mcp/{tenant}"
        self.token = token
        self.era = era
        self.capabilities: dict[str, Any] = {"elicitation": {"form": {}}} if can_ask else {}

    def send(
        self,
        body: Any = None,
        *,
        raw: bytes | None = None,
        verb: str = "POST",
        headers: dict[str, str] | None = None,
        content_type: str = "application/json",
        client: Client | None = None,
    ) -> Reply:
        """Send one HTTP request as it stands."""
        known = {"Accept": "application/json, text/event-stream"}
        if self.token:
            known["Authorization"] = f"Bearer {self.token}"
        if verb == "POST":
            known["Content-Type"] = content_type  # Django's client sends none without a body
        data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        return Reply(
            (client or Client(raise_request_exception=False)).generic(
                verb, self.path, data, content_type=content_type,
                headers={**known, **(headers or {})},
            )
        )  # fmt: skip

    def request(self, method: str, params: dict[str, Any] | None = None, **more: Any) -> Reply:
        """Send one request of the protocol, with everything that its revision demands."""
        params = dict(params or {})
        headers = {"MCP-Protocol-Version": self.era}
        if self.era == MODERN:
            headers |= {"Mcp-Method": method}
            if "name" in params:
                headers |= {"Mcp-Name": params["name"]}
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": self.era,
                "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            }
        headers |= more.pop("headers", {})
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        return self.send(body, headers=headers, **more)

    def call(self, tool: str, **arguments: Any) -> Reply:
        """Call one tool."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def call_raw(self, arguments: bytes, *, tool: str = "set_memory") -> Reply:
        """Call one tool with arguments that `json` would not write."""
        holder = {"name": tool, "arguments": "HERE"}
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        }
        params = {**holder, "_meta": meta}
        body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": tool}
        return self.send(raw=body.encode().replace(b'"HERE"', arguments), headers=headers)
