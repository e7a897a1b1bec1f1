"""Beside the sampled responses one of a teacher's, that the verifier found right: an outside author to learn from."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from assay.engines.asking import judge_of, seed_of, shared
from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.demonstration import Demonstration
from assay.rollout.single_turn import full_prompt
from assay.types import Ask, Group, Task


@part("rollout", "taught")
@dataclass(slots=True)
class Taught:
    """As ``demonstration``, with the solution written by a teacher: another model, asked the task's own prompt.

    The teacher writes ``tries`` responses at once; the first that the run's verifier passes is the solution, and is
    remembered for the task. Where none passes, which is remembered too, the task's own ``solution`` takes its place if
    it has one, else all responses are the policy's. A task is asked about again if the teacher could not be reached, or
    the verifier abstained. Seeds are the tasks' own, so that a resumed run, which has forgotten, is told the same. With
    ``keep = "any"`` the first response that was finished will do: no verifier is asked before, and what it makes of the
    response afterwards is its reward.

    Source: the outside data of RL-PLUS (arXiv 2508.00222), written when it is needed.

    Args:
        sampling, judge: supplied by the run.
        teacher: an engine, or the specification of one; not the policy's own.
        tries: responses asked for, at least 1.
        keep: ``right`` or ``any``.
        max_tokens, temperature: of the teacher's responses; ``max_tokens`` those of the run unless given.
        remembered: tasks of which is kept what the teacher wrote.

    Raises:
        UsageError: the teacher is no engine, or a number below 1.
    """

    sampling: Sampling
    judge: Callable[[Sequence[Group]], list[Group]]
    teacher: Any
    tries: int = 4
    keep: Literal["right", "any"] = "right"
    max_tokens: int | None = None
    temperature: float = 1.0
    remembered: int = 100_000
    # The solution of each task, "" where the teacher wrote none; the one that was used last comes last.
    _known: OrderedDict[str, str] = field(default_factory=OrderedDict, init=False, repr=False)
    _seen: dict[str, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if min(self.tries, self.remembered, 1 if self.max_tokens is None else self.max_tokens) < 1:
            raise UsageError("rollout 'taught': tries, remembered and max_tokens must be at least 1")
        self.teacher = judge_of(self.teacher, "rollout 'taught'")

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        self._teach([ask for ask in asks if ask.n > 1], engine)
        shown = [replace(ask, task=self._solved(ask)) for ask in asks]
        while len(self._known) > self.remembered:
            self._known.popitem(last=False)
        groups = Demonstration(self.sampling).collect(shown, engine, rng)
        return [replace(group, ask=ask) for ask, group in zip(asks, groups, strict=True)]

    def metrics(self) -> dict[str, float]:
        """``teacher/asked`` tasks, and of these the shares ``teacher/used`` and ``teacher/failed`` to be reached."""
        return self._seen

    def _teach(self, asks: Sequence[Ask], engine: Engine) -> None:
        """Ask the teacher about the tasks of which it is not known what it writes, each once."""
        self._seen = {}
        new = {key: ask for ask in asks if (key := key_of(ask)) not in self._known}
        if not new:
            return
        sampling = Sampling(self.max_tokens or self.sampling.max_tokens, self.temperature)
        requests = [Request(full_prompt(ask), self.tries, sampling, seed_of(key)) for key, ask in new.items()]
        written = shared(engine, requests, self.teacher.generate)
        reached = [[e for e in episodes if e.stop != "error"] for episodes in written]
        passed: list[list[bool | None]] = [[True] * len(episodes) for episodes in reached]
        if self.keep == "right":
            groups = [Group(replace(a, n=len(e)), tuple(e)) for a, e in zip(new.values(), reached, strict=True)]
            passed = [[v.passed for v in group.verdicts] for group in self.judge(groups)]
        for key, episodes, right in zip(new, reached, passed, strict=True):
            finished = zip(episodes, right, strict=True)
            good = next((e.text for e, ok in finished if ok and e.text and e.stop != "length"), "")
            if good or (len(episodes) == self.tries and None not in right):
                self._known[key] = good
        self._seen = {
            "teacher/asked": float(len(new)),
            "teacher/used": sum(bool(self._known.get(key)) for key in new) / len(new),
            "teacher/failed": sum(not episodes for episodes in reached) / len(new),
        }

    def _solved(self, ask: Ask) -> Task:
        key = key_of(ask)
        if key in self._known:
            self._known.move_to_end(key)
        solution = self._known.get(key)
        return replace(ask.task, solution=solution) if solution else ask.task


def key_of(ask: Ask) -> str:
    return f"{ask.task.id}\n{ask.instruction}\n{ask.hint}\n{ask.task.prompt}"
