"""An event loop in a thread of its own, so that a plain call can wait for many requests at once."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
X = TypeVar("X")


class Worker:
    """Runs coroutines in one background thread, started when it is first needed.

    A caller may itself be inside an event loop (a notebook), in any thread, or in a child forked since the last call;
    an interrupt reaches the caller at once and cancels what it waits for.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0
        self.generation = 0

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return what ``coroutine`` returns, or raise what it raises."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def hearing(self, hear: Callable[[X], None], begin: Callable[[Callable[[X], None]], Coroutine[Any, Any, T]]) -> T:
        """The same of the coroutine ``begin(tell)``; what that tells meanwhile, ``hear`` gets in the calling thread."""
        told: queue.SimpleQueue[tuple[X] | None] = queue.SimpleQueue()
        future = asyncio.run_coroutine_threadsafe(begin(lambda what: told.put((what,))), self.loop())
        future.add_done_callback(lambda _: told.put(None))
        try:
            while (what := told.get()) is not None:
                hear(*what)
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def loop(self) -> asyncio.AbstractEventLoop:
        """Return the running loop; another one, with ``generation`` one more, in a forked child or after a close."""
        with self._lock:
            if self._loop is None or self._process != os.getpid():
                self._loop, self._process = asyncio.new_event_loop(), os.getpid()
                self.generation += 1
                threading.Thread(target=_serve, args=(self._loop,), name="assay-openai", daemon=True).start()
                weakref.finalize(self, _stop, self._loop, self._process)
            return self._loop

    def close(self) -> None:
        with self._lock:
            if self._loop is not None:
                _stop(self._loop, self._process)
            self._loop = None


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop, process: int) -> None:
    if process == os.getpid() and not loop.is_closed():
        loop.call_soon_threadsafe(loop.stop)
