"""Tools in ``/v1/chat/completions``: told to the model as its template has them, called as OpenAI's protocol has it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from serving import answer, connect, post, running_server, small_engine

from assay.engines.base import Request
from assay.serve.server import ModelServer
from assay.types import Episode

ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add numbers.",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    },
}
TEMPLATE = (
    "{% for t in tools or [] %}[{{ t['function']['name'] }}: {{ t['function']['description'] }}]{% endfor %}"
    "{% for m in messages %}{{ m['role'] }}:{{ m['content'] }}{% for c in m['tool_calls'] or [] %}"
    "<{{ c['function']['name'] }} {{ c['function']['arguments']['a'] }}>{% endfor %}|{% endfor %}a:"
)
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'


class Saying:
    """Has a server's model say given texts, and remembers what it was asked."""

    def __init__(self, server: ModelServer):
        self.engine = server.engine
        self.texts: list[str] = []
        self.asked: list[str] = []
        self.engine.generate = self.generate  # type: ignore[method-assign]

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        return [[self.said(i, request)] for i, request in enumerate(requests)]

    def said(self, number: int, request: Request) -> Episode:
        self.asked.append(self.engine.decode(self.engine.encode(request.prompt)))
        text = self.texts.pop(0)
        ids = self.engine.encode_response(text)
        for token in ids.tolist():
            if self.engine.drawn is not None:
                self.engine.drawn(number, 0, token, -1.0)
        zeros = np.zeros(len(ids), dtype=np.float32)
        return Episode(self.engine.encode(request.prompt), ids, zeros == 0, zeros, text, "eos", zeros)


@pytest.fixture(scope="module")
def saying() -> Iterator[tuple[ModelServer, Saying]]:
    engine = small_engine()
    engine.policy.tokenizer.chat_template, engine.policy.chat = TEMPLATE, True
    with running_server(ModelServer(engine, "nano", ("127.0.0.1", 0))) as server:
        yield server, Saying(server)


def ask(
    saying: tuple[ModelServer, Saying], text: str, messages: Any = ({"role": "user", "content": "x"},), **fields: Any
) -> Any:
    saying[1].texts.append(text)
    body = {"model": "nano", "messages": list(messages), "max_tokens": 5, "tools": [ADD], **fields}
    with connect(saying[0]) as connection:
        connection.sendall(post(body, "/v1/chat/completions"))
        if not fields.get("stream"):
            status, _, found = answer(connection)
            assert status == 200, found
            return found["choices"][0]
        with connection.makefile("rb") as file:
            events = []
            for line in file:
                if line.startswith(b"data: {"):
                    events += json.loads(line[6:])["choices"]
                elif line.startswith(b"data: [DONE]"):
                    return events
    raise AssertionError("the stream broke off")


CASES = [
    (CALL, None, [("add", {"a": 1})]),
    (f"I add.\n{CALL}", "I add.\n", [("add", {"a": 1})]),
    (f"{CALL}\n{CALL.replace('1', '2')}", None, [("add", {"a": 1}), ("add", {"a": 2})]),
    ('{"name": "add", "arguments": {"a": 3}}', None, [("add", {"a": 3})]),
    (CALL.replace('"a": 1', '"b": 1'), None, [("add", {"b": 1})]),  # whether it fits is the client's to say
    ("2 < 3, and [so on] {", "2 < 3, and [so on] {", []),
    ("<tool_call>\n{", "<tool_call>\n{", []),
    (f"<think>{CALL}</think>no", f"<think>{CALL}</think>no", []),
    ("plain", "plain", []),
]


@pytest.mark.parametrize(("text", "content", "calls"), CASES)
def test_calls_are_told(saying: tuple[ModelServer, Saying], text: str, content: str | None, calls: Any) -> None:
    choice = ask(saying, text, return_token_ids=True)
    message = choice["message"]
    assert message["content"] == content
    made = message.get("tool_calls", [])
    assert [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in made] == calls
    assert len({c["id"] for c in made}) == len(made) and all(c["type"] == "function" for c in made)
    assert choice["finish_reason"] == ("tool_calls" if calls else "stop")
    # Whatever is made of it, the tokens are what was said.
    assert choice["token_ids"] == saying[0].engine.encode_response(text).tolist()

    events = ask(saying, text, stream=True)
    shown = "".join(e["delta"].get("content") or "" for e in events)
    told = [c for e in events for c in e["delta"].get("tool_calls", [])]
    assert (shown.strip() or None) == (content and content.strip())
    assert [(c["index"], c["function"]["name"]) for c in told] == [(i, n) for i, (n, _) in enumerate(calls)]
    assert [json.loads(c["function"]["arguments"]) for c in told] == [a for _, a in calls]
    assert events[-1]["finish_reason"] == choice["finish_reason"]


def test_words_before_a_call_are_streamed(saying: tuple[ModelServer, Saying]) -> None:
    events = ask(saying, f"so it is {CALL}", stream=True)
    assert len([e for e in events if e["delta"].get("content", "").strip()]) >= 6


def test_the_conversation_is_the_templates(saying: tuple[ModelServer, Saying]) -> None:
    messages = [
        {"role": "user", "content": "x"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 7}'}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "8"},
    ]
    ask(saying, "ok", messages)
    assert saying[1].asked[-1] == "[add: Add numbers.]user:x|assistant:<add 7>|tool:8|a:"
    ask(saying, CALL, tool_choice="none")
    assert saying[1].asked[-1] == "user:x|a:"
    choice = ask(saying, CALL, tool_choice="none")
    assert choice["message"]["content"] == CALL and "tool_calls" not in choice["message"]
