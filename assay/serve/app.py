"""The web application: who is let in, what is read of whom, and who answers."""

from __future__ import annotations

import asyncio
import functools
import hmac
import json
import queue
import sys
import time
import traceback
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from assay.serve import limits
from assay.serve.answer import Pieces, refusal, whole
from assay.serve.asked import Asked, Refusal, read
from assay.serve.batcher import Batcher, Busy, Event, Job, Token
from assay.serve.prompts import requests
from assay.serve.waiting import Bell, Left, while_connected

T = TypeVar("T")


class App:
    """Answers requests, in OpenAI's protocol.

    Args:
        batcher: generates.
        name: of the model in requests.
        longest: ``max_tokens`` of a chat that does not say.
        key: that requests must bring, if any.
        connections: tells how many there are.
    """

    def __init__(self, batcher: Batcher, name: str, longest: int, key: str, connections: Callable[[], int]):
        self.batcher, self.engine = batcher, batcher.engine
        self.name, self.longest, self.key, self.connections = name, longest, key, connections
        self.context = self.engine.policy.context
        self.sighted: bool = getattr(self.engine.policy, "sighted", False)
        self.card = {"id": name, "object": "model", "created": int(time.time()), "owned_by": "assay"}
        self.card["max_model_len"] = self.context
        # A fast tokenizer must not be used by two threads at once. Those who wait for it, or for a thread, hold none.
        self.tokenizing, self.threads = CapacityLimiter(1), CapacityLimiter(4)
        self.held = 0
        self.routes = Starlette(
            routes=[
                Route("/health", self._health),
                Route("/v1/models", self._models),
                Route("/v1/models/{name:path}", self._model),
                Route("/v1/completions", self._completions, methods=["POST"]),
                Route("/v1/chat/completions", self._completions, methods=["POST"]),
            ],
            exception_handlers={Refusal: _refused, HTTPException: _astray, Left: _unheard, Exception: _fault},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or refuse it before its body is read."""
        scope["path"] = scope["path"].rstrip("/") or "/"
        try:
            self._let_in(scope)
        except Refusal as refused:
            await _json(refused)(scope, receive, send)
            return
        try:
            await self.routes(scope, receive, send)
        except Exception:  # a fault of ours, which the client has heard of; raised on, it closes the connection
            print(printable(traceback.format_exc()), file=sys.stderr, flush=True)
            raise

    def _let_in(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if scope["http_version"] not in ("1.0", "1.1"):
            raise Refusal("only HTTP/1.0 and HTTP/1.1 are served here", status=505)
        if "content-length" in headers and "transfer-encoding" in headers:
            raise Refusal("a body has either a Content-Length or a Transfer-Encoding")
        if self.connections() > limits.CONNECTIONS:
            raise Refusal(f"all {limits.CONNECTIONS} connections are taken; try again later", status=503)
        brought = headers.get("authorization", "").removeprefix("Bearer ").encode("utf-8", "replace")
        if self.key and scope["path"] != "/health" and not hmac.compare_digest(brought, self.key.encode()):
            raise Refusal("the key is missing or wrong", status=401, code="invalid_api_key")

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _models(self, _: Request) -> Response:
        return JSONResponse({"object": "list", "data": [self.card]})

    async def _model(self, request: Request) -> Response:
        if request.path_params["name"] != self.name:
            raise HTTPException(404)
        return JSONResponse(self.card)

    async def _completions(self, request: Request) -> Response:
        asked = await self._asked(request)
        return await while_connected(request.receive, functools.partial(self._answer, asked))

    async def _asked(self, request: Request) -> Asked:
        """Read the body, no further than it may go, and check it."""
        chat, most = request.url.path.endswith("/chat/completions"), limits.body(self.context)
        too_large = Refusal(f"a body has at most {most} bytes here", status=413, code="context_length_exceeded")
        body = bytearray()
        if int(request.headers.get("content-length", 0)) > most:
            raise too_large
        try:
            async with asyncio.timeout(limits.BODY):
                async for chunk in request.stream():
                    body += chunk
                    self.held += len(chunk)
                    if len(body) > most:
                        raise too_large
                    if self.held > max(limits.BODIES, len(body)):
                        raise Refusal("too many large requests at once; try again later", status=503)
            return await self._thread(
                lambda: read(_parsed(body), chat, self.name, self.longest, self.context, self.sighted)
            )
        except TimeoutError:
            raise Refusal(f"the body did not arrive within {limits.BODY:g} seconds", status=408) from None
        except ClientDisconnect:
            raise Left from None
        finally:
            self.held -= len(body)

    async def _answer(self, asked: Asked) -> Response:
        made = await anyio.to_thread.run_sync(requests, asked, self.engine, limiter=self.tokenizing)
        bell = Bell()
        job = Job(made, asked.fields.stream, bell.ring)
        leave = functools.partial(self.batcher.leave, job)
        streams = False
        try:
            try:
                self.batcher.submit(job)
            except Busy as error:
                raise Refusal(str(error), status=429, code="rate_limit_exceeded") from None
            events = await _heard(job, bell)
            if isinstance(events[0], Exception):
                raise refusal(events[0])
            if asked.fields.stream:
                streams = True
                return Stream(self._pieces(asked, job, bell, events), leave)
            rows = events[0]
            assert not isinstance(rows, Token)
            content = await self._thread(lambda: json.dumps(whole(asked, self.engine, rows)).encode())
            return Response(content, media_type="application/json")
        finally:
            if not streams:
                leave()

    async def _pieces(self, asked: Asked, job: Job, bell: Bell, events: list[Event]) -> AsyncIterator[bytes]:
        pieces = Pieces(asked, self.engine)
        while True:
            if data := await self._thread(functools.partial(pieces.of, events)):
                yield data
            if not isinstance(events[-1], Token):
                return
            events = await _heard(job, bell)

    async def _thread(self, work: Callable[[], T]) -> T:
        """Do what takes longer than the others should wait."""
        return await anyio.to_thread.run_sync(work, limiter=self.threads)


class Stream(StreamingResponse):
    """Server-sent events; however they end, ``leave`` is called."""

    def __init__(self, pieces: AsyncIterator[bytes], leave: Callable[[], None]):
        super().__init__(pieces, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})
        self.leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.leave()


async def _heard(job: Job, bell: Bell) -> list[Event]:
    """Wait for what a job is told; return all that there is."""
    events: list[Event] = []
    while not events:
        await bell.heard()
        while True:
            try:
                events.append(job.told.get_nowait())
            except queue.Empty:
                break
    return events


def _parsed(body: bytes | bytearray) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(f"the body is no JSON: {error}") from None


def _json(refused: Refusal) -> Response:
    headers = {"Connection": "close"} if refused.status == 408 else {}
    if refused.status in (429, 503):
        headers["Retry-After"] = "1"
    return JSONResponse(refused.plain(), refused.status, headers)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return _json(error)


async def _astray(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path, method = request.url.path, request.method
    if error.status_code == 405:
        message = f"{path} does not take {printable(method)}"
    else:
        other = "/v1/chat/completions" if method == "POST" else "/v1/models"
        message = f"nothing is served at {path}; did you mean {other}?"
    answer = _json(Refusal(message, status=error.status_code))
    answer.headers.update(error.headers or {})
    return answer


async def _unheard(_: Request, __: Exception) -> Response:
    """Answer a client that has left."""
    return Response(status_code=499)


async def _fault(_: Request, error: Exception) -> Response:
    return _json(refusal(error))


def printable(text: str) -> str:
    """Return lines for a terminal, without what would steer it."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)
