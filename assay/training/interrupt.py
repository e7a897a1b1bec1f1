"""Ctrl-C and SIGTERM: finish the step in flight, then stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """``requested`` names the signal that asked to stop, or is None. A second Ctrl-C stops at once."""

    def __init__(self) -> None:
        self.requested: signal.Signals | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.requested is not None:
            raise KeyboardInterrupt
        self.requested = signal.Signals(number)


@contextmanager
def interrupts() -> Iterator[Interrupt]:
    """Catch SIGINT and SIGTERM for the duration; outside the main thread, signals are left alone."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    before = {s: signal.signal(s, interrupt) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
