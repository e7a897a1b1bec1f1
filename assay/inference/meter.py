"""What each task has cost so far, and what may still be begun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.errors import RunError
from assay.inference.base import Answer, Budget
from assay.inference.scorers import Score, Scorer
from assay.types import Episode, Task


class Meter:
    """Samples and scores for a strategy, within the budget of each task.

    Args:
        tasks, engine, budget, rng: what the strategy was called with.
        sampling: how whole responses are drawn.
        scorer: who will score them, whose cost is set aside when a response is begun.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        engine: Engine,
        budget: Budget | int,
        rng: np.random.Generator,
        sampling: Sampling,
        scorer: Scorer | None = None,
    ):
        self.tasks, self.engine, self.rng, self.sampling, self.scorer = list(tasks), engine, rng, sampling, scorer
        self.budget = Budget.of(budget)
        self.begun = [0] * len(tasks)
        self.spent = [0] * len(tasks)
        self.scoring = [0] * len(tasks)

    @property
    def samples(self) -> int:
        """Responses the budget is good for if each is as long as can be and costs nothing to score."""
        whole = None if self.budget.tokens is None else max(1, self.budget.tokens // self.sampling.max_tokens)
        return min(n for n in (self.budget.samples, whole) if n is not None)

    def left(self, i: int) -> int | None:
        """Tokens that task ``i`` may still spend; ``None`` for any number."""
        return None if self.budget.tokens is None else max(0, self.budget.tokens - self.spent[i])

    def may(self, i: int, wanted: int | None, tokens: int | None = None) -> int:
        """How many more responses of at most ``tokens`` (by default whole ones) may be begun; at most ``wanted``."""
        limits = [] if wanted is None else [wanted]
        if self.budget.samples is not None:
            limits.append(self.budget.samples - self.begun[i])
        if (left := self.left(i)) is not None:
            length = self.sampling.max_tokens if tokens is None else tokens
            extra = 0 if self.scorer is None else self.scorer.most(self.tasks[i], length)
            limits.append(left // max(1, length + extra))
            if not self.begun[i] and not self.spent[i]:
                limits[-1] = max(1, limits[-1])
        return max(0, min(limits))

    def fill(self, wanted: int | None = None) -> list[list[Episode]]:
        """Sample whole responses to every task until ``wanted`` or the budget is reached.

        Under a budget of tokens what short responses leave over pays for more of them.
        """
        found: list[list[Episode]] = [[] for _ in self.tasks]
        while True:
            counts = [self.may(i, None if wanted is None else wanted - len(f)) for i, f in enumerate(found)]
            if not any(counts):
                return found
            for f, new in zip(found, self.sample(counts), strict=True):
                f.extend(new)
            if self.budget.tokens is None:
                return found

    def sample(self, counts: Sequence[int], prompts: Sequence[Any] | None = None) -> list[list[Episode]]:
        """Begin ``counts[i]`` whole responses to each task, or to ``prompts[i]`` in place of its own prompt."""
        rows, asked = [], []
        for i, (task, n) in enumerate(zip(self.tasks, counts, strict=True)):
            seed = int(self.rng.integers(2**63))
            if n < 1:
                continue
            left, sampling = self.left(i), self.sampling
            if left is not None and not self.spent[i] and left < sampling.max_tokens:
                sampling = replace(sampling, max_tokens=max(1, left))
            self.begun[i] += n
            rows.append(i)
            asked.append(Request(task.prompt if prompts is None else prompts[i], n, sampling, seed))
        out: list[list[Episode]] = [[] for _ in self.tasks]
        for i, episodes in zip(rows, self.generate(rows, asked), strict=True):
            out[i] = episodes
        return out

    def generate(self, rows: Sequence[int], requests: Sequence[Request]) -> list[list[Episode]]:
        """Have requests answered, each for the task in ``rows``, and charge it; ``begun`` is left alone."""
        if not requests:
            return []
        found = self.engine.generate(requests)
        for i, request, episodes in zip(rows, requests, found, strict=True):
            if len(episodes) != request.n:
                raise RunError(f"the engine was asked for {request.n} responses and gave {len(episodes)}")
            self.spent[i] += sum(len(e.tokens) for e in episodes)
            if request.prompt != self.tasks[i].prompt and episodes and not request.prefix:
                self.spent[i] += len(episodes[0].prompt)
        return found

    def score(self, rows: Sequence[int], episodes: Sequence[Episode], scorer: Scorer | None = None) -> list[Score]:
        """Score an episode for the task in each of ``rows``, and charge it."""
        scorer = scorer or self.scorer
        if scorer is None or not episodes:
            return []
        pairs = [(self.tasks[i], e) for i, e in zip(rows, episodes, strict=True)]
        found = list(scorer.score(pairs, self.engine, self.rng))
        if len(found) != len(pairs):
            raise RunError(f"a scorer gave {len(found)} scores for {len(pairs)} responses")
        for i, score in zip(rows, found, strict=True):
            self.charge(i, score.tokens)
        return found

    def score_all(self, episodes: Sequence[Sequence[Episode]]) -> list[list[Score]]:
        """Score the responses of every task."""
        rows = [i for i, many in enumerate(episodes) for _ in many]
        scores = iter(self.score(rows, [e for many in episodes for e in many]))
        return [[next(scores) for _ in many] for many in episodes]

    def charge(self, i: int, tokens: int) -> None:
        """Count tokens of scoring."""
        self.spent[i] += tokens
        self.scoring[i] += tokens

    def answer(self, i: int, text: str | None, episodes: Sequence[Episode], **meta: Any) -> Answer:
        """Return the answer to task ``i`` at what it has cost."""
        return Answer(text, tuple(episodes), self.spent[i], meta, self.scoring[i])
