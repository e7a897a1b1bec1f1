"""Among responses that are known to be right, the one the model thought least likely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.inference.base import Answer, Budget
from assay.inference.meter import Meter
from assay.inference.scoring.base import mean_logprob
from assay.registry import part
from assay.types import Task
from assay.verify.episodes import judge_episodes
from assay.verify.kind import KindVerifier
from assay.verify.make import make_verifier

Rule = Literal["surprisal", "confident", "random", "top3", "oracle"]


def select(
    logprobs: Sequence[float | None],
    correct: Sequence[bool],
    scores: Sequence[float],
    rule: Rule,
    rng: np.random.Generator,
) -> int | None:
    """Return which of the correct samples a rule takes, the first of equals; ``None`` if none is correct.

    ``surprisal``: the least log-probability; ``confident``: the largest; ``random``; ``top3``: the best score among the
    three of least log-probability; ``oracle``: the best score of all.

    Args:
        logprobs: of each sample; one without comes last in the rules that read it.
        correct: passed the tests.
        scores: how good it is, which ``top3`` and ``oracle`` look at.
        rule: see above.
        rng: of ``random``.
    """
    good = [i for i, c in enumerate(correct) if c]
    if not good:
        return None
    if rule == "random":
        return good[int(rng.integers(len(good)))]
    if rule == "oracle":
        return max(good, key=lambda i: (scores[i], -i))
    known = [i for i in good if logprobs[i] is not None] or good[:1]
    order = sorted(known, key=lambda i: logprobs[i] or 0.0)
    if rule == "surprisal":
        return order[0]
    if rule == "top3":
        return max(order[:3], key=lambda i: scores[i])
    return max(known, key=lambda i: (logprobs[i] or 0.0, -i))


@part("inference", "surprisal")
@dataclass(frozen=True, slots=True)
class Surprisal:
    """As many responses as the budget allows, checked; of the right ones that with the least mean log-probability.

    For tasks where right answers differ in quality and checking tells right from wrong: programs that pass their tests
    and differ in speed. Where the best solutions are unusual, the tail of the model's own distribution is where to look
    for them; where the usual solution is the best, this takes the worst. Without a right response it abstains.

    Source: surprisal-guided selection (arXiv 2602.07670).

    Args:
        sampling: how tokens are drawn.
        verifier: says which are right, and how good: anything :func:`assay.verify.make.make_verifier` takes; by
            default that of the task's kind.
        rule: see :func:`select`; the others are the method's comparisons.
        total: sum in place of mean log-probability, by which long responses are surprising.

    Raises:
        UsageError: there is no such rule.
    """

    sampling: Sampling = field(default_factory=Sampling)
    verifier: Any = field(default_factory=KindVerifier)
    rule: Rule = "surprisal"
    total: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "verifier", make_verifier(self.verifier))
        if self.rule not in get_args(Rule):
            raise UsageError(f"inference 'surprisal': rule {self.rule!r} is none of {', '.join(get_args(Rule))}")

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        meter = Meter(tasks, engine, budget, rng, self.sampling)
        found = meter.fill()
        pairs = [(task, e) for task, many in zip(tasks, found, strict=True) for e in many]
        verdicts = iter(judge_episodes(self.verifier, pairs))
        out = []
        for i, episodes in enumerate(found):
            mine = [next(verdicts) for _ in episodes]
            surprise = [mean_logprob(e, self.total) for e in episodes]
            scores = [v.score for v in mine]
            chosen = select(surprise, [v.passed is True for v in mine], scores, self.rule, rng)
            meta = {
                "correct": sum(v.passed is True for v in mine),
                "unscored": sum(v.passed is None for v in mine),
                "score": None if chosen is None else scores[chosen],
            }
            text = None if chosen is None else episodes[chosen].text
            out.append(meter.answer(i, text, episodes, **meta))
        return out
