"""What a person sees while a run goes on: a progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from assay.printable import printable


class Tick(Protocol):
    """Report that ``done`` units are finished, with a few words on how it goes."""

    def __call__(self, done: int, words: str = "") -> None: ...


class Reporter:
    """Prints lines and progress to standard error, and keeps the lines in a file once it is told of one.

    Args:
        quiet: print nothing.
        interval: seconds between plain lines when not on a terminal.
    """

    def __init__(self, quiet: bool = False, interval: float = 10.0):
        self.console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
        self.quiet, self.interval = quiet, interval
        self._bars: Progress | None = None
        self._file: Path | None = None
        self._early: list[str] = []

    def line(self, text: str) -> None:
        """Print a line, above any progress bar."""
        self.console.print(printable(text), markup=False)
        self.note(text)

    def note(self, text: str) -> None:
        """Write a line, behind the time of day, into the file alone; for now until there is one."""
        moment = datetime.now().astimezone().isoformat(" ", "seconds")
        self._early.append(f"{moment}  {printable(text)}\n")
        if self._file is not None:
            try:
                self.keep(self._file)
            except OSError as error:
                file, self._file = self._file, None
                self.console.print(
                    f"{file} cannot be written: {error.strerror}; nothing more is kept in it", markup=False
                )

    def keep(self, file: Path) -> None:
        """From now on write lines to the end of a file, beginning with those that have been said.

        Raises:
            OSError: it cannot be written.
        """
        self._file = file
        with open(file, "a", encoding="utf-8") as out:
            out.writelines(self._early)
        self._early.clear()

    @contextmanager
    def progress(self, name: str, total: int, done: int = 0) -> Iterator[Tick]:
        """Show progress of ``name`` over ``total`` units with rate and time left; may be entered within itself."""
        if self.quiet:
            yield lambda done, words="": None
        elif self.console.is_terminal:
            with self._shown() as bars:
                yield self._bar(bars, name, total, done)
        else:
            yield self._lines(name, total, done)

    @contextmanager
    def _shown(self) -> Iterator[Progress]:
        """The bars on the screen: a console can show one live display, which inner bars join."""
        if self._bars is not None:
            before = set(self._bars.task_ids)
            yield self._bars
            for task in set(self._bars.task_ids) - before:
                self._bars.remove_task(task)
            return
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[words]}", markup=False),
        )
        with Progress(*columns, console=self.console) as bars:
            self._bars = bars
            try:
                yield bars
            finally:
                self._bars = None

    @staticmethod
    def _bar(bars: Progress, name: str, total: int, first: int) -> Tick:
        task = bars.add_task(printable(name), total=total, completed=first, words="", rate="")
        start = time.monotonic()

        def tick(done: int, words: str = "") -> None:
            rate = f"{(done - first) / max(time.monotonic() - start, 1e-9):.2f}/s"
            bars.update(task, completed=done, words=printable(words), rate=rate)

        return tick

    def _lines(self, name: str, total: int, first: int) -> Tick:
        start = last = time.monotonic()

        def tick(done: int, words: str = "") -> None:
            nonlocal last
            now = time.monotonic()
            # A line now and then, and one at the end of what took long enough to be waited for.
            if now - last < self.interval and (done < total or now - start < min(2, self.interval)):
                return
            last = now
            rate = (done - first) / max(now - start, 1e-9)
            left = (total - done) / rate if rate else 0
            text = f"{name} {done}/{total}  {rate:.2f}/s  {left:.0f} s left  {words}".rstrip()
            self.console.print(printable(text), markup=False)

        return tick
