"""Responses to questions with options, each answered again from its own thought where the options stand otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.registry import build, part
from assay.rollout.base import Rollout
from assay.rollout.reread.options import order_of, reordered
from assay.rollout.single_turn import full_prompt
from assay.signals.answer_tokens import answer_range
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.answer.options import listed
from assay.verify.answer.spans import Span

REORDERED = "reordered"
"""Key of ``episode.meta``: a :class:`Second`."""


@dataclass(frozen=True, slots=True)
class Second:
    """What a response's thought led to among the same options in another order.

    Attributes:
        order: the i-th option is what was the ``order[i]``-th.
        passed: whether that answer is right, ``None`` where that cannot be told.
        same: whether it is the option that the response chose, by what it says and not by its letter; ``None``
            likewise.
        text: the thought and the answer.
    """

    order: tuple[int, ...]
    passed: bool | None
    same: bool | None
    text: str


@part("rollout", "reordered")
@dataclass(slots=True)
class Reordered:
    """Has the asks answered by another rollout; then the options of each question are put in another order, the tokens
    of each response up to its answer are put after the new question, and what follows is its second answer.

    The thought stands as it was sampled and is not tokenised again. The responses come back judged, with
    ``meta["reordered"]``, a :class:`Second`; a response without an answer has no second one that is right. Second
    answers are not learned from.

    Args:
        sampling, judge, answer, more, curriculum: supplied by the run.
        inner: the rollout that answers the asks.
        order: ``derangement``: no option keeps its letter; ``any``: each order is as likely, the same one included.
        tokens: of a second answer, at most.
        temperature: of second answers.

    Raises:
        UsageError: fewer than one token.

    Source: ACRE (arXiv 2510.10104), which draws any order.
    """

    sampling: Sampling
    judge: Callable[[Sequence[Group]], list[Group]]
    answer: Callable[[Task, str], Span | None]
    more: Any = None
    curriculum: Any = None
    inner: Any = "single_turn"
    order: Literal["derangement", "any"] = "derangement"
    tokens: int = 16
    temperature: float = 0.0
    _inner: Rollout = field(init=False)
    _metrics: dict[str, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise UsageError(f"rollout 'reordered': tokens {self.tokens} must be at least 1")
        given = {"sampling": self.sampling, "judge": self.judge, "more": self.more, "curriculum": self.curriculum}
        self._inner = build("rollout", self.inner, **given, answer=self.answer)

    def metrics(self) -> dict[str, float]:
        """``reordered/same``: of the last responses, the share whose two answers are one (OSCR); ``reordered/right``:
        of their second answers, those that are right."""
        return self._metrics

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        groups = self.judge(self._inner.collect(asks, engine, rng))
        plan: list[tuple[int, int, tuple[int, ...], Ask, list[int]]] = []
        for g, group in enumerate(groups):
            for i, episode in enumerate(group.episodes):
                order = order_of(rng, len(listed(group.task.question)), self.order)
                tokens = episode.tokens.tolist()
                first, _ = answer_range(tokens, engine.decode, partial(self.answer, group.task))
                asked = replace(group.ask, task=reordered(group.task, order), n=1)
                plan.append((g, i, order, asked, tokens[:first]))
        seeds = rng.integers(2**63, size=len(plan)).tolist()
        sampling = replace(self.sampling, max_tokens=self.tokens, temperature=self.temperature)
        going_on = [k for k, (*_, thought) in enumerate(plan) if thought]
        requests = [Request(full_prompt(plan[k][3]), 1, sampling, seeds[k], tuple(plan[k][4])) for k in going_on]
        found = dict(zip(going_on, engine.generate(requests) if requests else [], strict=True))
        seconds = [
            replace(found[k][0], text=engine.decode([*thought, *found[k][0].tokens.tolist()])) if thought else None
            for k, (*_, thought) in enumerate(plan)
        ]
        verdicts = self._verdicts([(plan[k][3].task, e) for k in going_on if (e := seconds[k]) is not None])
        made = [list(group.episodes) for group in groups]
        judged = dict(zip(going_on, verdicts, strict=True))
        for k, (g, i, order, asked, _) in enumerate(plan):
            first_one, second = groups[g].verdicts[i].passed, seconds[k]
            passed = judged[k].passed if second is not None else False
            same: bool | None = first_one is True and passed is True
            if first_one is None or passed is None:
                same = None
            elif second is not None and not first_one and not passed:
                same = self._same(groups[g].task, made[g][i], asked.task, second, order)
            told = Second(order, passed, same, "" if second is None else second.text)
            made[g][i] = replace(made[g][i], meta={**made[g][i].meta, REORDERED: told})
        tolds = [e.meta[REORDERED] for episodes in made for e in episodes]
        known = [t for t in tolds if t.same is not None]
        self._metrics = (
            {
                "reordered/same": float(np.mean([t.same for t in known])),
                "reordered/right": float(np.mean([t.passed for t in known])),
            }
            if known
            else {}
        )
        return [replace(group, episodes=tuple(e)) for group, e in zip(groups, made, strict=True)]

    def _verdicts(self, pairs: Sequence[tuple[Task, Episode]]) -> list[Verdict]:
        return [g.verdicts[0] for g in self.judge([Group(Ask(task, 1), (episode,)) for task, episode in pairs])]

    def _same(self, task: Task, one: Episode, other: Task, two: Episode, order: Sequence[int]) -> bool:
        """Whether two wrong answers choose the same option: what the verifier would take each for, were that right."""
        labels = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(order)]
        first = self._verdicts([(replace(task, reference=label), one) for label in labels])
        second = self._verdicts([(replace(other, reference=label), two) for label in labels])
        return any(second[i].passed and first[k].passed for i, k in enumerate(order))
