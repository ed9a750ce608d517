"""The protocol around the tools: who may ask, in which form, and what never works."""

import json
import logging
import re
import time

import pytest
from django.test import Client

from agents.mcp import server
from agents.tool_schemas import TOOLS
from tenants.models import Token
from tenants.tokens import revoke_token
from tests.agents.client import LEGACY, MCP, MODERN
from tests.http.client import API

MODES = [MODERN, LEGACY]


# Both eras ---------------------------------------------------------------------------------------


def test_discovery_and_list_for_the_newest_revision(connect):
    agent = connect("bound")
    found = agent.request("server/discover").result
    assert found["supportedVersions"][0] == MODERN
    assert LEGACY in found["supportedVersions"]
    assert found["capabilities"] == {"tools": {}}
    assert "Never" in found["instructions"]
    assert (found["cacheScope"], found["ttlMs"] > 0) == ("private", True)
    listed = agent.request("tools/list").result
    assert listed["cacheScope"] == "private"
    assert [one["name"] for one in listed["tools"]] == list(TOOLS)
    # The same for whoever asks: nothing to be learned, and an order that caches keep.
    assert connect("alice").request("tools/list").result["tools"] == listed["tools"]


def test_the_handshake_of_older_clients(connect):
    agent = connect("bound", era=LEGACY)
    opened = agent.request("initialize", {"protocolVersion": LEGACY, "capabilities": {},
                                          "clientInfo": {"name": "x", "version": "1"}})  # fmt: skip
    assert opened.result["protocolVersion"] == LEGACY
    assert opened.result["serverInfo"]["name"] == "consentful"
    assert "Mcp-Session-Id" not in opened.headers
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    reply = agent.send(note, headers={"MCP-Protocol-Version": LEGACY})
    assert (reply.status, reply.content) == (202, b"")
    assert "Content-Type" not in reply.headers
    assert agent.request("ping").result == {}
    assert [one["name"] for one in agent.request("tools/list").result["tools"]] == list(TOOLS)


def test_annotations_are_true(connect):
    for told in connect("bound").request("tools/list").result["tools"]:
        assert told["inputSchema"]["additionalProperties"] is False
        assert not {"tenant", "user", "user_id", "subject"} & set(told["inputSchema"]["properties"])
        notes = told["annotations"]
        reads = told["name"] in ("get_memory", "list_memories", "search_memories")
        assert notes["readOnlyHint"] is reads
        assert notes["destructiveHint"] is not reads
        assert (notes["idempotentHint"], notes["openWorldHint"]) == (True, False)


def test_headers_that_do_not_match_are_refused(connect):
    agent = connect("bound")
    call = ("tools/call", {"name": "get_memory", "arguments": {"key": "k"}})
    for headers in ({"Mcp-Name": "set_memory"}, {"Mcp-Method": "tools/list"}):
        assert agent.request(*call, headers=headers).fault == (400, -32020)
    unknown = agent.request(*call, headers={"MCP-Protocol-Version": "2099-01-01"})
    assert unknown.fault == (400, -32022)
    assert MODERN in unknown.json["error"]["data"]["supported"]
    assert agent.request("prompts/list").fault == (404, -32601)
    assert agent.request("tools/call", {"name": "drop_table"}).fault == (200, -32602)
    assert agent.request("tools/call", {"name": "get_memory", "arguments": [1]}).fault == (
        200, -32602,
    )  # fmt: skip


# Who asks ----------------------------------------------------------------------------------------


def test_without_a_token(world, connect):
    for name, token in (("none", None), ("unknown", "cst_x"), ("alien", "é")):
        for tenant in (world.tenant.slug, "there-is-none", "%00"):
            reply = MCP(tenant, token).request("tools/list")
            assert (reply.status, reply.json["code"]) == (
                401, "not_authenticated" if name == "none" else "invalid_token",
            )  # fmt: skip
            challenge = reply.headers["WWW-Authenticate"]
            assert challenge.startswith("Bearer ")
            assert ('error="invalid_token"' in challenge) is (name != "none")
            where = re.search(r'resource_metadata="([^"]+)"', challenge)[1]
            assert where == (f"http://testserver/.well-known/oauth-protected-resource/mcp/{tenant}")
            told = Client().get(where.removeprefix("http://testserver"))
            assert told.status_code == 200
            assert told.json() == {
                "resource": f"http://testserver/mcp/{tenant}",
                "resource_name": "Consentful",
                "bearer_methods_supported": ["header"],
            }


