"""Tasks made from judged responses and asked within the step: judging one's own answers, mending them, proposing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.registry import build
from assay.rollout.base import Rollout
from assay.rollout.single_turn import fits, full_prompt
from assay.types import Ask, Group, Task
from assay.verify.base import Verifier
from assay.verify.episodes import judge_groups
from assay.verify.kind import KindVerifier


@dataclass(slots=True)
class Derived(ABC):
    """The groups that were asked, judged, and after them one group for each task that :meth:`derive` makes of these.

    A derived group is of the same step and policy and is learned from with the others: it is an advantage group of its
    own, its verifier is :meth:`verifier`, its task's ``parent`` names the task it was made from. Curricula and the
    run's metrics of answers do not see it. A derived prompt that leaves no room for a response in the model's context
    is left out. Nothing is drawn, generated or judged for a step that derives nothing.

    Args:
        sampling, judge, more, curriculum, answer, progress: supplied by the run.
        inner: the rollout that answers what is asked.
        n: responses to a derived task; as many as to the task it was made from if ``None``.
        max_tokens: of a response to a derived task; as of the others if ``None``.

    Raises:
        UsageError: ``n`` or ``max_tokens`` below 1.
    """

    sampling: Sampling
    judge: Callable[[Sequence[Group]], list[Group]]
    more: Any = None
    curriculum: Any = None
    answer: Any = field(default_factory=lambda: KindVerifier().answer)
    progress: Callable[[], tuple[int, int]] = lambda: (0, 1)
    inner: Any = "single_turn"
    n: int | None = None
    max_tokens: int | None = None
    _inner: Rollout = field(init=False)
    _metrics: dict[str, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for name, value in (("n", self.n), ("max_tokens", self.max_tokens)):
            if value is not None and value < 1:
                raise UsageError(f"rollout {type(self).__name__}: {name} = {value} must be at least 1")
        given = {"sampling": self.sampling, "judge": self.judge, "more": self.more, "curriculum": self.curriculum}
        self._inner = build("rollout", self.inner, **given, answer=self.answer, progress=self.progress)

    @abstractmethod
    def derive(self, groups: Sequence[Group], engine: Engine, rng: np.random.Generator) -> list[Ask]:
        """Return what to ask next; every task has a ``parent``. ``groups`` are those that were asked, judged."""

    def begun(self, task: Task, engine: Engine) -> Sequence[int]:
        """Return the token ids that responses to a derived task go on from, after its prompt's."""
        return ()

    def verifier(self, kind: str) -> Verifier | None:
        """Return what judges derived tasks of a kind, ``None`` where it is the run's verifier."""
        return None

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        groups = self.judge(self._inner.collect(asks, engine, rng))
        made = self.derive([group for group in groups if not group.derived], engine, rng)
        asked = [ask for ask in made if fits(ask, engine, self.further, len(self.begun(ask.task, engine)))]
        found = self._judged(self._responses(asked, engine, rng)) if asked else []
        self._metrics = {
            **getattr(self._inner, "metrics", dict)(),
            "derived/asked": float(len(asked)),
            "derived/left_out": float(len(made) - len(asked)),
            "derived/tokens": float(sum(len(e.tokens) for g in found for e in g.episodes)),
        }
        return [*groups, *found]

    @property
    def further(self) -> Sampling:
        """How responses to derived tasks are drawn."""
        return self.sampling if self.max_tokens is None else replace(self.sampling, max_tokens=self.max_tokens)

    def metrics(self) -> dict[str, float]:
        """Those of the rollout inside; how many tasks were derived and ``asked``, how many ``left_out`` for want of
        room, and the ``tokens`` of all responses to them."""
        return self._metrics

    def _responses(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        seeds = rng.integers(2**63, size=len(asks)).tolist()
        requests = [
            Request(full_prompt(a), a.n, self.further, seed, tuple(self.begun(a.task, engine)))
            for a, seed in zip(asks, seeds, strict=True)
        ]
        return [Group(a, tuple(e)) for a, e in zip(asks, engine.generate(requests), strict=True)]

    def _judged(self, groups: Sequence[Group]) -> list[Group]:
        """Judge each kind by its own verifier."""
        out = list(groups)
        for kind in dict.fromkeys(group.task.kind for group in groups):
            own, rows = self.verifier(kind), [i for i, group in enumerate(groups) if group.task.kind == kind]
            judge = self.judge if own is None else partial(judge_groups, own)
            for i, group in zip(rows, judge([groups[i] for i in rows]), strict=True):
                out[i] = group
        return out
