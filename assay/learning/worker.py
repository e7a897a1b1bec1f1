"""A thread beside the main one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
PATIENCE = 2.0
"""Seconds that a thread is given to end."""


class Cancelled(Exception):
    """The run is over: what is under way is not wanted any more."""


class Worker:
    """A thread that does what it is given, in order; its errors go to who waits for the result."""

    def __init__(self, name: str):
        self.name = name
        self.closed = False
        self._queue: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Have ``work`` done after what was submitted before."""
        future: Future[T] = Future()
        self._queue.put((future, work))
        if self._thread is None:
            # A daemon: a thread that does not end must not keep the process alive.
            self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
            self._thread.start()
        return future

    def check(self) -> None:
        """Raise :class:`Cancelled` once the thread is closed."""
        if self.closed:
            raise Cancelled

    def _run(self) -> None:
        while (entry := self._queue.get()) is not None:
            future, work = entry
            try:
                self.check()
                future.set_result(work())
            except BaseException as error:  # whoever waits raises it
                future.set_exception(error)
            del entry, future, work  # a thread that waits keeps nothing alive

    def close(self) -> None:
        """Begin nothing more, and wait a little for what is under way."""
        self.closed = True
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(PATIENCE)