def test_metadata_of_nothing_else(settings):
    for path in ("api/v1/schema/", "mcp/", "mcp/a/b", "", "admin/"):
        assert Client().get(f"/.well-known/oauth-protected-resource/{path}").status_code == 404
    settings.CONSENTFUL_PUBLIC_URL = "https://memory.example/"
    settings.CONSENTFUL_AUTHORIZATION_SERVERS = ["https://login.example"]
    told = Client().get("/.well-known/oauth-protected-resource/mcp/acme").json()
    assert told["resource"] == "https://memory.example/mcp/acme"
    assert told["authorization_servers"] == ["https://login.example"]
    challenge = MCP("acme").request("tools/list").headers["WWW-Authenticate"]
    assert '"https://memory.example/.well-known/oauth-protected-resource/mcp/acme"' in challenge


def test_another_tenant_looks_like_none(world, make_world):
    other = make_world()
    other.alice.write("project::x", "k", 1)
    agent = world.agent
    for tenant in (other.tenant.slug, "there-is-none"):
        reply = MCP(tenant, agent.token).call("get_memory", scope="project::x", key="k")
        assert (reply.status, reply.json["code"]) == (404, "not_found")
        told = {**reply.json, "request_id": None}
        assert tenant not in json.dumps(told)


def test_roles_that_see_no_values(world, connect):
    with world.denied(1):
        reply = connect("auditor").request("tools/list")
    assert (reply.status, reply.json["code"]) == (403, "permission_denied")
    assert reply.headers["WWW-Authenticate"].startswith('Bearer error="insufficient_scope"')


def test_a_session_of_django_is_no_credential(world):
    client = Client(raise_request_exception=False)
    assert world.alice  # makes the user
    client.force_login(world.personas["alice"].user)
    assert client.get(f"/api/v1/tenants/{world.tenant.slug}/whoami").status_code == 200
    reply = MCP(world.tenant.slug).request("tools/list", client=client)
    assert (reply.status, reply.json["code"]) == (401, "not_authenticated")


