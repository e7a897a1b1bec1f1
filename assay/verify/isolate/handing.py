"""Work that waits for a few threads, handed out many pieces at once where they are quick."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

TURN = 0.02
"""Seconds of work handed out at once, as far as the pieces before tell."""
CHUNK = 256
"""Pieces handed out at once, at most."""
AHEAD = 4 * CHUNK
"""Pieces per thread that :meth:`Queue.map` reads ahead while it waits for a slow one, at most."""
REST = 1.0
"""Seconds after which a thread with nothing to do ends."""
HASTE = 0.005
"""Seconds for which pieces are collected, at most, so that those of a slow producer start at once."""

Piece = TypeVar("Piece")


class Queue(Generic[Piece]):
    """Up to ``size`` threads, started when needed, that call ``run`` with some pieces and get a result for each.

    Args:
        run: returns as many results as it is given pieces; called from any of the threads.
        size: threads.
        name: of the threads.
    """

    def __init__(self, run: Callable[[list[Piece]], list[Any]], size: int, name: str):
        self._run, self._size, self._name = run, size, name
        self._waiting: deque[tuple[Piece, Future[Any]]] = deque()
        self._wake = threading.Condition(threading.Lock())
        self._threads = self._resting = 0
        self._pace = TURN

    def put(self, pieces: list[Piece]) -> list[Future[Any]]:
        """Queue pieces and return the results to come; a future that still waits may be cancelled."""
        futures: list[Future[Any]] = [Future() for _ in pieces]
        with self._wake:
            self._waiting.extend(zip(pieces, futures, strict=True))
            start = len(self._waiting) > self._resting and self._threads < self._size
            self._threads += start
            self._wake.notify()
        if start:
            threading.Thread(target=self._serve, daemon=True, name=self._name).start()
        return futures

    def map(self, pieces: Iterable[Piece], ahead: int | None = None) -> Iterator[Any]:
        """Yield the result for each piece, in order; ``pieces`` is read at most ``ahead`` further than that."""
        most = ahead or AHEAD * self._size
        waiting: deque[Future[Any]] = deque()
        remaining = iter(pieces)
        more = True
        try:
            while True:
                enough = 4 * self._size * self._chunk()
                while more and len(waiting) < most and not (len(waiting) >= enough and waiting[0].done()):
                    some = list(_soon(remaining, min(self._chunk(), most - len(waiting))))
                    more = bool(some)
                    waiting.extend(self.put(some))
                if not waiting:
                    return
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def clear(self, result: Any) -> None:
        """Let everything that waits have this result."""
        with self._wake:
            left, self._waiting = self._waiting, deque()
        for _, future in left:
            if future.set_running_or_notify_cancel():
                future.set_result(result)

    def _chunk(self) -> int:
        return max(1, min(CHUNK, int(TURN / max(self._pace, 1e-6))))

    def _serve(self) -> None:
        """What a thread does: run what waits until nothing has for a while."""
        while some := self._take():
            start = time.monotonic()
            try:
                results = self._run([piece for piece, _ in some])
            except BaseException as error:
                for _, future in some:
                    future.set_exception(error)
                continue
            self._pace = (self._pace + (time.monotonic() - start) / len(some)) / 2
            for (_, future), result in zip(some, results, strict=True):
                future.set_result(result)

    def _take(self) -> list[tuple[Piece, Future[Any]]]:
        with self._wake:
            while True:
                # An equal share each, so that the last pieces do not wait behind one another.
                most = min(self._chunk(), -(-len(self._waiting) // self._size))
                some = [self._waiting.popleft() for _ in range(most)]
                some = [(piece, future) for piece, future in some if future.set_running_or_notify_cancel()]
                if self._waiting:
                    self._wake.notify()
                if some:
                    return some
                if not self._waiting:
                    self._resting += 1
                    woken = self._wake.wait(REST)
                    self._resting -= 1
                    if not woken and not self._waiting:
                        self._threads -= 1
                        return []


def _soon(pieces: Iterator[Piece], most: int) -> Iterator[Piece]:
    """Up to ``most`` pieces, and no more of them than come in a short time; at least one if there is one."""
    until = time.monotonic() + HASTE
    for piece in itertools.islice(pieces, most):
        yield piece
        if time.monotonic() > until:
            return
