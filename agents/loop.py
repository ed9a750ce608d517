"""
A small loop around a language model: it looks up before it may answer, and ends after some turns.

Knows no provider. A model is a function that takes messages, tools and which of them must be
called, in the form of OpenAI's chat completions; `ChatCompletions` is one over HTTP. Whose memories
the tools reach is the caller's, never the model's choice.
"""

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.tool_schemas import INSTRUCTIONS, TOOLS
from agents.tools import answer_tool
from tenants.callers import Caller
from tenants.documents import JSONValue, read
from tenants.exceptions import BadRequest

type ChatMessage = Mapping[str, Any]
type CallModel = Callable[[Sequence[ChatMessage], Sequence[Mapping[str, Any]], str], ChatMessage]

#: Calls that one turn may hold; a model that asks for more is told so.
MOST_CALLS = 16


class LoopExhausted(Exception):
    """The model did not come to an answer within the turns that it had."""


class ModelUnavailable(Exception):
    """The model could not be asked, or answered with what is no chat completion."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """
    What the loop ended with.

    Attributes:
        messages: the whole conversation, what went to the model and what came from it.
        lookups: names of the tools that were read with, in their order.
    """

    text: str
    messages: Sequence[ChatMessage]
    lookups: Sequence[str]


@dataclass(slots=True)
class _Conversation:
    caller: Caller
    messages: list[ChatMessage]
    lookups: list[str] = field(default_factory=list)


def run_loop(
    *,
    caller: Caller,
    messages: Sequence[ChatMessage],
    call_model: CallModel,
    most_turns: int = 8,
) -> Conclusion:
    """
    Let a model work with the caller's memories until it answers.

    Until something has been looked up, only the tools that read are offered, one of them must be
    called, and an answer without is not taken. Afterwards all tools are, as the model likes.

    Args:
        caller: whose credential this is; it decides which person and tenant the tools reach.
        messages: what the conversation begins with.
        call_model: asks the model; `required` or `auto` says whether it must call a tool.
        most_turns: how often the model may be asked.

    Raises:
        LoopExhausted: no answer within `most_turns`.
        ModelUnavailable: `call_model` raised it.
    """
    talk = _Conversation(caller, [{"role": "system", "content": INSTRUCTIONS}, *messages])
    offered = [tool for tool in TOOLS.values() if not tool.asks]
    reading = [tool for tool in offered if tool.only_reads]
    for _ in range(most_turns):
        may_answer = bool(talk.lookups)
        tools = [tool.as_openai() for tool in (offered if may_answer else reading)]
        said = call_model(tuple(talk.messages), tools, "auto" if may_answer else "required")
        calls = said.get("tool_calls")
        if isinstance(calls, list) and calls:
            talk.messages.append(
                {"role": "assistant", "content": said.get("content"), "tool_calls": calls}
            )
            allowed = {tool["function"]["name"] for tool in tools}
            talk.messages += [
                _answer(talk, call, number, allowed) for number, call in enumerate(calls)
            ]
        elif may_answer:
            text = said.get("content")
            talk.messages.append({"role": "assistant", "content": text})
            return Conclusion(text if isinstance(text, str) else "", talk.messages, talk.lookups)
        else:
            talk.messages.append(
                {
                    "role": "system",
                    "content": "Look up what is kept before you answer: call a tool.",
                }
            )
    raise LoopExhausted(f"The model gave no answer in {most_turns} turns.")


def _answer(talk: _Conversation, call: Any, number: int, allowed: set[str]) -> ChatMessage:
    """Return the message that answers one call; whatever is wrong with the call is said there."""
    call = call if isinstance(call, dict) else {}
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    name, text = function.get("name"), function.get("arguments")
    if number >= MOST_CALLS:
        told = _refused("validation_error", f"One turn takes {MOST_CALLS} calls.")
    elif not isinstance(name, str) or name not in allowed:
        told = _refused("validation_error", "This tool is not offered now.")
    else:
        told = _called(talk, name, text)
    return {"role": "tool", "tool_call_id": str(call.get("id")), "content": told}


def _called(talk: _Conversation, name: str, text: object) -> str:
    try:
        arguments: JSONValue = (
            read(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else None
        )
    except BadRequest as refusal:
        return _refused(refusal.code, refusal.detail)
    given = answer_tool(caller=talk.caller, name=name, arguments=arguments)
    if TOOLS[name].only_reads and not (given.is_error and _is_malformed(given.text)):
        talk.lookups.append(name)
    return given.text


def _is_malformed(text: str) -> bool:
    """Whether nothing was looked up at all. That nothing is there, or may be seen, is an answer."""
    return int(json.loads(text)["status"]) in (400, 500, 503)


def _refused(code: str, detail: str) -> str:
    return json.dumps({"code": code, "status": 400, "detail": detail})


class ChatCompletions:
    """
    A model behind an HTTP interface like OpenAI's chat completions, as `call_model`.

    Args:
        url: of the completions, e.g. ``https://models.example/v1/chat/completions``.
        model: name of the model there.
        key: bearer token of the provider, if it wants one.
        seconds: how long one answer may take.
    """

    def __init__(
        self, url: str, model: str, *, key: str | None = None, seconds: float = 60
    ) -> None:
        if not url.startswith(("https://", "http://")):
            raise ValueError("The address of a model is https:// or http://.")
        self.url, self.model, self.key, self.seconds = url, model, key, seconds
        # Neither redirects, which would take the key elsewhere, nor files.
        self._opener = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.HTTPHandler(),
            urllib.request.HTTPSHandler(context=ssl.create_default_context()),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
        ):
            self._opener.add_handler(handler)

    def __call__(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        tool_choice: str,
    ) -> ChatMessage:
        body = {
            "model": self.model, "messages": list(messages), "tools": list(tools),
            "tool_choice": tool_choice,
        }  # fmt: skip
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        request = urllib.request.Request(self.url, json.dumps(body).encode(), headers)  # noqa: S310  checked above
        try:
            with self._opener.open(request, timeout=self.seconds) as response:
                message = json.loads(response.read())["choices"][0]["message"]
        except urllib.error.HTTPError as refusal:
            refusal.close()
            raise ModelUnavailable(f"The model's server answered {refusal.code}.") from None
        except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError) as fault:
            # Its words may repeat what was asked.
            raise ModelUnavailable(f"The model was not reached: {type(fault).__name__}.") from None
        if not isinstance(message, dict):
            raise ModelUnavailable("The model answered with no message.")
        return message
