"""A program that asks a model over OpenAI's chat protocol, turned round: its requests are what an episode shows."""

from __future__ import annotations

import functools
import json
import queue
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from assay.environments.base import Action
from assay.types import Message, Tool

LARGEST = 64 << 20
"""Bytes of a request that are read."""


class Asked:
    """A request that waits for an answer."""

    def __init__(self, body: Mapping[str, Any]):
        self.body = body
        self.answers: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()

    def answer(self, message: Mapping[str, Any]) -> None:
        """Let the program hear an assistant's message."""
        why = "tool_calls" if message.get("tool_calls") else "stop"
        self.answers.put({"choices": [{"index": 0, "message": dict(message), "finish_reason": why}]})

    def refuse(self, reason: str) -> None:
        """Let it hear that there is no more context: what that means for its run is its own business."""
        error = {"message": reason, "type": "invalid_request_error", "code": "context_length_exceeded"}
        self.answers.put({"error": error})


class Line:
    """Where an episode's program calls: ``url`` is its base; ``events`` has what it asks, and what else is put in."""

    def __init__(self, desk: Desk):
        self.desk, self.key = desk, secrets.token_urlsafe(16)
        host, port = desk.server_address[:2]
        self.url = f"http://{host!s}:{port}/{self.key}/v1"
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        desk.lines[self.key] = self

    def close(self) -> None:
        """Hang up: who waits, or calls later, is refused."""
        self.desk.lines.pop(self.key, None)
        while not self.events.empty():
            if isinstance(event := self.events.get(), Asked):
                event.refuse("the episode is over")


class Desk(ThreadingHTTPServer):
    """Takes the calls of all episodes of this process, on this machine alone."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Call)
        self.lines: dict[str, Line] = {}
        threading.Thread(target=self.serve_forever, name="assay-chat", daemon=True).start()


@functools.cache
def desk() -> Desk:
    """Return the one of this process."""
    return Desk()


class _Call(BaseHTTPRequestHandler):
    server: Desk
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: what is asked is in the episode."""

    def do_GET(self) -> None:
        self._say(200, {"object": "list", "data": [{"id": "assay", "object": "model"}]})

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        line = self.server.lines.get(self.path.split("/")[1])
        if not 0 < length <= LARGEST or line is None or not self.path.endswith("/chat/completions"):
            self._say(404, {"error": {"message": "no episode is played here", "type": "invalid_request_error"}})
            return
        try:
            body = json.loads(self.rfile.read(length))
            asked = Asked({**body, "messages": list(body["messages"])})
        except (ValueError, TypeError, KeyError):
            self._say(400, {"error": {"message": "the body is no chat", "type": "invalid_request_error"}})
            return
        line.events.put(asked)
        if self.server.lines.get(line.key) is not line:
            asked.refuse("the episode is over")
        answer = asked.answers.get()
        if "error" in answer:
            self._say(400, answer)
        elif asked.body.get("stream"):
            self._stream(answer, asked.body)
        else:
            self._say(200, {**_envelope("chat.completion"), **answer, "usage": _USAGE})

    def _say(self, status: int, content: Mapping[str, Any]) -> None:
        data = json.dumps(content).encode()
        self._send(status, "application/json", data)

    def _stream(self, answer: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        """Send the whole answer as the events of a stream."""
        [choice] = answer["choices"]
        delta = dict(choice["message"])
        if "tool_calls" in delta:
            delta["tool_calls"] = [{"index": i, **c} for i, c in enumerate(delta["tool_calls"])]
        head = _envelope("chat.completion.chunk")
        pieces: list[dict[str, Any]] = [
            head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            head | {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
        ]
        if (body.get("stream_options") or {}).get("include_usage"):
            pieces.append(head | {"choices": [], "usage": _USAGE})
        told = "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces) + "data: [DONE]\n\n"
        self._send(200, "text/event-stream", told.encode())

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


_USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def _envelope(kind: str) -> dict[str, Any]:
    return {"id": secrets.token_hex(8), "object": kind, "created": int(time.time()), "model": "assay"}


def messages_of(body: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return a request's messages, their content as text."""
    out = []
    for said in body["messages"]:
        content = said.get("content") or ""
        if not isinstance(content, str):
            content = "".join(str(part.get("text", "")) for part in content)
        made = Message(role="system" if said["role"] == "developer" else said["role"], content=content)
        if said.get("tool_calls"):
            made["tool_calls"] = said["tool_calls"]
        if said.get("tool_call_id"):
            made["tool_call_id"] = said["tool_call_id"]
        if said.get("name"):
            made["name"] = said["name"]
        out.append(made)
    return tuple(out)


def tools_of(body: Mapping[str, Any]) -> tuple[Tool, ...]:
    """Return the tools that a request offers."""
    made = [tool["function"] for tool in body.get("tools") or () if tool.get("type") == "function"]
    nothing = {"type": "object", "properties": {}}
    return tuple(Tool(f["name"], f.get("description") or "", f.get("parameters") or nothing) for f in made)


def said(action: Action, turn: int) -> dict[str, Any]:
    """Return a turn as an assistant's message: calls that can be made as calls, and all else as it was written."""
    calls = [call for call in action.calls if not call.problem and call.arguments is not None]
    text = action.text
    for call in reversed(calls):
        text = text[: call.start] + text[call.end :]
    message: dict[str, Any] = {"role": "assistant", "content": text.strip() if calls else text}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"{turn}_{call.id}",
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in calls
        ]
    return message


def goes_on(before: Sequence[Message], now: Sequence[Message]) -> bool:
    """Whether a conversation begins with another."""
    return len(now) > len(before) and all(_same(a, b) for a, b in zip(before, now, strict=False))


def _same(a: Message, b: Message) -> bool:
    calls = [[(c["function"]["name"], c["function"]["arguments"]) for c in m.get("tool_calls") or ()] for m in (a, b)]
    return a["role"] == b["role"] and a["content"].strip() == b["content"].strip() and calls[0] == calls[1]
