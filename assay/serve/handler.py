"""One connection: requests in, answers or streams of pieces out."""

from __future__ import annotations

import hmac
import json
import select
import socket
import uuid
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from assay.errors import RunError, UsageError
from assay.serve.asked import Asked, Refusal, read
from assay.serve.batcher import Job, Token
from assay.serve.told import Voice, envelope, usage
from assay.types import Episode

if TYPE_CHECKING:
    from assay.serve.server import ModelServer

LARGEST_BODY = 64 << 20


class Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # of what names none: an answer needs its status and headers
    disable_nagle_algorithm = True
    timeout = 600
    server: ModelServer

    def do_GET(self) -> None:
        path = unquote(self.path.partition("?")[0].rstrip("/"))
        card = {"id": self.server.name, "object": "model", "created": self.server.made, "owned_by": "assay"}
        card["max_model_len"] = self.server.engine.policy.context
        try:
            if path == "/health":
                self._json(200, {"status": "ok"})
                return
            self._let_in()
            if path == "/v1/models":
                self._json(200, {"object": "list", "data": [card]})
            elif path == f"/v1/models/{self.server.name}":
                self._json(200, card)
            else:
                raise Refusal(f"nothing is served at {path or '/'}; did you mean /v1/models?", status=404)
        except Refusal as refusal:
            self._json(refusal.status, refusal.plain())

    def do_POST(self) -> None:
        path = self.path.partition("?")[0].rstrip("/")
        try:
            body = self._body()
            self._let_in()
            if path not in ("/v1/completions", "/v1/chat/completions"):
                raise Refusal(f"nothing is served at {path or '/'}; did you mean /v1/chat/completions?", status=404)
            asked = read(_parsed(body), path == "/v1/chat/completions", self.server.name, self.server.longest)
            requests = self.server.requests(asked)
            job = self.server.batcher.submit(Job(requests, asked.fields.stream, self._gone))
            if asked.fields.stream:
                self._stream(asked, job)
            else:
                self._json(200, self._whole(asked, job))
        except Refusal as refusal:
            self._json(refusal.status, refusal.plain())
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:  # a fault of ours: the client hears of it, and the log has the trace
            self.server.handle_error(self.request, self.client_address)
            self.close_connection = True
            self._json(500, _refusal(error).plain())

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST_BODY:
            self.close_connection = True  # what follows cannot be told from the next request
            raise Refusal(f"the body must have a Content-Length, of at most {LARGEST_BODY} bytes", status=413)
        return self.rfile.read(int(length))

    def _let_in(self) -> None:
        brought = self.headers.get("Authorization", "").removeprefix("Bearer ").encode("utf-8", "replace")
        if self.server.key and not hmac.compare_digest(brought, self.server.key.encode()):
            raise Refusal("the key is missing or wrong", status=401, code="invalid_api_key")

    def _gone(self) -> bool:
        """Tell whether the client has closed the connection."""
        try:
            readable, _, _ = select.select([self.connection], [], [], 0)
            return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""
        except (OSError, ValueError):
            return True

    def _whole(self, asked: Asked, job: Job) -> dict[str, Any]:
        """Return the whole answer."""
        rows = _responses(next(job.events()))
        answer = envelope(asked, uuid.uuid4().hex, piece=False)
        for episode, prompt in ((e, e.prompt) for row in rows for e in row):
            voice = Voice(asked, self.server.engine)
            assert episode.logprobs is not None
            shown = [voice.hear(*at) for at in zip(episode.tokens.tolist(), episode.logprobs.tolist(), strict=True)]
            text = "".join([*shown, voice.end()])
            choice = voice.choice(text, voice.tokens, len(answer["choices"]), piece=False) | voice.ending(episode)
            if asked.fields.return_token_ids:
                choice["prompt_token_ids"] = prompt.tolist()
            answer["choices"].append(choice)
        return answer | {"usage": usage([len(row[0].prompt) for row in rows], rows)}

    def _stream(self, asked: Asked, job: Job) -> None:
        """Send server-sent events: a piece for every token that shows, an ending for every response, and the usage."""
        n, name = asked.fields.n, uuid.uuid4().hex
        voices = [Voice(asked, self.server.engine) for _ in range(n * len(job.requests))]
        told = [0] * len(voices)

        def send(index: int, text: str, more: Mapping[str, Any]) -> None:
            voice = voices[index]
            rows = voice.tokens[told[index] :]
            told[index] = len(voice.tokens)
            piece = envelope(asked, name, piece=True)
            piece["choices"] = [voice.choice(text, rows, index, piece=True) | dict(more)]
            self._event(piece)

        started = False
        for event in job.events():
            if not started:
                if isinstance(event, Exception):
                    raise _refusal(event)
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream; charset=utf-8")
                self.send_header("Cache-Control", "no-cache")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                started = True
            if isinstance(event, Token):
                index = event.request * n + event.sample
                text = voices[index].hear(event.token, event.logprob)
                if text:
                    send(index, text, {})
                continue
            if isinstance(event, Exception):
                self._event(_refusal(event).plain())
                break
            for index, episode in enumerate(e for row in event for e in row):
                send(index, voices[index].end(), voices[index].ending(episode))
            if asked.fields.stream_options.include_usage:
                counted = usage([len(row[0].prompt) for row in event], event)
                self._event(envelope(asked, name, piece=True) | {"usage": counted})
            self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _event(self, content: Mapping[str, Any]) -> None:
        self._chunk(b"data: " + json.dumps(content).encode() + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _json(self, status: int, content: Mapping[str, Any]) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no proper HTTP request, as JSON too."""
        self.close_connection = True
        self._json(code, Refusal(message or "not a request that is served here", status=code).plain())

    def version_string(self) -> str:
        return "assay"

    def log_message(self, *_: Any) -> None:
        """Requests are not logged: they may hold what should not be in a log."""


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(f"the body is no JSON: {error}") from None


def _refusal(error: Exception) -> Refusal:
    if isinstance(error, UsageError):
        return Refusal(str(error))
    stopping = isinstance(error, RunError)
    return Refusal(f"{'' if stopping else type(error).__name__ + ': '}{error}", status=503 if stopping else 500)


def _responses(event: Token | list[list[Episode]] | Exception) -> list[list[Episode]]:
    if isinstance(event, Exception):
        raise _refusal(event)
    assert isinstance(event, list)
    return event
