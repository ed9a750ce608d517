"""The loop around a model, against a model server that says what a script tells it to."""

import http.server
import json
import threading

import pytest

from agents.loop import MOST_CALLS, ChatCompletions, LoopExhausted, ModelUnavailable, run_loop
from tenants.callers import find_caller
from tenants.tokens import digest_of


class Model:
    """A server of chat completions: answers from a script, keeps what it was asked."""

    def __init__(self):
        self.script, self.asked = [], []
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                model.asked.append({**body, "authorization": self.headers["Authorization"]})
                said = model.script.pop(0)
                said = said(body) if callable(said) else said
                status, raw, *cut = said if isinstance(said, tuple) else (200, json.dumps(
                    {"choices": [{"message": {"role": "assistant", **said}}]}).encode())  # fmt: skip
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw) + sum(cut)))
                self.send_header("Location", "http://127.0.0.1:9/")
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.completions = ChatCompletions(
            f"http://127.0.0.1:{self.server.server_port}/v1/chat/completions", "scripted", key="k"
        )

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def model():
    model = Model()
    yield model
    model.close()


def calls(*named):
    return {"content": None, "tool_calls": [
        {"id": f"c{number}", "type": "function",
         "function": {"name": name, "arguments": text if isinstance(text, str) else json.dumps(text)}}
        for number, (name, text) in enumerate(named)
    ]}  # fmt: skip


@pytest.fixture
def run(world, model):
    def run(name="bound", **more):
        api = getattr(world, name)
        caller = find_caller(tenant=world.tenant.slug, digest=digest_of(api.token))
        return run_loop(
            caller=caller, call_model=model.completions,
            messages=[{"role": "user", "content": "How do I like replies?"}], **more,
        )  # fmt: skip

    return run


def test_looks_up_and_answers(world, model, run):
    world.alice.give("me", "support")
    world.alice.write("me", "reply_style", "brief")
    model.script = [calls(("get_memory", {"key": "reply_style"})), {"content": "Briefly."}]
    ended = run()
    assert (ended.text, list(ended.lookups)) == ("Briefly.", ["get_memory"])
    first, second = model.asked
    assert first["tool_choice"] == "required"
    offered = {tool["function"]["name"] for tool in first["tools"]}
    assert {"get_memory", "list_memories"} <= offered
    assert not offered & {"set_memory", "delete_memory", "forget_memories"}
    assert second["tool_choice"] == "auto"
    assert {"set_memory", "delete_memory"} <= {one["function"]["name"] for one in second["tools"]}
    told = second["messages"][-1]
    assert (told["role"], told["tool_call_id"]) == ("tool", "c0")
    assert json.loads(told["content"])["value"] == "brief"
    assert first["authorization"] == "Bearer k"
    assert ended.messages[-1] == {"role": "assistant", "content": "Briefly."}


def test_an_answer_from_nothing_is_not_taken(world, model, run):
    model.script = [{"content": "You like long ones."}, {"content": "Really."},
                    calls(("list_memories", {})), {"content": "I do not know."}]  # fmt: skip
    ended = run()
    assert ended.text == "I do not know."
    assert [one["tool_choice"] for one in model.asked] == ["required"] * 3 + ["auto"]
    assert "long ones" not in json.dumps(ended.messages)


def test_writing_before_looking_is_not_done(world, model, run):
    model.script = [
        calls(("set_memory", {"key": "k", "value": 1})), calls(("delete_memory", {"key": "k"})),
        calls(("get_memory", {"key": 3})), calls(("get_memory", "{broken")), calls(("get_memory", {"Key": "k"})),
        calls(("get_memory", {"key": "k"})), calls(("set_memory", {"key": "k", "value": 2})),
        {"content": "Kept."},
    ]  # fmt: skip
    ended = run()
    assert [one["tool_choice"] for one in model.asked] == ["required"] * 6 + ["auto"] * 2
    # That nothing is there was looked up; that a call made no sense was not.
    assert list(ended.lookups) == ["get_memory"]
    assert world.alice.read("me", "k").json["value"] == 2
    assert len(world.events("preference.created")) == 1


def test_the_credential_decides_the_person(world, model, run):
    world.bob.write("me", "k", "bob's")
    model.script = [
        calls(("get_memory", {"key": "k", "scope": "user::bob"}), ("list_memories", {"user": "bob"}),
              ("list_memories", {"scope": "user::bob"})),
        {"content": "-"},
    ]  # fmt: skip
    with world.denied(2):
        ended = run()
    told = [json.loads(one["content"])["code"] for one in ended.messages if one["role"] == "tool"]
    assert told == ["permission_denied", "validation_error", "permission_denied"]
    assert "bob's" not in json.dumps(ended.messages)


def test_it_ends(world, model, run):
    model.script = [calls(("get_memory", {"key": "k"}))] * 3
    with pytest.raises(LoopExhausted):
        run(most_turns=3)
    assert len(model.asked) == 3
    many = [("get_memory", {"key": "k"})] * (MOST_CALLS + 5)
    model.script = [calls(*many), {"content": "Done."}]
    ended = run()
    assert len(ended.lookups) == MOST_CALLS
    assert len([one for one in ended.messages if one["role"] == "tool"]) == MOST_CALLS + 5


def test_credentials_stay_out(world, model, run):
    model.script = [calls(("get_memory", {"key": "k"})),
                    calls(("set_memory", {"key": "k", "value": "AKIA" + "IOSFODNN7EXAMPLE"})),
                    {"content": "No."}]  # fmt: skip
    ended = run()
    assert json.loads(ended.messages[-2]["content"])["rule"] == "AWS access key"
    assert world.alice.read("me", "k").status == 404


@pytest.mark.parametrize("said", [
    {"content": None, "tool_calls": ["x", {}, {"id": 1}, {"function": "x"}, {"function": {"name": []}}]},
    {"content": None, "tool_calls": "get_memory"},
    calls(("get_memory", '{"key": "a", "key": "b"}'), ("get_memory", '"\\ud800"'), ("get_memory", "[]")),
])  # fmt: skip
def test_odd_calls_are_survived(world, model, run, said):
    model.script = [said, calls(("get_memory", {"key": "k"})), {"content": "Done."}]
    ended = run()
    assert (ended.text, list(ended.lookups)) == ("Done.", ["get_memory"])


@pytest.mark.parametrize("said", [
    (500, b"canary"), (307, b""), (200, b"canary"), (200, b"{}"), (200, b'{"choices": []}'),
    (200, b'{"choices": [{"message": "canary"}]}'), (200, b'{"choices": 3}'),
    (200, b"canary", 1),
])  # fmt: skip
def test_a_model_that_is_away(world, model, run, said):
    model.script = [said]
    with pytest.raises(ModelUnavailable) as raised:
        run()
    assert "canary" not in str(raised.value)


def test_addresses_of_models():
    with pytest.raises(ValueError, match="https"):
        ChatCompletions("file:///etc/passwd", "x")
