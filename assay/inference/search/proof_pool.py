"""A pool of proofs that are analysed, and refined by what the analyses object to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.inference.base import Answer, Budget
from assay.inference.meter import Meter
from assay.registry import part
from assay.rollout.templates import through_template
from assay.tasks.judging.proof_judge import Opinion, proof_judge_of
from assay.types import Episode, Task
from assay.verify.proofs.analysis import divided, score_of, spoken
from assay.verify.proofs.prompts import REFINE


@dataclass(frozen=True, slots=True)
class Pooled:
    """A proof with what is thought of it.

    Attributes:
        episode, proof: the response, and the solution in it.
        own: the score it gives itself, 0 where it gives none.
        opinions: analyses by the judge.
    """

    episode: Episode
    proof: str
    own: float
    opinions: tuple[Opinion, ...]

    @property
    def mean(self) -> float:
        """The mean score of its analyses; -1 without any."""
        return sum(score for score, _ in self.opinions) / len(self.opinions) if self.opinions else -1.0


@part("inference", "proof_pool")
@dataclass(frozen=True, slots=True)
class ProofPool:
    """``size`` proofs, each analysed n times; then, up to ``rounds`` times, refinements of the ``size`` best by far.

    Best is the highest mean score, and of these the highest score of its own. Each of them is paired with ``pairs`` of
    its analyses by lot, those that object to something (scores below 1) before the others, and a pair makes one refined
    proof, which is analysed like the others. It ends once all n analyses of a proof have the score 1, or the budget of
    responses is spent. The answer is the best; ``meta["passes"]`` says whether it passed all, ``meta["pool"]`` the mean
    scores of all proofs.

    Args:
        judge: a :class:`~assay.tasks.judging.proof_judge.ProofJudge`, a table of its options, or the specification of
            an engine; the model itself if left out.
        size, n, pairs, rounds: see above.
        sampling: how proofs are drawn.
        template: of a refinement, with ``{proof}`` and ``{analysis}``, put around the task's own prompt.

    Raises:
        UsageError: numbers below 1, or, when it answers, a budget of tokens.

    Source: DeepSeekMath-V2, the search with 64 proofs, 64 analyses, 8 pairs and 16 rounds.
    """

    judge: Any = None
    size: int = 64
    n: int = 64
    pairs: int = 8
    rounds: int = 16
    sampling: Sampling = field(default_factory=lambda: Sampling(131_072))
    template: str = REFINE.replace("{problem}", "{question}")

    def __post_init__(self) -> None:
        if min(self.size, self.n, self.pairs, self.rounds) < 1:
            raise UsageError("inference 'proof_pool': size, n, pairs and rounds must be at least 1")

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        meter, judge = Meter(tasks, engine, budget, rng, self.sampling), proof_judge_of(self.judge or engine)
        if meter.budget.tokens is not None:
            raise UsageError("inference 'proof_pool' has a budget of responses, such as --budgets 128, not of tokens")
        pools: list[list[Pooled]] = [[] for _ in tasks]
        for _ in range(1 + self.rounds):
            asked: list[tuple[int, Any]] = []
            for i, (task, pool) in enumerate(zip(tasks, pools, strict=True)):
                if any(self.passes(one) for one in pool):
                    continue
                prompts = self.prompts(task, pool, rng) if pool else [task.prompt] * self.size
                taken = prompts[: meter.may(i, len(prompts))]
                meter.begun[i] += len(taken)
                asked += [(i, prompt) for prompt in taken]
            if not asked:
                break
            requests = [Request(prompt, 1, self.sampling, int(rng.integers(2**63))) for _, prompt in asked]
            made = [(i, e) for (i, _), [e] in zip(asked, meter.generate([i for i, _ in asked], requests), strict=True)]
            self.pool(tasks, [(i, e) for i, e in made if e.stop != "error"], pools, judge, meter)
        return [self.answer(meter, i, pool) for i, pool in enumerate(pools)]

    def passes(self, one: Pooled) -> bool:
        """Whether all n analyses of a proof have the score 1."""
        return len(one.opinions) == self.n and one.mean == 1

    def prompts(self, task: Task, pool: Sequence[Pooled], rng: np.random.Generator) -> list[Any]:
        """Return what asks for refinements of the best proofs of a pool."""
        best = sorted(pool, key=lambda one: (-one.mean, -one.own))[: self.size]
        out = []
        for one in best:
            drawn = [one.opinions[k] for k in rng.permutation(len(one.opinions))]
            for _, analysis in sorted(drawn, key=lambda opinion: opinion[0] == 1)[: self.pairs]:
                out.append(through_template(task.prompt, self.template, proof=one.proof, analysis=analysis))
        return out

    def pool(
        self, tasks: list[Task], made: list[tuple[int, Episode]], pools: list[list[Pooled]], judge: Any, meter: Meter
    ) -> None:
        """Analyse proofs, and put them into the pools of their tasks."""
        parts = [divided(e.text) or (spoken(e.text), "") for _, e in made]
        problems = [str(tasks[i].meta.get("problem", tasks[i].question)) for i, _ in made]
        found = judge.analyses([(problem, y) for problem, (y, _) in zip(problems, parts, strict=True)], self.n)
        for (i, e), (y, z), said in zip(made, parts, found, strict=True):
            meter.charge(i, sum(len(judge.judge.encode_response(text)) for _, text in said))
            pools[i].append(Pooled(e, y, score_of(z) or 0.0, tuple(said)))

    def answer(self, meter: Meter, i: int, pool: Sequence[Pooled]) -> Answer:
        """Return the best of a pool."""
        if not pool:
            return meter.answer(i, None, [])
        best = max(pool, key=lambda one: (one.mean, one.own))
        scores = [one.mean for one in pool]
        return meter.answer(i, best.episode.text, [one.episode for one in pool], passes=self.passes(best), pool=scores)
