"""Thinking that is cut off after a number of tokens, and answers then."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.inference.base import Answer, Budget
from assay.registry import part
from assay.rollout.thinking import Marks
from assay.types import Task


@part("inference", "anytime")
@dataclass(frozen=True, slots=True)
class AnytimeAnswer:
    """Thinks for at most ``thought_tokens``, then answers, by force if need be; one thought, whatever the samples.

    A budget in tokens shortens the thought so that an answer of ``summary_tokens`` still fits.

    Args:
        sampling: how tokens are drawn.
        thought_tokens: longest thought; ``sampling.max_tokens`` if left out.
        summary_tokens: longest answer.
        end, forced, header, stop: see :class:`assay.rollout.thinking.Marks`.

    Raises:
        UsageError: ``thought_tokens`` or ``summary_tokens`` below 1, or a budget with no room for a thought.

    Source: AnytimeReasoner (arXiv 2505.13438).
    """

    sampling: Sampling
    thought_tokens: int | None = None
    summary_tokens: int = 128
    end: str | None = None
    forced: str | None = None
    header: str | None = None
    stop: bool = True

    once = True

    def __post_init__(self) -> None:
        if (self.thought_tokens is not None and self.thought_tokens < 1) or self.summary_tokens < 1:
            raise UsageError("inference 'anytime': thought_tokens and summary_tokens must be at least 1")

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        marks = Marks.of(engine, self.end, self.forced, self.header, self.stop)
        limit = self.thought_tokens or self.sampling.max_tokens
        most = Budget.of(budget).tokens
        if most is not None:
            limit = min(limit, most - self.summary_tokens)
            if limit < 1:
                raise UsageError(
                    f"inference 'anytime': a budget of {most} tokens has no room for a thought beside an answer of "
                    f"{self.summary_tokens}; give more, or a smaller summary_tokens"
                )
        seeds = rng.integers(2**63, size=(len(tasks), 2))
        thinking = marks.think(self.sampling, limit)
        answering = replace(self.sampling, max_tokens=self.summary_tokens)
        asked = [Request(t.prompt, 1, thinking, int(a)) for t, (a, _) in zip(tasks, seeds, strict=True)]
        thoughts = [found[0] for found in engine.generate(asked)]
        requests, open_ = [], []
        for i, (task, thought) in enumerate(zip(tasks, thoughts, strict=True)):
            tokens = thought.tokens.tolist()
            size = marks.finished(tokens, engine)
            if size is None and thought.stop in ("eos", "stop", "context", "error"):
                continue  # it is its own answer, or has no room for one
            prefix = (*tokens[:size], *marks.after(size is not None, engine))
            requests.append(Request(task.prompt, 1, answering, int(seeds[i, 1]), prefix))
            open_.append(i)
        answers = dict(
            zip(open_, zip(requests, engine.generate(requests) if requests else [], strict=True), strict=True)
        )
        out = []
        for i, thought in enumerate(thoughts):
            if i not in answers:
                out.append(Answer(thought.text, (thought,), len(thought.tokens), {"forced": False}))
                continue
            request, [answer] = answers[i]
            text = engine.decode([*request.prefix, *answer.tokens.tolist()])
            forced = marks.finished(thought.tokens.tolist(), engine) is None
            out.append(Answer(text, (thought, answer), len(thought.tokens) + len(answer.tokens), {"forced": forced}))
        return out
