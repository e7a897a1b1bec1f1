"""What a person sees while a run goes on: a progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Tick(Protocol):
    """Report that ``done`` units are finished, with a few words on how it goes."""

    def __call__(self, done: int, words: str = "") -> None: ...


class Reporter:
    """Prints lines and progress to standard error.

    Args:
        quiet: print nothing.
        interval: seconds between plain lines when not on a terminal.
    """

    def __init__(self, quiet: bool = False, interval: float = 10.0):
        self.console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
        self.quiet, self.interval = quiet, interval

    def line(self, text: str) -> None:
        self.console.print(text, markup=False)

    @contextmanager
    def progress(self, name: str, total: int, done: int = 0) -> Iterator[Tick]:
        """Show progress of ``name`` over ``total`` units with rate and time left."""
        if self.quiet:
            yield lambda done, words="": None
        elif self.console.is_terminal:
            with self._bar(name, total, done) as tick:
                yield tick
        else:
            yield self._lines(name, total, done)

    @contextmanager
    def _bar(self, name: str, total: int, done: int) -> Iterator[Tick]:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[words]}"),
        )
        with Progress(*columns, console=self.console, transient=False) as bar:
            task = bar.add_task(name, total=total, completed=done, words="", rate="")
            start, first = time.monotonic(), done

            def tick(done: int, words: str = "") -> None:
                rate = f"{(done - first) / max(time.monotonic() - start, 1e-9):.2f}/s"
                bar.update(task, completed=done, words=words, rate=rate)

            yield tick

    def _lines(self, name: str, total: int, first: int) -> Tick:
        start = last = time.monotonic()

        def tick(done: int, words: str = "") -> None:
            nonlocal last
            now = time.monotonic()
            if now - last < self.interval and done < total:
                return
            if done >= total and now - start < 2:
                return
            last = now
            rate = (done - first) / max(now - start, 1e-9)
            left = (total - done) / rate if rate else 0
            self.line(f"{name} {done}/{total}  {rate:.2f}/s  {left:.0f} s left  {words}".rstrip())

        return tick
