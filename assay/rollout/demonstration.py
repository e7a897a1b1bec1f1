"""Beside the sampled responses the task's worked solution, as an outside author's response to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.registry import part
from assay.rollout.single_turn import SingleTurn, full_prompt
from assay.types import Ask, Episode, Group, Origin


@part("rollout", "demonstration")
@dataclass(frozen=True, slots=True)
class Demonstration:
    """``ask.n - 1`` sampled responses and ``task.solution``, which is judged and learned from like the others.

    The solution's tokens are of origin ``TEACHER``, its log-probabilities unknown. A task without a solution, with one
    of more than ``max_tokens`` tokens, or asked for a single response, gets ``ask.n`` sampled responses.

    Args:
        sampling: how tokens of the sampled responses are drawn.
    """

    sampling: Sampling

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        shown = [self._solution(ask, engine) for ask in asks]
        fewer = [replace(a, n=a.n - 1) if e is not None else a for a, e in zip(asks, shown, strict=True)]
        groups = SingleTurn(self.sampling).collect(fewer, engine, rng)
        return [
            Group(ask, (*group.episodes, *([] if solution is None else [solution])))
            for ask, group, solution in zip(asks, groups, shown, strict=True)
        ]

    def _solution(self, ask: Ask, engine: Engine) -> Episode | None:
        if ask.task.solution is None or ask.n < 2:
            return None
        tokens = np.asarray(engine.encode_response(ask.task.solution), dtype=np.int64)
        if not 0 < len(tokens) <= self.sampling.max_tokens:
            return None
        return Episode(
            prompt=engine.encode(full_prompt(ask)),
            tokens=tokens,
            mask=np.ones(len(tokens), dtype=bool),
            logprobs=None,
            text=ask.task.solution,
            stop="eos",
            origins=np.full(len(tokens), Origin.TEACHER, dtype=np.uint8),
        )
