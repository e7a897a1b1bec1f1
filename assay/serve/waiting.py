"""Waiting for what another thread tells, for as long as the client waits too."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from starlette.types import Receive

T = TypeVar("T")


class Left(Exception):
    """The client has closed the connection."""


class Bell:
    """Wakes a coroutine of this thread's loop, from any thread; rung often before it is heard, it wakes once."""

    def __init__(self) -> None:
        self.loop, self.event, self.rung = asyncio.get_running_loop(), asyncio.Event(), False

    def ring(self) -> None:
        if not self.rung:
            self.rung = True
            with contextlib.suppress(RuntimeError):  # the loop has ended, and with it whoever would have heard
                self.loop.call_soon_threadsafe(self.event.set)

    async def heard(self) -> None:
        """Return when it was rung since the last time."""
        await self.event.wait()
        self.event.clear()
        self.rung = False


async def while_connected(receive: Receive, work: Callable[[], Awaitable[T]]) -> T:
    """Return what ``work`` returns, unless the client leaves first, which cancels it.

    Args:
        receive: of a request whose body is read, so that it has nothing to say but that the client left.

    Raises:
        Left: it did.
    """
    done: list[T] = []
    error: Exception | None = None

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        try:
            done.append(await work())
        except Exception as raised:  # a group would wrap it
            error = raised
        group.cancel_scope.cancel()
    if error is not None:
        raise error
    if not done:
        raise Left
    return done[0]
