"""Dynamic sampling: ask on until the batch is full of prompts that are neither all right nor all wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.engines.base import Engine
from assay.errors import UsageError
from assay.registry import build, part
from assay.rollout.base import Rollout
from assay.types import Ask, Group


@part("rollout", "dynamic")
@dataclass(slots=True)
class Dynamic:
    """Collects, judges and keeps the groups with both right and wrong responses, until there are as many as asks.

    Further prompts come from the curriculum. What is kept beyond the number of asks is dropped; after ``rounds`` the
    step goes on with what there is, which may be nothing. It is the verdict that counts, not the shaped reward.

    Source: DAPO (arXiv 2503.14476), section 3.2.

    Args:
        sampling, judge, more, curriculum, answer, progress: supplied by the run.
        inner: the rollout that answers a round's asks.
        rounds: generation rounds in a step, at most.

    Raises:
        UsageError: ``rounds`` below 1.
    """

    sampling: Any
    judge: Callable[[Sequence[Group]], list[Group]]
    more: Callable[[], Sequence[Ask]]
    curriculum: Any = None
    answer: Any = None
    progress: Callable[[], tuple[int, int]] = lambda: (0, 1)
    inner: Any = "single_turn"
    rounds: int = 10
    _inner: Rollout = field(init=False)
    _told: list[dict[str, float]] = field(default_factory=list, init=False)
    _asked: int = field(default=0, init=False)
    _kept: int = field(default=0, init=False)
    _rounds: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise UsageError(f"rollout 'dynamic': rounds = {self.rounds} asks nothing; use 1 or more")
        given = {"sampling": self.sampling, "judge": self.judge, "more": self.more, "curriculum": self.curriculum}
        extra = {} if self.answer is None else {"answer": self.answer}
        self._inner = build("rollout", self.inner, **given, **extra, progress=self.progress)

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        wanted, kept = len(asks), list[Group]()
        self._asked = self._rounds = 0
        self._told = []
        while True:
            found = self.judge(self._inner.collect(asks, engine, rng))
            self._asked += len(found)
            self._rounds += 1
            self._told.append(getattr(self._inner, "metrics", dict)())
            kept += [group for group in found if mixed(group)]
            if len(kept) >= wanted or self._rounds == self.rounds:
                self._kept = min(len(kept), wanted)
                return kept[:wanted]
            asks = self.more()

    def metrics(self) -> dict[str, float]:
        """``dynamic/rounds``, and ``dynamic/kept``: the share of the groups sampled that the step learns from; means
        over rounds of what the rollout inside tells."""
        inside = {k: float(np.mean([t[k] for t in self._told if k in t])) for told in self._told for k in told}
        return {**inside, "dynamic/rounds": self._rounds, "dynamic/kept": self._kept / max(self._asked, 1)}


def mixed(group: Group) -> bool:
    """Whether both a right and a wrong verdict are among the group's."""
    return {True, False} <= {verdict.passed for verdict in group.verdicts}
