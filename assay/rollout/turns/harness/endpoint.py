"""A chat endpoint on this machine whose requests wait to be answered together."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MOST = 64 << 20
"""Bytes of a request's body."""


@dataclass(slots=True)
class Waiting:
    """A request and, once it is there, its answer: a choice, or a status with what was wrong."""

    key: str
    body: Mapping[str, Any]
    there: threading.Event = field(default_factory=threading.Event)
    choice: dict[str, Any] | None = None
    usage: dict[str, int] | None = None
    error: tuple[int, str] = (503, "the rollout is over")

    def tell(self, choice: dict[str, Any], read: int, written: int) -> None:
        """Answer by a choice, for which so many tokens were read and written."""
        self.choice = choice
        self.usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        self.there.set()

    def refuse(self, status: int, reason: str) -> None:
        self.error = status, reason
        self.there.set()


class Endpoint:
    """Serves ``/v1/chat/completions`` and ``/v1/models`` at a free port of this machine, to those who bring a key.

    Requests are put into ``waiting``; whoever takes them out answers them.
    """

    def __init__(self) -> None:
        self.waiting: queue.SimpleQueue[Waiting] = queue.SimpleQueue()
        self.keys: set[str] = set()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"endpoint": self}))
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=self.http.serve_forever, name="harness", daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/v1"

    def close(self) -> None:
        """Serve nobody any more; who still waits is refused."""
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()
        while True:
            try:
                self.waiting.get_nowait().refuse(503, "the rollout is over")
            except queue.Empty:
                return


class _Handler(BaseHTTPRequestHandler):
    endpoint: Endpoint
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        card = {"id": "policy", "object": "model", "owned_by": "assay"}
        self._send(200, json.dumps({"object": "list", "data": [card]}).encode())

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if not length.isdigit() or int(length) > MOST:
            self.close_connection = True
            self._refuse(413, f"a body needs a Content-Length of at most {MOST} bytes")
            return
        data = self.rfile.read(int(length))
        if key not in self.endpoint.keys:
            self._refuse(401, "the key is none of an episode's")
        elif self.path.rstrip("/") != "/v1/chat/completions":
            self._refuse(404, f"nothing is served at {self.path}; did you mean /v1/chat/completions?")
        else:
            self._answer(key, data)

    def _answer(self, key: str, data: bytes) -> None:
        try:
            body = json.loads(data)
            if not isinstance(body, dict):
                raise ValueError("it is no object")
        except (ValueError, RecursionError) as error:
            self._refuse(400, f"the body is no JSON: {error}")
            return
        asked = Waiting(key, body)
        self.endpoint.waiting.put(asked)
        asked.there.wait()
        if asked.choice is None:
            self._refuse(*asked.error)
            return
        answer = {
            "id": f"chatcmpl-{id(asked):x}",
            "created": int(time.time()),
            "model": str(body.get("model", "policy")),
        }
        if not body.get("stream"):
            answer |= {"object": "chat.completion", "choices": [asked.choice], "usage": asked.usage}
            self._send(200, json.dumps(answer).encode())
            return
        message = dict(asked.choice["message"])
        if "tool_calls" in message:
            message["tool_calls"] = [{"index": i, **call} for i, call in enumerate(message["tool_calls"])]
        choice = {"index": 0, "delta": message, "finish_reason": asked.choice["finish_reason"]}
        answer |= {"object": "chat.completion.chunk", "choices": [choice]}
        self._send(200, b"data: " + json.dumps(answer).encode() + b"\n\ndata: [DONE]\n\n", "text/event-stream")

    def _refuse(self, status: int, reason: str) -> None:
        self._send(status, json.dumps({"error": {"message": reason, "type": "invalid_request_error"}}).encode())

    def _send(self, status: int, data: bytes, kind: str = "application/json") -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:  # whoever asked has gone
            self.close_connection = True
