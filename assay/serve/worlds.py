"""A server of an environment: OpenEnv's protocol, an episode a WebSocket."""

from __future__ import annotations

import asyncio
import hmac
import itertools
import json
import sys
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import anyio.to_thread
import uvicorn
from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from assay.environments.hosted.worlds import Worlds
from assay.errors import UsageError
from assay.printable import printable
from assay.serve import limits
from assay.serve.episodes import ACTION, OBSERVATION, STATE, Refused, Session
from assay.serve.listening import configured, listen, url_of
from assay.types import Tool


class WorldServer:
    """Serves an environment at ``/ws``, and what it is at ``/metadata``, ``/schema``, ``/health`` and the task routes.

    Every connection plays episodes of its own, one after the other; the environments live in ``worlds``' processes.

    Args:
        worlds: in processes, one at least.
        name: of the environment.
        address: host and port; port 0 takes a free one.
        turns: of an episode, at most.
        key: that clients must bring, if any.

    Raises:
        UsageError: the address cannot be had, no WebSockets are installed, or the environment cannot begin.
    """

    def __init__(self, worlds: Worlds, name: str, address: tuple[str, int], turns: int = 64, key: str = ""):
        try:
            from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
        except ImportError:
            raise UsageError("serving an environment needs websockets: pip install 'assay[openenv]'") from None
        self.worlds, self.name, self.turns, self.key = worlds, name, turns, key
        self.source = worlds.here().tasks()
        self.tools = _tools(worlds, self.source[0])
        self.sessions, self.numbers = 0, itertools.count()
        self.threads = CapacityLimiter(limits.SESSIONS)
        self.socket = listen(*address)
        self.address: tuple[str, int] = self.socket.getsockname()[:2]
        self.routes = Starlette(
            routes=[
                WebSocketRoute("/ws", self._play),
                Route("/health", self._told({"status": "healthy"})),
                Route("/metadata", self._told({"name": name, "description": f"environment {name}, served by assay"})),
                Route("/schema", self._told({"action": ACTION, "observation": OBSERVATION, "state": STATE})),
                Route("/list_environments", self._told([name])),
                Route("/{name}/splits", self._told([{"name": "train", "type": "train"}])),
                Route("/{name}/num_tasks", self._count, methods=["POST"]),
                Route("/{name}/task", self._task, methods=["POST"]),
                Route("/{path:path}", self._astray, methods=["GET", "POST"]),
            ]
        )
        config = configured(self, WebSocketsSansIOProtocol, ws_max_size=limits.MESSAGE, ws_max_queue=4)
        self.http = uvicorn.Server(config)

    @property
    def url(self) -> str:
        return url_of(self.address)

    def run(self) -> None:
        """Answer until :meth:`stop` is called or a signal comes."""
        self.http.run(sockets=[self.socket])

    def stop(self) -> None:
        """Let :meth:`run`, in another thread, return."""
        self.http.should_exit = True

    def close(self) -> None:
        """Stop at once; episodes under way are lost."""
        self.socket.close()
        self.worlds.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a client in, or refuse it: who brings no key, and pages of other sites that a browser shows."""
        headers = Headers(scope=scope)
        brought = headers.get("authorization", "").removeprefix("Bearer ").encode("utf-8", "replace")
        allowed = not self.key or scope["path"] == "/health" or hmac.compare_digest(brought, self.key.encode())
        origin = headers.get("origin")
        if allowed and origin is not None and urlsplit(origin).netloc != headers.get("host"):
            allowed = False
        if allowed:
            await self.routes(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocket(scope, receive, send).close(1008)
        else:
            await JSONResponse({"detail": "the key is missing or wrong"}, 401)(scope, receive, send)

    async def _play(self, socket: WebSocket) -> None:
        await socket.accept()
        if self.sessions >= limits.SESSIONS:
            await _say(socket, "error", message=f"all {limits.SESSIONS} sessions are taken", code="CAPACITY_REACHED")
            await socket.close(1013)
            return
        self.sessions += 1
        session = Session(self.worlds, self.source, self.tools, self.turns, next(self.numbers))
        try:
            with suppress(WebSocketDisconnect):
                while (message := await self._heard(socket)) is not None:
                    await self._answer(socket, session, message)
        finally:
            self.sessions -= 1
            await asyncio.shield(self._aside(session.close))

    async def _heard(self, socket: WebSocket) -> str | None:
        """Return a message; ``None`` where the client is silent for too long."""
        try:
            async with asyncio.timeout(limits.SILENCE):
                heard = await socket.receive()
        except TimeoutError:
            await _say(socket, "error", message=f"silent for {limits.SILENCE:g} s", code="SESSION_ERROR")
            await socket.close(1001)
            return None
        if heard["type"] == "websocket.disconnect":
            raise WebSocketDisconnect
        return heard.get("text") or ""

    async def _answer(self, socket: WebSocket, session: Session, message: str) -> None:
        try:
            kind, data = _read(message)
            if kind == "close":
                await socket.close(1000)
                raise WebSocketDisconnect
            if kind == "state":
                await _say(socket, "state", **session.state())
                return
            made = await self._aside(session.reset if kind == "reset" else session.step, data)
            session.default = next(self.numbers) if kind == "reset" else session.default
            await _say(socket, "observation", **made)
        except Refused as refused:
            await _say(socket, "error", message=str(refused), code=refused.code)
        except WebSocketDisconnect:
            raise
        except Exception as error:
            print(printable(traceback.format_exc()), file=sys.stderr, flush=True)
            await _say(socket, "error", message=f"{type(error).__name__}: {error}", code="EXECUTION_ERROR")

    async def _aside(self, call: Callable[..., Any], *arguments: Any) -> Any:
        return await anyio.to_thread.run_sync(call, *arguments, limiter=self.threads)

    def _told(self, content: Any) -> Callable[[Request], Awaitable[Response]]:
        async def tell(_: Request) -> Response:
            return JSONResponse(content)

        return tell

    async def _count(self, _: Request) -> Response:
        if self.source.size is None:
            return JSONResponse({"detail": "there is no end of tasks"}, 501)
        return JSONResponse({"num_tasks": self.source.size})

    async def _task(self, request: Request) -> Response:
        try:
            index = json.loads(await request.body())["index"]
            task = self.source[index]
        except (ValueError, KeyError, TypeError, IndexError):
            return JSONResponse({"detail": "Invalid task index"}, 400)
        return JSONResponse({"task": {"id": task.id, "index": index, "prompt": task.question}})

    async def _astray(self, request: Request) -> Response:
        path = request.url.path
        if path in ("/reset", "/step", "/state"):
            return JSONResponse({"detail": f"an episode is a WebSocket at /ws; {path} alone would forget it"}, 405)
        return JSONResponse({"detail": f"nothing is served at {printable(path)}"}, 404)


def _tools(worlds: Worlds, task: Any) -> tuple[Tool, ...]:
    """Return the tools of an episode, begun once to see that it can be."""
    worlds.start()
    world = worlds()
    try:
        tools: tuple[Tool, ...] = world.reset(task, 0).tools
        return tools
    finally:
        world.close()


def _read(message: str) -> tuple[str, Any]:
    """Return a message's type and data.

    Raises:
        Refused: it is none of the protocol's.
    """
    try:
        content = json.loads(message)
    except (ValueError, RecursionError):
        raise Refused("INVALID_JSON", "the message is no JSON") from None
    kind = content.get("type") if isinstance(content, dict) else None
    if kind not in ("reset", "step", "state", "close"):
        raise Refused("UNKNOWN_TYPE", f"a message's type is reset, step, state or close, not {str(kind)[:60]!r}")
    data = content.get("data", {})
    if not isinstance(data, dict):
        raise Refused("VALIDATION_ERROR", "a message's data is an object")
    return kind, data


async def _say(socket: WebSocket, kind: str, **data: Any) -> None:
    await socket.send_text(json.dumps({"type": kind, "data": data}))
