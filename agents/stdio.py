"""
A bridge for desktop clients: JSON-RPC lines in, one HTTP request each, JSON-RPC lines out.

Knows neither the database nor Django, and decides nothing: the service does, by the token. What
is printed by anybody else in this process goes to standard error.
"""

import base64
import functools
import http.client
import ipaddress
import json
import os
import sys
from collections.abc import Callable
from typing import Any, BinaryIO
from urllib.parse import quote, urlsplit

#: Bytes of one line; the service takes less.
MOST_BYTES = 1024 * 1024
SECONDS = 60.0

PARSE_ERROR = -32700
INTERNAL_ERROR = -32603

VERSION = "io.modelcontextprotocol/protocolVersion"


@functools.cache
def take_output() -> BinaryIO:
    """Return standard output for the protocol alone; what prints later prints to standard error."""
    sys.stdout.flush()
    kept = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return kept


class Bridge:
    """
    Sends what a client says to one endpoint, and what the endpoint answers back.

    Raises:
        ValueError: the address is no HTTP address of an endpoint, or would show the token to
            whoever listens on the way.
    """

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise ValueError("The address is https://, a host and the path of an MCP endpoint.")
        if parts.scheme == "http" and not _is_loopback(parts.hostname):
            raise ValueError("A token is sent in the clear to this machine alone: use https.")
        if not token or not all("!" <= one <= "~" for one in token):
            raise ValueError("The token is visible ASCII characters without blanks.")
        connection = http.client.HTTPSConnection
        self._connect: Callable[[], http.client.HTTPConnection] = functools.partial(
            connection if parts.scheme == "https" else http.client.HTTPConnection,
            parts.hostname,
            parts.port,
            timeout=SECONDS,
        )
        # As a request line takes it; what is encoded already stays.
        self._path = quote(parts.path, safe="%/:@!$&'()*+,;=~") or "/"
        self._token = token
        #: What an older client has agreed upon; newer ones say it with each request.
        self._version: str | None = None

    def run(self, source: BinaryIO, target: BinaryIO) -> None:
        """Answer line after line until the client closes its end."""
        while line := source.readline(MOST_BYTES + 1):
            if len(line) > MOST_BYTES:
                while line and not line.endswith(b"\n"):
                    line = source.readline(MOST_BYTES)
                answer: bytes | None = _error(None, PARSE_ERROR, "The line is too long.")
            else:
                answer = self.answer(line)
            if answer is not None:
                target.write(answer + b"\n")
                target.flush()

    def answer(self, line: bytes) -> bytes | None:
        """Return the one line that answers a line; None for what is not answered."""
        if not line.strip():
            return None
        message = _parsed(line)
        if isinstance(message, dict) and ("id" not in message or "method" not in message):
            return None  # a notification, or an answer: the service waits for neither
        identity = message.get("id") if isinstance(message, dict) else None
        try:
            status, content = self._send(line, self._headers(message))
        except (OSError, http.client.HTTPException) as fault:
            return _error(
                identity, INTERNAL_ERROR, f"The service was not reached: {type(fault).__name__}."
            )
        answered = _parsed(content)
        if not isinstance(answered, dict) or "jsonrpc" not in answered:
            return _error(identity, INTERNAL_ERROR, *_explained(status, answered))
        if isinstance(message, dict) and message.get("method") == "initialize":
            agreed = answered.get("result")
            self._version = agreed.get("protocolVersion") if isinstance(agreed, dict) else None
        # Inside a string no line ends as such, so these are blanks between two parts.
        return content.replace(b"\r", b" ").replace(b"\n", b" ").strip()

    def _headers(self, message: Any) -> dict[str, str]:
        """Return what the newest revision wants to see beside a message, from the message."""
        headers = {}
        params = message.get("params") if isinstance(message, dict) else None
        if not isinstance(params, dict):
            params = {}
        meta = params.get("_meta")
        version = meta.get(VERSION) if isinstance(meta, dict) else None
        if isinstance(version, str):
            headers = {"Mcp-Method": _readable(message["method"])}
            if isinstance(params.get("name"), str):
                headers["Mcp-Name"] = _readable(params["name"])
        else:
            version = self._version
        return headers | ({"MCP-Protocol-Version": _readable(version)} if version else {})

    def _send(self, line: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = self._connect()
        try:
            connection.request(
                "POST",
                self._path,
                line,
                {
                    "Authorization": f"Bearer {self._token}",
                    "Content-Type": "application/json",
                    "Accept": "application/json, text/event-stream",
                    **headers,
                },
            )
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


def _parsed(text: bytes) -> Any:
    """Return what a line holds, or None; the service says what is wrong with it."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _explained(status: int, problem: Any) -> tuple[str, Any]:
    """Return what the HTTP interface said in its own words, and its problem document."""
    if isinstance(problem, dict) and "detail" in problem:
        return f"{problem.get('title')}: {problem['detail']}", problem
    return f"The service answered with the status {status}.", {"status": status}


def _error(identity: Any, code: int, text: str, data: Any = None) -> bytes:
    error = {"code": code, "message": text} | ({} if data is None else {"data": data})
    return json.dumps({"jsonrpc": "2.0", "id": identity, "error": error}).encode()


def _readable(text: object) -> str:
    """Return text as a header takes it: what it cannot hold travels in Base64."""
    plain = str(text)
    if plain and plain == plain.strip() and plain.isascii() and plain.isprintable():
        return plain
    return f"=?base64?{base64.b64encode(plain.encode('utf-8', 'replace')).decode()}?="


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
