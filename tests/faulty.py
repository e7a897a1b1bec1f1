"""A server of OpenAI's protocol that fails in the ways it is told to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Act = Callable[[Any, dict[str, Any]], None]
"""Answers a request: the handler, and the parsed body."""


class Faulty(ThreadingHTTPServer):
    """Answers by the next of ``acts``, and well when there is none left.

    Attributes:
        seen: bodies in the order they came; ``times`` and ``headers`` go with them.
        widest: most requests that were open at once.
        choose: if set, says how to answer a body, before ``acts`` is asked.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        self.acts: list[Act] = []
        self.choose: Callable[[dict[str, Any]], Act | None] = lambda body: None
        self.models = ["good-model", "other"]
        self.seen: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.headers: list[dict[str, str]] = []
        self.open = self.widest = 0
        self.lock, self.over = threading.Lock(), threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that give up are part of the play."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Faulty

    def do_GET(self) -> None:
        if self.path == "/v1/models" and self.server.models:
            send(self, 200, {"object": "list", "data": [{"id": name} for name in self.server.models]})
        else:
            send(self, 404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            server.seen.append({"path": self.path, **body})
            server.times.append(time.monotonic())
            server.headers.append(dict(self.headers))
            server.open += 1
            server.widest = max(server.widest, server.open)
            act = server.choose(body) or (server.acts.pop(0) if server.acts else fine)
        try:
            act(self, body)
        finally:
            with server.lock:
                server.open -= 1

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving() -> Iterator[Faulty]:
    server = Faulty()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()


def send(handler: Any, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(data)))
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(data)


def said(body: dict[str, Any]) -> str:
    """What this server says to a prompt."""
    prompt = body.get("prompt")
    return f"said {body['messages'][-1]['content'] if prompt is None else prompt}"


def answer(body: dict[str, Any], n: int, **more: Any) -> dict[str, Any]:
    """An answer of ``n`` choices, each of two tokens, to a prompt of ten; without log-probabilities."""
    choices = []
    for i in range(n):
        text = f"{said(body)} {i}"
        shown = {"message": {"role": "assistant", "content": text}} if "messages" in body else {"text": text}
        choices.append({"index": i, **shown, "finish_reason": "stop", **more})
    used = {"prompt_tokens": 10, "completion_tokens": 2 * n, "total_tokens": 10 + 2 * n}
    return {"choices": choices, "usage": used}


def fine(handler: Any, body: dict[str, Any]) -> None:
    send(handler, 200, answer(body, body["n"]))


def choices(number: Callable[[int], int]) -> Act:
    """Answer well but for the number of responses."""
    return lambda handler, body: send(handler, 200, answer(body, number(body["n"])))


def choice(**more: Any) -> Act:
    """Answer with other fields in each choice."""
    return lambda handler, body: send(handler, 200, answer(body, body["n"], **more))


def status(number: int, message: str = "no", headers: dict[str, str] | None = None, **more: Any) -> Act:
    return lambda handler, body: send(handler, number, {"error": {"message": message, **more}}, headers)


def raw(content: bytes) -> Act:
    return lambda handler, body: send(handler, 200, content)


def hang(handler: Any, body: dict[str, Any]) -> None:
    handler.server.over.wait(30)


def truncated(handler: Any, body: dict[str, Any]) -> None:
    """Promise more bytes than come."""
    data = json.dumps(answer(body, body["n"])).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data[: len(data) // 2])
    handler.close_connection = True


def cut_stream(handler: Any, body: dict[str, Any]) -> None:
    """Send the first chunk of a chunked answer, and hang up."""
    data = json.dumps(answer(body, body["n"])).encode()
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(f"{len(data):x}\r\n".encode() + data[:20])
    handler.close_connection = True


def hang_up(handler: Any, body: dict[str, Any]) -> None:
    handler.close_connection = True


def texts(rows: Sequence[Sequence[Any]]) -> list[list[str]]:
    return [[e.text for e in row] for row in rows]
