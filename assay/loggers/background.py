"""A logger beside the run: it is waited for nowhere, and what fails in it ends no run."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assay.loggers.base import About, Logger

WAITING = 1000
"""Calls that may wait for a logger; those beyond are left out and count as failed."""

IN_A_ROW = 20
"""Failures after which a logger is asked no more."""

PATIENCE = 60.0
"""Seconds that the end of a run waits for a logger that has something left to send."""


class Background:
    """Hands calls to a logger from a thread of its own, in order.

    The first failure is said, at the end how many there were.

    Args:
        name: of the logger, for these lines.
        logger: takes the calls.
        say: prints a line; called from the thread.
        patience: seconds that :meth:`close` waits.
        waiting: calls that may wait.
    """

    def __init__(
        self,
        name: str,
        logger: Logger,
        say: Callable[[str], None],
        patience: float = PATIENCE,
        waiting: int = WAITING,
    ):
        self.name, self.logger, self.patience = name, logger, patience
        self.calls = self.failed = 0
        self._say, self._in_a_row, self._told = say, 0, threading.Lock()
        self._queue: queue.Queue[tuple[Callable[..., None], tuple[Any, ...]] | None] = queue.Queue(waiting)
        self._thread = threading.Thread(target=self._work, name=f"logger {name}", daemon=True)
        self._thread.start()

    def start(self, about: About) -> None:
        self._put(self.logger.start, about)

    def metrics(self, stage: str, step: int, values: Mapping[str, float]) -> None:
        self._put(self.logger.metrics, stage, step, dict(values))

    def table(self, name: str, step: int, rows: Sequence[Mapping[str, Any]]) -> None:
        self._put(self.logger.table, name, step, rows)

    def close(self) -> None:
        """Let the logger send what is left, and say how much of it failed."""
        self._put(self.logger.close)
        end = time.monotonic() + self.patience
        while self._thread.is_alive():
            try:
                self._queue.put_nowait(None)
                break
            except queue.Full:  # of a logger that hangs
                if time.monotonic() > end:
                    break
                self._thread.join(0.05)
        self._thread.join(max(0.0, end - time.monotonic()))
        if self._thread.is_alive():
            left = self._queue.qsize() + 1
            self._say(f"logger {self.name} did not end within {self.patience:g} s; {left} of its calls are left undone")
        elif self.failed:
            self._say(f"logger {self.name}: {self.failed} of {self.calls} calls failed; {FOLDER}")

    def _put(self, call: Callable[..., None], *arguments: Any) -> None:
        self.calls += 1
        try:
            self._queue.put_nowait((call, arguments))
        except queue.Full:
            self._fail("it is slower than the run, and more of its calls wait than may")

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            call, arguments = item
            if self._in_a_row >= IN_A_ROW:
                self._fail("")
                continue
            try:
                call(*arguments)
                self._in_a_row = 0
            except (Exception, SystemExit) as error:  # whatever a library or its server does
                self._in_a_row += 1
                said = " ".join(str(error).split())[:300]
                self._fail(f"{type(error).__name__}" + (f": {said}" if said else ""))

    def _fail(self, reason: str) -> None:
        with self._told:
            self.failed += 1
            first = self.failed == 1
        if first:
            self._say(f"logger {self.name} failed and the run goes on: {reason}; {FOLDER}")


FOLDER = "the run's folder has everything"
