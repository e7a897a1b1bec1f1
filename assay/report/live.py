"""The report of a run that still goes on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from assay.report.html import write_report
from assay.training.callbacks import Callback, Running

if TYPE_CHECKING:
    from assay.records.evaluation import Evaluation

EVERY = 10.0
"""Seconds between two pages at least."""


class LiveReport(Callback):
    """Writes ``report.html`` when a run begins, and after evaluations and checkpoints, at most every :data:`EVERY`
    seconds, where ``run.report`` asks for one.

    A page that cannot be written is no reason to end a run: that is said once, and the run goes on.
    """

    def __init__(self) -> None:
        self._next = 0.0

    def on_start(self, run: Running) -> None:
        self._write(run)

    def on_evaluation(self, run: Running, evaluation: Evaluation) -> None:
        self._write(run)

    def on_checkpoint(self, run: Running, folder: Path) -> None:
        self._write(run)

    def _write(self, run: Running) -> None:
        now = time.monotonic()
        if now < self._next or not run.config.run.report:
            return
        self._next = now + EVERY
        try:
            write_report(run.folder)
        except Exception as error:
            self._next = float("inf")
            run.say(f"report.html cannot be written while the run goes on: {type(error).__name__}: {error}")
