"""Programs that ask a model over the chat protocol: what they ask is shown, and what is said is what they hear."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from assay.environments.calls import find_calls
from assay.environments.foreign.chat import Asked, Line, desk, goes_on, messages_of, said, tools_of
from assay.environments.tools import call, say
from assay.types import Tool

PAY = Tool("pay", "Pay.", {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line(desk())
    yield made
    made.close()


class Program(threading.Thread):
    """Asks once, in a thread."""

    def __init__(self, url: str, body: Any):
        super().__init__(daemon=True)
        self.url, self.body = url, body if isinstance(body, bytes) else json.dumps(body).encode()
        self.start()

    def run(self) -> None:
        host, _, path = self.url.removeprefix("http://").partition("/")
        wire = http.client.HTTPConnection(host, timeout=60)
        wire.request("POST", f"/{path}/chat/completions", self.body, {"Content-Type": "application/json"})
        answer = wire.getresponse()
        self.status, self.heard = answer.status, answer.read().decode()
        wire.close()

    def answer(self) -> tuple[int, str]:
        self.join(60)
        return self.status, self.heard


BODY = {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "Pay "}, {"text": "3."}]}]}


def test_what_is_asked_and_what_is_heard(line: Line) -> None:
    function = {"name": "pay", "parameters": dict(PAY.parameters), "description": "Pay."}
    program = Program(line.url, {**BODY, "tools": [{"type": "function", "function": function}]})
    asked = line.events.get(timeout=60)
    assert isinstance(asked, Asked)
    assert messages_of(asked.body) == ({"role": "user", "content": "Pay 3."},) and tools_of(asked.body) == (PAY,)
    text = f"Of course. {call('pay', n=3).text}"
    message = said(replace(say(text), calls=find_calls(text, [PAY])), 4)
    asked.answer(message)
    status, heard = program.answer()
    [choice] = json.loads(heard)["choices"]
    assert status == 200 and choice["finish_reason"] == "tool_calls" and choice["message"]["content"] == "Of course."
    [made] = choice["message"]["tool_calls"]
    assert made["id"] == "4_call_0" and json.loads(made["function"]["arguments"]) == {"n": 3}
    # What cannot be made is text, and so is it heard.
    for broken in ("<tool_call>{</tool_call>", call("pay", n="x").text, call("steal", n=1).text, "no call"):
        heard_as = said(replace(say(broken), calls=find_calls(broken, [PAY])), 0)
        assert heard_as == {"role": "assistant", "content": broken}


def test_a_stream_says_the_same(line: Line) -> None:
    program = Program(line.url, {**BODY, "stream": True, "stream_options": {"include_usage": True}})
    line.events.get(timeout=60).answer(said(call("pay", n=3), 0))
    status, heard = program.answer()
    *events, done = heard.strip().split("\n\n")
    first, last, usage = (json.loads(event.removeprefix("data: ")) for event in events)
    assert status == 200 and done == "data: [DONE]"
    assert first["choices"][0]["delta"]["tool_calls"][0]["index"] == 0
    assert last["choices"][0]["finish_reason"] == "tool_calls" and usage["choices"] == [] and "usage" in usage


def test_who_is_refused(line: Line) -> None:
    other = Line(desk())
    waiting = Program(other.url, BODY)
    other.events.put(other.events.get(timeout=60))
    other.close()
    status, heard = waiting.answer()
    assert status == 400 and json.loads(heard)["error"]["code"] == "context_length_exceeded"
    assert Program(other.url, BODY).answer()[0] == 404
    assert Program(line.url, b"[1]").answer()[0] == Program(line.url, b"{").answer()[0] == 400
    assert line.events.empty()


def test_a_conversation_goes_on_or_was_rewritten() -> None:
    made = said(call("pay", n=3), 0)
    start: Any = [{"role": "user", "content": "Pay 3."}, made]
    more: Any = {"role": "tool", "content": "left 7", "tool_call_id": "0_call_0"}
    assert goes_on(start, [*start, more])
    assert goes_on(start, [start[0], {**made, "content": " "}, more])
    assert not goes_on(start, start) and not goes_on(start, [more])
    assert not goes_on(start, [{"role": "user", "content": "In short: pay."}, made, more])
    assert not goes_on(start, [start[0], said(call("pay", n=4), 0), more])
