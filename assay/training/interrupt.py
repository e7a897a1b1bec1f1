"""Ctrl-C and SIGTERM: finish the step in flight, then stop."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

NOTICE = b"finishing the step in flight, then stopping; Ctrl-C again stops at once\n"


class Stopped(Exception):
    """A signal asked to stop, and this is a good moment."""


class Interrupt:
    """``requested`` is the signal that asked to stop, or None; a second one raises KeyboardInterrupt where it strikes.

    Args:
        quiet: say nothing when asked.
        agree: told the number of the signal that this process got, 0 for none, returns the one that all processes of
            the run go by, so that they stop at the same moment.
    """

    def __init__(self, quiet: bool = False, agree: Callable[[int], int] = lambda own: own) -> None:
        self.quiet, self.agree = quiet, agree
        self.requested: signal.Signals | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.requested is not None:
            raise KeyboardInterrupt
        self.requested = signal.Signals(number)
        if not self.quiet:
            # A handler may strike inside a buffered write, which must not be entered twice.
            os.write(2, NOTICE)

    def check(self) -> None:
        """Raise :class:`Stopped` if asked to stop."""
        if number := self.agree(int(self.requested or 0)):
            self.requested = signal.Signals(number)
            raise Stopped


@contextmanager
def interrupts(quiet: bool = False, agree: Callable[[int], int] = lambda own: own) -> Iterator[Interrupt]:
    """Catch SIGINT and SIGTERM for the duration; outside the main thread, signals are left alone."""
    interrupt = Interrupt(quiet, agree)
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    before = {s: signal.signal(s, interrupt) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