@pytest.mark.parametrize("era", [LEGACY, "2025-06-18", "2025-03-26"])
def test_C091_a_session_id_is_no_credential(world, connect, era):
    alice, bob = connect("alice", era=era), connect("bob", era=era)
    opened = alice.request("initialize", {"protocolVersion": era, "capabilities": {},
                                          "clientInfo": {"name": "x", "version": "1"}})  # fmt: skip
    assert opened.status == 200
    assert "Mcp-Session-Id" not in opened.headers  # there is none to be stolen
    world.alice.write("me", "secret_plan", "hidden words")
    session = {
        "Mcp-Session-Id": "1868a90c-5d1c-4a4e-9f5b-0c8f5f8f8f8f",
        "MCP-Protocol-Version": era,
    }
    for verb in ("POST", "GET", "DELETE"):
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"} if verb == "POST" else None
        for client in (bob, alice):
            reply = client.send(body, verb=verb, headers=session)
            assert (reply.status, reply.json["code"]) == (404, "not_found")
            assert b"hidden words" not in reply.content
        nobody = MCP(world.tenant.slug).send(body, verb=verb, headers=session)
        assert nobody.status == 401
    assert alice.call("get_memory", key="secret_plan").given["value"] == "hidden words"
    token = Token.objects.get(user=world.personas["alice"].user, tenant=world.tenant)
    revoke_token(token_id=token.pk)
    assert alice.call("get_memory", key="secret_plan").status == 401
    assert alice.send({"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=session).status == 401


def test_newer_clients_have_no_sessions_to_name(connect):
    reply = connect("bound").request("tools/list", headers={"Mcp-Session-Id": "x"})
    assert reply.status == 200
    assert "Mcp-Session-Id" not in reply.headers


def test_other_methods(connect):
    for verb in ("GET", "PUT", "PATCH", "DELETE", "HEAD"):
        reply = connect("bound").send(verb=verb)
        assert (reply.status, reply.headers["Allow"]) == (405, "POST, OPTIONS")
        assert MCP("x").send(verb=verb).status == 401
    assert MCP("x").send(verb="OPTIONS").status == 200


# Where from --------------------------------------------------------------------------------------


def test_foreign_pages_are_refused(world, connect, settings):
    agent = connect("bound")
    settings.CONSENTFUL_MCP_ORIGINS = ["https://app.example"]
    settings.CONSENTFUL_PUBLIC_URL = "https://memory.example"
    for origin in ("http://testserver", "https://app.example", "https://APP.example",
                   "https://memory.example"):  # fmt: skip
        assert agent.request("tools/list", headers={"Origin": origin}).status == 200
    with world.denied(0):
        for origin in ("https://evil.example", "null", "", "http://app.example", "file://", "x",
                       "https://app.example.evil.example", "http://testserver:81"):  # fmt: skip
            for client in (agent, MCP("there-is-none")):
                reply = client.request("tools/list", headers={"Origin": origin})
                assert (reply.status, reply.json["code"]) == (403, "permission_denied"), origin
                assert "WWW-Authenticate" not in reply.headers
            assert agent.send(verb="OPTIONS", headers={"Origin": origin}).status == 403
            assert agent.send(verb="GET", headers={"Origin": origin}).status == 403
    # The name of a foreign site that was made to lead here.
    for origin in ({}, {"Origin": "http://evil.example"}):
        headers = {"Authorization": f"Bearer {agent.token}", "Host": "evil.example", **origin}
        answer = Client().post(agent.path, "{}", "application/json", headers=headers)
        assert answer.status_code == 400


# What is sent ------------------------------------------------------------------------------------


def test_C093_no_message_no_call(world, connect, caplog):
    agent = connect("bound")
    for raw, code in (
        (b'{"key": "a", "value": 1, "key": "b"}', -32700),
        (b'{"key": "a", "value": {"x": 1, "x": 2}}', -32700),
        (b'{"key": "a", "value": 1}, "name": "set_memory"', -32700),
        (b'{"key": "a", "value": "\x97"}', -32700),
        (b'{"key": "a", "value": "caf\xe9"}', -32700),
        (b'{"key": "a", "value": NaN}', -32700),
        (b'{"key": "a", "value": Infinity}', -32700),
    ):
        reply = agent.call_raw(raw)
        assert (reply.status, reply.json["error"]["code"]) == (400, code), reply
    for raw, code in (
        (b"", -32700),
        (b"\xff\xfe{}", -32700),
        (b"\xef\xbb\xbf{}", -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}', -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"', -32700),
        (b"[" * 100_000, -32700),
        (b"[" * 100_000 + b"]" * 100_000, -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600),
        (b'"x"', -32600),
        (b"{}", -32600),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 3}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": null}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "result": {}}', -32600),
    ):
        assert agent.send(raw=raw, headers={"MCP-Protocol-Version": LEGACY}).fault == (400, code), (
            raw
        )
    assert world.alice.listing().json["results"] == []
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("depth", [65, 100, 1_000, 9_000, 100_000])
def test_C093_deep_values_are_the_models_mistake(world, connect, caplog, depth):
    agent = connect("bound")
    for opened, closed in ((b"[", b"]"), (b'{"a":', b"}")):
        if depth == 100_000 and len(opened) > 1:
            depth = 40_000  # what a body may hold
        deep = opened * depth + b"1" + closed * depth
        for raw in (b'{"key": "k", "value": %s}' % deep, b'{"value": %s, "key": "k"}' % deep):
            refused = agent.call_raw(raw).refusal
            assert (refused["code"], refused["status"]) == ("invalid_json", 400)
    refused = agent.call_raw(b'{"key": "k", "value": 1, "key": 2, "tags": %s}' % deep)
    assert refused.fault == (400, -32700)
    assert world.alice.listing().json["results"] == []
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("depth", [80, 1_000, 9_500])
def test_C093_depth_is_refused_wherever_it_stands(world, connect, depth):
    agent = connect("bound")
    deep = b"[" * depth + b"]" * depth
    for name in (b"tags", b"scope", b"key", b"detail", b"unknown"):
        raw = b'{"key": "k", "value": 1, "%s": %s}' % (name, deep)
        if name == b"key":
            raw = b'{"value": 1, "key": %s}' % deep
        assert agent.call_raw(raw).code == "invalid_json"
    beside = b'{"key": "k", "value": 1}, "inputResponses": {"a": %s}' % deep
    assert agent.call_raw(beside).code == "invalid_json"
    other = b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": %s}}' % deep
    assert agent.send(raw=other, headers={"MCP-Protocol-Version": LEGACY}).fault == (400, -32700)
    assert world.alice.listing().json["results"] == []


def test_a_string_that_never_ends_is_refused_at_once(connect):
    agent = connect("bound")
    started = time.perf_counter()
    refused = agent.send(raw=b'{"jsonrpc": "2.0", "id": 1, "method": "%s' % (rb"\"" * 50_000))
    assert refused.fault == (400, -32700)
    # Each of its quotes tried as a beginning took minutes.
    assert time.perf_counter() - started < 5


