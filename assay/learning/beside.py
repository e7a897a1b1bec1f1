"""Judging what is generated while more is generated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from assay.engines.ended import listening
from assay.learning.ahead import Ahead
from assay.learning.worker import Worker
from assay.types import Ask, Group


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
