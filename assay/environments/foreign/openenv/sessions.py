"""Talking to an OpenEnv environment: behind a server, by its WebSocket, or in this process."""

from __future__ import annotations

import inspect
import json
import typing
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from assay.environments.base import EnvironmentFailure
from assay.errors import UsageError

LARGEST = 64 << 20
"""Bytes of a message that are still read."""


class Unfit(Exception):
    """An action does not fit what the environment takes: whoever made it is told."""


class Talk(Protocol):
    """A session: what is sent and what comes back are OpenEnv's JSON."""

    def schema(self) -> Mapping[str, Any]:
        """Return the JSON Schema of an action."""
        ...

    def reset(self, data: Mapping[str, Any]) -> Mapping[str, Any]: ...

    def step(self, action: Mapping[str, Any]) -> Mapping[str, Any]:
        """Take an action.

        Raises:
            Unfit: the environment does not take it.
            EnvironmentFailure: anything else went wrong.
        """
        ...

    def close(self) -> None: ...


class Remote:
    """A server's session, opened with the first message.

    Args:
        url: of the server, http(s) or ws(s).
        headers: of every request.
        seconds: that an answer may take.
    """

    def __init__(self, url: str, headers: Mapping[str, str], seconds: float):
        base = url.rstrip("/").removesuffix("/ws")
        self.http = base.replace("ws", "http", 1) if base.startswith("ws") else base
        self.ws = self.http.replace("http", "ws", 1) + "/ws"
        self.headers, self.seconds = dict(headers), seconds
        self.socket: Any = None

    def get(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return what the server says at a path; a ``body`` is posted.

        Raises:
            EnvironmentFailure: it says nothing that is JSON.
        """
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self.http + path, data, {"Content-Type": "application/json", **self.headers})
        try:
            with urllib.request.urlopen(asked, timeout=self.seconds) as answer:
                return json.loads(answer.read(LARGEST))
        except (OSError, ValueError) as error:
            raise EnvironmentFailure(f"{self.http}{path}: {error}") from None

    def schema(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.get("/schema")["action"]
        return found

    def reset(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._ask("reset", data)

    def step(self, action: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._ask("step", action)

    def close(self) -> None:
        socket, self.socket = self.socket, None
        if socket is not None:
            socket.close()

    def _ask(self, kind: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
        from websockets.exceptions import WebSocketException
        from websockets.sync.client import connect

        try:
            if self.socket is None:
                self.socket = connect(
                    self.ws,
                    additional_headers=self.headers,
                    open_timeout=self.seconds,
                    close_timeout=1,
                    max_size=LARGEST,
                )
            self.socket.send(json.dumps({"type": kind, "data": dict(data)}))
            answer = json.loads(self.socket.recv(self.seconds))
            told: Mapping[str, Any] = answer["data"]
        except (OSError, TimeoutError, WebSocketException, ValueError, KeyError, TypeError) as error:
            # What it still says belongs to this message, and would be taken for the answer to the next.
            self.close()
            raise EnvironmentFailure(f"{self.ws}: {type(error).__name__}: {error}") from None
        if answer.get("type") != "error":
            return told
        reason = str(told.get("message", "no reason given"))
        if told.get("code") == "VALIDATION_ERROR" and kind == "step":
            raise Unfit(reason)
        raise EnvironmentFailure(f"{self.ws}: {told.get('code')}: {reason}")


class Local:
    """An environment of OpenEnv's in this process.

    Args:
        make: returns one; its class's ``step`` says in its hints what an action is.

    Raises:
        UsageError: it does not.
    """

    def __init__(self, make: Callable[..., Any], where: str):
        self.world = make()
        kind = typing.get_type_hints(type(self.world).step).get("action")
        if not hasattr(kind, "model_json_schema"):
            raise UsageError(f"{where}: step(action) needs a hint of the action's class")
        self.kind: Any = kind

    def schema(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.kind.model_json_schema()
        return found

    def reset(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        known = inspect.signature(self.world.reset).parameters
        every = any(p.kind is p.VAR_KEYWORD for p in known.values())
        return self._told(self.world.reset(**{k: v for k, v in data.items() if every or k in known}))

    def step(self, action: Mapping[str, Any]) -> Mapping[str, Any]:
        from pydantic import ValidationError

        try:
            made = self.kind.model_validate(dict(action))
        except ValidationError as error:
            raise Unfit("; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())) from None
        return self._told(self.world.step(made))

    def close(self) -> None:
        self.world.close()

    @staticmethod
    def _told(seen: Any) -> Mapping[str, Any]:
        content = seen.model_dump(mode="json", exclude={"reward", "done"})
        return {
            "observation": content,
            "reward": seen.reward,
            "done": seen.done,
            "metadata": content.get("metadata", {}),
        }
