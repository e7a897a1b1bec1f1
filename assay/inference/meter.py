"""What each task has cost so far, and what may still be begun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.errors import RunError
from assay.inference.base import Answer, Budget
from assay.inference.scoring.base import Score, Scorer
from assay.types import Episode, Task


class Meter:
    """Samples and scores for a strategy, within the budget of each task.

    Args:
        tasks, engine, budget, rng: what the strategy was called with.
        sampling: how whole responses are drawn.
        scorer: who scores them, whose cost is set aside when a response is begun.
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
        # Under a budget of tokens opinions come between responses, whose draws are not to depend on them.
        self.judging = rng if scorer is None or self.budget.tokens is None else rng.spawn(1)[0]
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
            extra = 0 if self.scorer is None else self.scorer.most(self.tasks[i], length, self.engine)
            limits.append(left // max(1, length + extra))
            if not self.begun[i] and not self.spent[i]:
                limits[-1] = max(1, limits[-1])
        return max(0, min(limits))

    def fill(self, wanted: int | None = None) -> list[list[Episode]]:
        """Sample whole responses to every task until ``wanted`` or the budget is reached; see :meth:`scored`."""
        return [episodes for episodes, _ in self.scored(wanted)]

    def scored(self, wanted: int | None = None) -> list[tuple[list[Episode], list[Score]]]:
        """Sample and score whole responses to every task until ``wanted`` or the budget is reached.

        Under a budget of tokens what short responses and short opinions leave over pays for more of them: responses are
        scored before others are begun.
        """
        found: list[tuple[list[Episode], list[Score]]] = [([], []) for _ in self.tasks]
        while True:
            counts = [self.may(i, None if wanted is None else wanted - len(f)) for i, (f, _) in enumerate(found)]
            if not any(counts):
                return found
            new = self.sample(counts)
            for (episodes, scores), more, values in zip(found, new, self.score_all(new), strict=True):
                episodes.extend(more)
                scores.extend(values)
            if self.budget.tokens is None:
                return found

    def sample(self, counts: Sequence[int], prompts: Sequence[Any] | None = None) -> list[list[Episode]]:
        """Begin ``counts[i]`` whole responses to each task, or to ``prompts[i]`` in place of its own prompt."""
        rows, asked = [], []
        for i, (task, n) in enumerate(zip(self.tasks, counts, strict=True)):
            seed = int(self.rng.integers(2**63))
            if n < 1:
                continue
            self.begun[i] += n
            rows.append(i)
            asked.append(Request(task.prompt if prompts is None else prompts[i], n, self.shortened(i), seed))
        out: list[list[Episode]] = [[] for _ in self.tasks]
        for i, episodes in zip(rows, self.generate(rows, asked), strict=True):
            out[i] = episodes
        return out

    def shortened(self, i: int) -> Sampling:
        """Return how a whole response to task ``i`` is drawn: the first is no longer than the tokens that there are."""
        left = self.left(i)
        if left is None or self.spent[i] or left >= self.sampling.max_tokens:
            return self.sampling
        return replace(self.sampling, max_tokens=max(1, left))

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

    def score(self, rows: Sequence[int], episodes: Sequence[Episode], keep: int = 0) -> list[Score]:
        """Score an episode for the task in each of ``rows``, and charge it.

        Under a budget of tokens, those that what is left, less ``keep``, does not suffice for have no score.
        """
        out = [Score(None) for _ in episodes]
        needs = [self.needs(i, e) for i, e in zip(rows, episodes, strict=True)]
        open_ = list(range(len(episodes)))
        # What opinions cost less than they might pays for others.
        while self.scorer is not None and (now := self._afforded(rows, needs, open_, keep)):
            pairs = [(self.tasks[rows[j]], episodes[j]) for j in now]
            found = list(self.scorer.score(pairs, self.engine, self.judging))
            if len(found) != len(pairs):
                raise RunError(f"a scorer gave {len(found)} scores for {len(pairs)} responses")
            for j, score in zip(now, found, strict=True):
                self.charge(rows[j], score.tokens)
                out[j] = score
            open_ = sorted(set(open_) - set(now))
        return out

    def needs(self, i: int, episode: Episode) -> int:
        """Return the most tokens that it can take to score a response to task ``i``; 0 without a budget of them."""
        if self.scorer is None or self.budget.tokens is None:
            return 0
        return self.scorer.most(self.tasks[i], episode, self.engine)

    def _afforded(self, rows: Sequence[int], needs: Sequence[int], open_: Sequence[int], keep: int) -> list[int]:
        """Return which of ``open_`` can be scored together with what is left, less ``keep``."""
        if self.budget.tokens is None:
            return list(open_)
        out, most = [], dict.fromkeys(rows, 0)
        for j in open_:
            i, left = rows[j], self.left(rows[j]) or 0
            # What costs nothing has its score whatever is left.
            if not needs[j] or most[i] + needs[j] <= left - keep:
                most[i] += needs[j]
                out.append(j)
        return out

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
