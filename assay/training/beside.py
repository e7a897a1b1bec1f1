"""A thread beside the main one, and the simplest use of it: judging what is generated while more is generated."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

import numpy as np

from assay.engines.ended import listening
from assay.training.ahead import Ahead
from assay.types import Ask, Group

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


def in_parts(asks: Sequence[Ask], parts: int) -> list[Sequence[Ask]]:
    """Split asks, in order, into at most ``parts`` runs of nearly equal size."""
    sizes = [len(part) for part in np.array_split(np.arange(len(asks)), max(1, min(parts, len(asks))))]
    ends = np.cumsum(sizes)
    return [asks[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def judged_beside(
    asks: Sequence[Ask],
    parts: int,
    collect: Callable[[Sequence[Ask]], list[Group]],
    judge: Callable[[Sequence[Group]], list[Group]],
    clock: Callable[[str], Any],
) -> list[Group]:
    """Return judged groups: those of one part of the asks are judged while the next part's are generated.

    Of an engine that tells of responses as they end, each is judged while the others of its part are generated.
    The clock is told ``generate``, ``verify`` (in a thread), and ``waiting`` for verdicts once all is generated.
    """

    def timed(groups: Sequence[Group]) -> list[Group]:
        with clock("verify"):
            return judge(groups)

    worker = Worker("verify")
    try:
        judged = []
        for part in in_parts(asks, parts):
            ahead = Ahead(part, timed, worker, whole=True)
            with clock("generate"), listening(ahead.hear):
                groups = collect(part)
            judged.append(worker.submit(partial(ahead.finish, groups)))
        with clock("waiting"):
            return [group for future in judged for group in future.result()]
    finally:
        worker.close()
