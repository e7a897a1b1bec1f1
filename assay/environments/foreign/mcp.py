"""Tools of a server that speaks the Model Context Protocol."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as Late
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from assay.environments.base import Action, EnvironmentFailure, Observation, Step
from assay.environments.tools import judged
from assay.errors import UsageError
from assay.registry import part
from assay.tasks.base import TaskSource
from assay.tasks.listed import Listed
from assay.types import Message, Task, Tool, ToolCall, Verdict

TEXTS = ("PATH", "HOME", "LANG", "TMPDIR")
"""Variables of this process that a server is given."""


ENDING = 10.0
"""Seconds that a server has to end in."""


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return the loop, in a thread of its own, in which all sessions of this process live."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="assay-mcp", daemon=True).start()
    return loop


class Server:
    """A server of an episode's own, with its session; nothing of it is left once closed.

    Args:
        command: what to run; it speaks over its input and output.
        variables: of its environment, beside :data:`TEXTS`.
        log: a file that its messages are added to.
        seconds: that an answer may take.

    Raises:
        EnvironmentFailure: it does not start, or does not answer.
    """

    def __init__(
        self, command: Sequence[str], variables: Mapping[str, str], folder: str | None, log: Path, seconds: float
    ):
        self.seconds, self.what, self.log = seconds, " ".join(command)[:100], log
        given = {name: os.environ[name] for name in TEXTS if name in os.environ} | dict(variables)
        opened: Future[Any] = Future()
        self.over = asyncio.Event()
        how = {"command": command[0], "args": list(command[1:]), "env": given, "cwd": folder}
        self.holding = asyncio.run_coroutine_threadsafe(self._hold(how, opened), _loop())
        try:
            self.client = opened.result(seconds)
            self.tools: dict[str, Tool] = {tool.name: tool for tool in self._listed()}
        except EnvironmentFailure:
            self.close()
            raise
        except Exception as error:
            self.holding.cancel()
            raise EnvironmentFailure(f"MCP server {self.what}: {_said(error)}") from None

    async def _hold(self, how: dict[str, Any], opened: Future[Any]) -> None:
        """Hold the session open until it is over; begun and ended in one task, as it wants to be."""
        from mcp import Client, StdioServerParameters
        from mcp.client.stdio import stdio_client

        try:
            with self.log.open("a", encoding="utf-8") as log:
                wire = stdio_client(StdioServerParameters(**how), errlog=log)
                async with Client(wire, read_timeout_seconds=self.seconds) as client:
                    opened.set_result(client)
                    await self.over.wait()
        except Exception as error:
            # Of a server that is gone, whoever asks it next hears.
            if not opened.done():
                opened.set_exception(error)

    def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Return what a tool answers, as text, and whether it says that this is an error.

        Raises:
            EnvironmentFailure: the server is gone, or does not answer.
        """
        found = self._awaited(partial(self.client.call_tool, name, dict(arguments)))
        texts = [getattr(block, "text", None) or f"({block.type})" for block in found.content]
        if not texts and found.structured_content is not None:
            texts = [json.dumps(found.structured_content, ensure_ascii=False)]
        return "\n".join(texts), bool(found.is_error)

    def close(self) -> None:
        """End it."""
        _loop().call_soon_threadsafe(self.over.set)
        with suppress(Late, CancelledError):
            self.holding.result(ENDING)

    def _listed(self) -> list[Tool]:
        out: list[Tool] = []
        cursor = None
        while True:
            page = self._awaited(partial(self.client.list_tools, cursor=cursor))
            out += [Tool(t.name, t.description or "", t.input_schema) for t in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                return out

    def _awaited(self, call: Any) -> Any:
        future = asyncio.run_coroutine_threadsafe(call(), _loop())
        try:
            return future.result(self.seconds)
        except Late:
            future.cancel()
            raise EnvironmentFailure(f"MCP server {self.what}: no answer in {self.seconds:g} s") from None
        except Exception as error:
            raise EnvironmentFailure(f"MCP server {self.what}: {_said(error)}") from None


@part("environment", "mcp")
class MCP:
    """The tools of an MCP server are the policy's; a turn without a call is its answer, and ends the episode.

    Every episode has a server of its own, started by ``command``, so that its state is the episode's. What a tool says
    is an error is an observation, and makes the turn invalid; a server that dies or does not answer is the world's
    failure. The verdict is that of the verifier of the task's kind, on the answer, or on what the tool ``state``
    returns in the end, which the policy cannot call.

    Args:
        command: starts a server that speaks over its input and output.
        questions: a JSONL file of rows ``{"prompt", "reference", "kind", "setup"}``; by default none are here.
        setup: a tool that the policy cannot call, called first with the task's ``setup`` (``meta["setup"]``).
        state: a tool that the policy cannot call, whose text is judged in place of the answer.
        only: tools that the policy may call; by default all others.
        variables: of the server's environment.
        folder: that it runs in.
        log: a file that the servers' messages are added to; by default nobody hears them.
        seconds: that an answer may take.

    Raises:
        UsageError: MCP is not installed, or the file cannot be read.
    """

    def __init__(
        self,
        command: Sequence[str],
        questions: Path | None = None,
        setup: str | None = None,
        state: str | None = None,
        only: Sequence[str] = (),
        variables: dict[str, str] | None = None,
        folder: Path | None = None,
        log: Path | None = None,
        seconds: float = 60.0,
    ):
        if not command or seconds <= 0:
            raise UsageError("environment 'mcp': command must start a server, and seconds must be above 0")
        try:
            import mcp  # noqa: F401
        except ImportError:
            raise UsageError("environment 'mcp' needs MCP: pip install 'assay[mcp]'") from None
        self.setup, self.state, self.only = setup, state, tuple(only)
        where, told = None if folder is None else str(folder), log or Path(os.devnull)
        self.open = partial(Server, tuple(command), dict(variables or {}), where, told, seconds)
        self._tasks = None if questions is None else Listed(_read(questions))
        self.server: Server | None = None
        self._under_way, self.answer = False, ""

    def tasks(self) -> TaskSource:
        if self._tasks is None:
            raise UsageError("environment 'mcp' has no tasks; give questions, or tasks.source in the recipe")
        return self._tasks

    def reset(self, task: Task, seed: int) -> Observation:
        self.close()
        self.server, self.task, self.answer = self.open(), task, ""
        hidden = {name for name in (self.setup, self.state) if name is not None}
        known = self.server.tools
        if missing := sorted({*hidden, *self.only} - known.keys()):
            raise UsageError(f"environment 'mcp': the server has no tool {missing[0]!r}; it has {', '.join(known)}")
        self.tools = tuple(t for n, t in known.items() if n not in hidden and (not self.only or n in self.only))
        if self.setup is not None:
            self._hidden(self.setup, task.meta.get("setup") or {})
        self._under_way = True
        shown = task.prompt
        return Observation((Message(role="user", content=shown),) if isinstance(shown, str) else shown, self.tools)

    def step(self, action: Action) -> Step:
        if not self._under_way or self.server is None:
            raise RuntimeError("no episode is under way; call reset first")
        if not action.calls:
            self._under_way, self.answer = False, action.text
            return Step(Observation(()), terminated=True)
        messages, errors = [], []
        for made in action.calls:
            text, error = self._called(made)
            messages.append(Message(role="tool", content=text, tool_call_id=made.id, name=made.name))
            errors += [error] if error else []
        return Step(Observation(tuple(messages)), valid=not errors, error="; ".join(errors))

    def verdict(self) -> Verdict:
        if self.state is not None and self.server is not None:
            return judged(self.task, self._hidden(self.state, {}))
        return judged(self.task, self.answer) if not self._under_way else Verdict.wrong("no answer was given")

    def close(self) -> None:
        server, self.server, self._under_way = self.server, None, False
        if server is not None:
            server.close()

    def _called(self, made: ToolCall) -> tuple[str, str]:
        """Return what a call is answered with, and what was wrong with it."""
        assert self.server is not None
        if made.problem or made.arguments is None:
            return f"error: {made.reason}", made.reason or "it cannot be read"
        if made.name not in {t.name for t in self.tools}:
            reason = f"there is no tool {made.name[:60]!r}"
            return f"error: {reason}", reason
        text, failed = self.server.call(made.name, made.arguments)
        return text, " ".join(text.split())[:300] or "an error" if failed else ""

    def _hidden(self, name: str, arguments: Mapping[str, Any]) -> str:
        assert self.server is not None
        text, failed = self.server.call(name, arguments)
        if failed:
            raise EnvironmentFailure(f"tool {name}: {text}")
        return text


def _read(file: Path) -> list[Task]:
    """Return a file's tasks.

    Raises:
        UsageError: it cannot be read.
    """
    out = []
    try:
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if not line.strip():
                continue
            row = json.loads(line)
            meta = {"setup": row["setup"]} if row.get("setup") else {}
            name = str(row.get("id", f"mcp/{number}"))
            out.append(Task(name, row["prompt"], row.get("reference"), row.get("kind", "exact"), meta=meta))
    except OSError as error:
        raise UsageError(f"environment 'mcp': cannot read {file}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"environment 'mcp': {file}:{number}: no task in this row: {error}") from None
    return out


def _said(error: BaseException) -> str:
    """Return what an error says, of a group what its first does."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