def test_C093_what_no_store_keeps_is_told_to_the_model(world, connect):
    agent = connect("bound")
    for raw, code in (
        (b'{"key": "k", "value": 1e400}', "invalid_value"),
        (b'{"key": "k", "value": %s}' % (b"9" * 4_301), "invalid_value"),
        (b'{"key": "k", "value": "\\u0000"}', "invalid_json"),
        (b'{"key": "k", "value": ["\\ud800"]}', "invalid_json"),
        (b'{"key": "k\\u0000", "value": 1}', "invalid_json"),
        (b'{"scope": "user::\\udc00", "key": "k", "value": 1}', "invalid_json"),
    ):
        assert agent.call_raw(raw).code == code, raw
    assert world.alice.listing().json["results"] == []


def test_media_and_sizes(connect):
    agent = connect("bound")
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert agent.send(body, content_type="text/plain").status == 415
    assert agent.send(body, headers={"Content-Encoding": "gzip"}).status == 415
    assert agent.send(body, headers={"Accept": "text/html"}).status == 406
    assert agent.send(raw=b'"%s"' % (b"x" * 256 * 1024)).status == 413
    assert agent.send(body).status == 200  # a client of 2025-03-26


def test_nothing_that_is_sent_is_a_fault_of_ours(connect):
    """Every member of a call replaced by every kind of value."""
    agent = connect("bound")
    odd = [None, True, 0, -1, 2**70, 1.5, "", "x", "\x7f", "�", [], [[]], {}, {"a": {}}]
    good = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "set_memory", "arguments": {"key": "k", "value": 1},
        "_meta": {"io.modelcontextprotocol/protocolVersion": MODERN,
                  "io.modelcontextprotocol/clientCapabilities": {}}}}  # fmt: skip
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "set_memory"}
    places = [("jsonrpc",), ("id",), ("method",), ("params",), ("params", "name"),
              ("params", "arguments"), ("params", "_meta"), ("params", "requestState"),
              ("params", "inputResponses"),
              ("params", "_meta", "io.modelcontextprotocol/protocolVersion"),
              ("params", "_meta", "io.modelcontextprotocol/clientCapabilities"),
              *(("params", "arguments", name) for name in TOOLS["set_memory"].properties)]  # fmt: skip
    for place in places:
        for value in odd:
            body = json.loads(json.dumps(good))
            part = body
            for name in place[:-1]:
                part = part[name]
            part[place[-1]] = value
            assert agent.send(body, headers=headers).status in (200, 202, 400, 404), (place, value)
    for name in TOOLS:
        for member in TOOLS[name].properties:
            for value in odd:
                arguments = {"key": "k", "keys": ["k"], "value": 1, "query": "x", member: value}
                known = {one: arguments[one] for one in arguments if one in TOOLS[name].properties}
                agent.call(name, **known).result  # noqa: B018  refuses anything but 200
    for header in ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Accept"):
        for value in ("", "x", "é", "=?base64?!?=", "=?base64?/w==?="):
            agent.send(good, headers={**headers, header: value})


# What is left behind -----------------------------------------------------------------------------


def test_no_value_reaches_a_log(world, connect, caplog):
    caplog.set_level(logging.DEBUG)
    agent = connect("bound")
    agent.call("set_memory", key="canary_key", value="canary words", detail="canary detail")
    agent.call("get_memory", key="canary_key")
    agent.call("set_memory", key="canary_key", value="canary words")
    assert caplog.records
    for record in caplog.records:
        assert "canary" not in repr(record.__dict__)


def test_a_fault_is_an_answer_without_its_words(world, connect, caplog, monkeypatch):
    def fail(*args, **more):
        raise RuntimeError("canary words")

    agent = connect("bound")
    monkeypatch.setattr("agents.tools.get_preference", fail)
    assert agent.call("get_memory", key="k").code == "internal_error"
    monkeypatch.undo()
    assert "canary" not in caplog.text
    assert [one.name for one in caplog.records if one.levelno >= logging.ERROR] == [
        "consentful.faults"
    ]
    assert agent.call("get_memory", key="k").code == "not_found"


def test_the_library_knows_every_tool():
    assert list(server._tools) == list(TOOLS)


def test_HTTP_and_MCP_agree_on_what_is_stored(world, connect):
    agent = connect("bound")
    agent.call("set_memory", key="k", value={"a": 1.0}, tags=["x"])
    record = API(world.tenant.slug, agent.token).read("me", "k").json
    assert agent.call("get_memory", key="k").given == record
