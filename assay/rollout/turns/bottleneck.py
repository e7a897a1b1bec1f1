"""A teacher's reasoning for what fails by itself and succeeds once it is told what to aim at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.engines.asking import judge_of, shared
from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.single_turn import SingleTurn
from assay.types import Ask, Episode, Group, Origin


@part("rollout", "bottleneck")
@dataclass(slots=True)
class Bottleneck:
    """Of each task a response of the policy's without a hint and one with ``task.hints[0]``; then a teacher's.

    A task is a bottleneck where the first is wrong and the second right: what is missing is to see what to aim at. Only
    then a teacher, another model, is asked the task's own prompt for reasoning and answer, ``tries`` times; the first
    response that the run's verifier passes is the group's one episode, its tokens of origin ``TEACHER``, for objective
    ``sft``. Groups of all other tasks are empty.

    Args:
        sampling, judge: supplied by the run.
        teacher: an engine, or the specification of one.
        tries: responses of the teacher, at least 1.
        max_tokens: of one; those of the run unless given.

    Raises:
        UsageError: the teacher is no engine, or a number below 1.

    Source: the spatial reasoning distillation of InfiGUI-R1 (arXiv 2504.14239).
    """

    sampling: Sampling
    judge: Callable[[Sequence[Group]], list[Group]]
    teacher: Any
    tries: int = 4
    max_tokens: int | None = None
    _seen: dict[str, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if min(self.tries, 1 if self.max_tokens is None else self.max_tokens) < 1:
            raise UsageError("rollout 'bottleneck': tries and max_tokens must be at least 1")
        self.teacher = judge_of(self.teacher, "rollout 'bottleneck'")

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        hinted = [Ask(a.task, 1, a.task.hints[0] if a.task.hints else None) for a in asks]
        plain = self._right([Ask(a.task, 1) for a in asks], engine, rng)
        helped = self._right(hinted, engine, rng)
        narrow = [a for a, p, h in zip(asks, plain, helped, strict=True) if p is False and h is True and a.task.hints]
        taught = self._taught(narrow, engine, rng)
        n = max(1, len(asks))
        self._seen = {"bottleneck/tasks": len(narrow) / n, "bottleneck/taught": len(taught) / n}
        return [Group(a, taught.get(a.task.id, ())) for a in asks]

    def metrics(self) -> dict[str, float]:
        """Shares of the tasks that are bottlenecks, and that the teacher has solved."""
        return self._seen

    def _right(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[bool | None]:
        groups = self.judge(SingleTurn(self.sampling).collect(asks, engine, rng))
        return [group.verdicts[0].passed for group in groups]

    def _taught(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> dict[str, tuple[Episode, ...]]:
        """Return the teacher's first right response to each task that it has solved."""
        if not asks:
            return {}
        sampling = Sampling(self.max_tokens or self.sampling.max_tokens)
        seeds = rng.integers(2**63, size=len(asks)).tolist()
        requests = [Request(a.task.prompt, self.tries, sampling, s) for a, s in zip(asks, seeds, strict=True)]
        written = [
            tuple(e for e in said if e.stop in ("eos", "stop"))
            for said in shared(engine, requests, self.teacher.generate)
        ]
        groups = self.judge([Group(Ask(a.task, len(w)), w) for a, w in zip(asks, written, strict=True)])
        out: dict[str, tuple[Episode, ...]] = {}
        for group in groups:
            right = (e.text for e, v in zip(group.episodes, group.verdicts, strict=True) if v.passed)
            if (text := next(right, None)) is not None:
                out[group.task.id] = (_written(text, group, engine),)
        return out


def _written(text: str, group: Group, engine: Engine) -> Episode:
    tokens = np.asarray(engine.encode_response(text), dtype=np.int64)
    origins = np.full(len(tokens), Origin.TEACHER, dtype=np.uint8)
    prompt = engine.encode(group.task.prompt)
    return Episode(prompt, tokens, np.ones(len(tokens), dtype=bool), None, text, "eos", origins=origins)
