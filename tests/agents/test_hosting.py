"""The endpoint as a host has it: at another address, without the extra, over a real connection."""

import json
import re
import subprocess
import sys

import httpx
import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.urls import clear_script_prefix, set_script_prefix

from tests.agents.client import MCP, MODERN

WITHOUT = """
import sys
sys.modules["django_mcpz"] = sys.modules["msgspec"] = None  # as if neither were installed
import django
django.setup()
from django.core.exceptions import ImproperlyConfigured
import agents.conf, agents.credentials, agents.loop, agents.stdio, agents.tools, agents.urls
for name in ("agents.mcp_urls", "agents.mcp_metadata_urls"):
    try:
        __import__(name)
    except ImproperlyConfigured as told:
        print(told)
"""


def test_without_the_extra_the_rest_works():
    finished = subprocess.run(
        [sys.executable, "-c", WITHOUT], cwd=django_settings.BASE_DIR,
        env={"DJANGO_SETTINGS_MODULE": "tests.agents.small_settings", "PATH": ""},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    first, second = finished.stdout.splitlines()
    for line in (first, second):
        assert "consentful[mcp]" in line


def test_at_another_address(world, settings):
    settings.ROOT_URLCONF = "tests.agents.elsewhere_urls"
    client = MCP(world.tenant.slug, world.bound.token)
    client.path = f"/ai/tools/{world.tenant.slug}"
    assert client.call("list_memories").given["results"] == []
    client.token = None
    challenge = client.request("tools/list").headers["WWW-Authenticate"]
    where = re.search(r'resource_metadata="http://testserver([^"]+)"', challenge)[1]
    told = Client().get(where)
    assert told.json()["resource"] == f"http://testserver{client.path}"


@pytest.fixture
def prefix():
    """The service stands below a path of the server, as WSGI's SCRIPT_NAME says."""
    set_script_prefix("/site/")
    yield
    clear_script_prefix()


def test_below_a_path_of_the_server(prefix):
    well_known = "/.well-known/oauth-protected-resource"
    told = Client().get(f"{well_known}/site/mcp/acme")
    assert told.json()["resource"] == "http://testserver/site/mcp/acme"
    assert Client().get(f"{well_known}/mcp/acme").status_code == 404


def test_names_of_tenants_that_are_no_ascii(world):
    told = Client().get("/.well-known/oauth-protected-resource/mcp/caf%C3%A9%20%22")
    assert told.json()["resource"] == "http://testserver/mcp/caf%C3%A9%20%22"
    challenge = MCP("caf%C3%A9%22").request("tools/list").headers["WWW-Authenticate"]
    assert challenge.endswith('/mcp/caf%C3%A9%22"')


@pytest.fixture
def send(server, world):
    """Send raw bytes to the running service as an agent of alice's."""
    headers = {
        "Authorization": f"Bearer {world.bound.token}", "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": MODERN,
    }  # fmt: skip

    def send(method, params, **more):
        meta = {"io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {}}  # fmt: skip
        body = {"jsonrpc": "2.0", "id": "a", "method": method, "params": {**params, "_meta": meta}}
        own = {"Mcp-Method": method} | ({"Mcp-Name": params["name"]} if "name" in params else {})
        content = more.pop("content", json.dumps(body).encode())
        with httpx.Client(base_url=server) as client:
            return client.post(
                f"/mcp/{world.tenant.slug}", content=content,
                headers={**headers, **own, **more.pop("headers", {})},
            )  # fmt: skip

    return send


def test_over_a_real_connection(send, world):
    made = send("tools/call", {"name": "set_memory", "arguments": {"key": "k", "value": "é"}})
    assert made.json()["result"]["structuredContent"]["scope"] == "user::alice"
    assert made.headers["Cache-Control"] == "private, no-store"
    listed = send("tools/list", {})
    assert listed.json()["id"] == "a"
    # Sent in pieces: the service measures for itself.
    pieces = iter([b'{"jsonrpc": "2.0", "id": 1, "method": "ping"', b"}"])
    assert send("ping", {}, content=pieces, headers={"MCP-Protocol-Version": "2025-11-25"}).json() == {
        "jsonrpc": "2.0", "id": 1, "result": {},
    }  # fmt: skip
    big = iter([b'"' + b"x" * 200_000, b"x" * 200_000 + b'"'])
    assert send("ping", {}, content=big).status_code == 413
    assert send("ping", {}, content=b"\x97").json()["error"]["code"] == -32700
    foreign = send("tools/list", {}, headers={"Origin": "https://evil.example"})
    assert foreign.status_code == 403
    assert send("tools/list", {}, headers={"Authorization": "Bearer x"}).status_code == 401
    assert world.alice.listing().keys == ["k"]
