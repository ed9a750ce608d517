"""The bridge for desktop clients, as a process: nothing but protocol on its standard output."""

import http.server
import json
import os
import select
import subprocess
import sys
import threading

import pytest
from django.conf import settings

from agents.stdio import Bridge
from tests.agents.client import LEGACY, MODERN
from tests.config.processes import PATIENCE, make_environment


class Desktop:
    """A client that starts the bridge, and reads its bytes."""

    def __init__(self, url, token, **environment):
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "mcp_stdio"],
            cwd=settings.BASE_DIR,
            env=make_environment(CONSENTFUL_MCP_URL=url, CONSENTFUL_TOKEN=token, **environment),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.lines = []

    def say(self, line):
        self.process.stdin.write(
            line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
        )
        self.process.stdin.flush()

    def hear(self):
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        assert ready, "no answer"
        self.lines.append(self.process.stdout.readline())
        return json.loads(self.lines[-1])

    def ask(self, method, params=None, identity=1):
        self.say({"jsonrpc": "2.0", "id": identity, "method": method, "params": params or {}})
        answer = self.hear()
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", identity)
        return answer

    def call(self, tool, **arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]

    def end(self):
        rest, errors = self.process.communicate(timeout=PATIENCE)
        assert rest == b""
        return self.process.returncode, errors.decode()


@pytest.fixture
def desktop(server, world):
    """Start the bridge for one of the world's callers; it ends with the test."""
    begun = []

    def desktop(name="bound", **environment):
        environment.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
        url = f"{server}/mcp/{world.tenant.slug}"
        begun.append(Desktop(url, getattr(world, name).token, **environment))
        return begun[-1]

    yield desktop
    for one in begun:
        one.process.kill()
        one.process.communicate()


def initialize(client):
    opened = client.ask("initialize", {"protocolVersion": LEGACY, "capabilities": {},
                                       "clientInfo": {"name": "x", "version": "1"}})  # fmt: skip
    assert opened["result"]["protocolVersion"] == LEGACY
    client.say({"jsonrpc": "2.0", "method": "notifications/initialized"})


def test_C089_nothing_but_protocol_is_printed(world, desktop):
    client = desktop(DJANGO_SETTINGS_MODULE="tests.agents.noisy_settings", PYTHONWARNINGS="always")
    initialize(client)
    assert len(client.ask("tools/list")["result"]["tools"]) >= 5
    made = client.call("set_memory", key="note", value="zwei\nZeilen \u2028 und \x85 mehr")
    assert made["isError"] is False
    read = client.call("get_memory", key="note")["structuredContent"]
    assert read["value"] == "zwei\nZeilen \u2028 und \x85 mehr"
    assert read["scope"] == "user::alice"
    # A line that is no message, and one that is nothing at all, are survived.
    client.say(b"\n \n{broken\n")
    assert client.hear()["error"]["code"] == -32700
    client.say(b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}\n')
    assert client.hear()["error"]["code"] == -32700
    client.say(b'"' + b"x" * 2_000_000 + b'"\n')
    assert client.hear()["error"]["code"] == -32700
    assert client.call("get_memory", key="note")["isError"] is False
    code, errors = client.end()
    assert code == 0
    for said in ("a banner, on import", "a model is ready:", "past Python's own stream",
                 "a warning of Django's", "no line end"):  # fmt: skip
        assert said in errors, said
    for line in client.lines:
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        assert json.loads(line.decode("utf-8"))["jsonrpc"] == "2.0"


def test_newer_clients_need_no_handshake(world, desktop):
    client = desktop()
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN,
                      "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}}  # fmt: skip
    found = client.ask("server/discover", meta)["result"]
    assert found["supportedVersions"][0] == MODERN
    arguments = {"name": "forget_memories", "arguments": {"keys": ["a", "é"]}, **meta}
    assert client.ask("tools/call", arguments)["result"]["resultType"] == "input_required"
    assert client.ask("tools/call", {"name": "é", **meta})["error"]["code"] == -32602
    assert client.end()[0] == 0


def test_what_the_service_refuses_is_told(server, world, desktop):
    client = desktop("auditor")
    told = client.ask("tools/list")["error"]
    assert (told["code"], told["data"]["code"]) == (-32603, "permission_denied")
    nobody = Desktop(f"{server}/mcp/{world.tenant.slug}", "cst_unknown",
                     DJANGO_SETTINGS_MODULE="tests.settings")  # fmt: skip
    assert nobody.ask("tools/list")["error"]["data"]["code"] == "invalid_token"
    assert nobody.end()[0] == 0
    away = Desktop("http://127.0.0.1:9/mcp/x", "cst_x", DJANGO_SETTINGS_MODULE="tests.settings")
    assert "not reached" in away.ask("tools/list")["error"]["message"]
    assert "not reached" in away.ask("tools/list", identity="a")["error"]["message"]
    assert away.end()[0] == 0


@pytest.mark.parametrize(
    ("url", "token"),
    [("", ""), ("http://127.0.0.1/mcp/x", ""), ("http://127.0.0.1/mcp/x", "a b"),
     ("http://memory.example/mcp/x", "cst_x"), ("ftp://127.0.0.1/x", "cst_x"), ("x", "cst_x"),
     ("https://user:pw@memory.example/mcp/x", "cst_x")],
)  # fmt: skip
def test_addresses_that_would_give_the_token_away(url, token):
    with pytest.raises(ValueError, match=r"\.$"):
        Bridge(url, token)


def test_an_address_is_sent_as_a_request_line_takes_it():
    asked = []

    class Service(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service) as service:
        thread = threading.Thread(target=service.serve_forever)
        thread.start()
        try:
            for path in ("caf\u00e9", "a b", "caf%C3%A9"):
                bridge = Bridge(f"http://127.0.0.1:{service.server_port}/mcp/{path}", "cst_x")
                bridge.answer(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        finally:
            service.shutdown()
            thread.join()
    assert asked == ["/mcp/caf%C3%A9", "/mcp/a%20b", "/mcp/caf%C3%A9"]


def test_a_mistake_is_one_line_and_exit_1():
    client = Desktop("", "", DJANGO_SETTINGS_MODULE="tests.settings")
    code, errors = client.end()
    assert code == 1
    assert "CONSENTFUL_MCP_URL" in errors.splitlines()[-1]


class Odd(http.server.BaseHTTPRequestHandler):
    """A service that answers everything with something else than a message."""

    answers: list[tuple[int, bytes]] = []

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        status, body = self.answers.pop(0)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def test_whatever_comes_back_one_line_is_said():
    Odd.answers = [(502, b"<html>bad gateway"), (307, b""), (200, b"[1]"), (200, b'"x"'),
                   (200, b'{"jsonrpc": "2.0",\r\n "id": 1,\n "result": {}}')]  # fmt: skip
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Odd) as service:
        thread = threading.Thread(target=service.serve_forever)
        thread.start()
        bridge = Bridge(f"http://127.0.0.1:{service.server_port}/mcp/x", "cst_x")
        try:
            line = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}\n'
            said = [bridge.answer(line) for _ in range(5)]
        finally:
            service.shutdown()
            thread.join()
    assert [b"\n" in one or b"\r" in one for one in said] == [False] * 5
    assert [json.loads(one).get("error", {}).get("code") for one in said] == [-32603] * 4 + [None]
    assert bridge.answer(b'{"jsonrpc": "2.0", "method": "notifications/cancelled"}\n') is None
    assert os.environ.get("CONSENTFUL_TOKEN") is None
