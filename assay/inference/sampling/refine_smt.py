"""Rewriting an answer until a solver accepts its claims, told which of them to repair."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.inference.base import Answer, Budget
from assay.inference.meter import Meter
from assay.inference.scoring.formalised import Formaliser, Opinions
from assay.registry import part
from assay.rollout.templates import through_template
from assay.types import Episode, Task, Verdict
from assay.verify.logic.claims import Claims

TEMPLATE = (
    "{question}\n\nA previous answer:\n{draft}\n\nWhat a solver said of it:\n{feedback}\n\n"
    "Write the whole answer again, one claim on a line, with what is wrong repaired."
)


@dataclass(frozen=True, slots=True)
class Round:
    """An answer with its verdict."""

    episode: Episode
    verdict: Verdict


@part("inference", "refine_smt")
@dataclass(frozen=True, slots=True)
class RefineSmt:
    """An answer, its claims judged by a solver, and the answer again with what the solver said, until it is accepted.

    It stops when the verifier ``claims`` says right, when the score changes by less than ``delta`` from one round to
    the next, or with the budget; the answer is the best-scored one, the last of equals. A context that contradicts
    itself is
    nothing the answer could mend: it ends the search and is told in ``meta["inconsistent"]``.

    Args:
        translator: engine that writes claims as formulas (:class:`~assay.inference.scoring.formalised.Formaliser`);
            ``None`` for sentences of a controlled English alone.
        judge: engine that judges what is no formula; ``None`` for none.
        k, opinions: candidates of the translator, opinions of the judge.
        threshold, plausible: of :class:`~assay.verify.logic.claims.Claims`.
        delta: see above.
        feedback: ``claims`` names what to repair; ``bare`` says that something is wrong, which is there to be compared
            with.
        sampling: of the answers.
        template: of every prompt but the first, with ``{draft}`` and, if wanted, ``{question}`` and ``{feedback}``.

    Raises:
        UsageError: z3 is not installed, ``delta`` is negative, or the template does not fit.

    Source: VERGE (arXiv 2601.20055).
    """

    translator: Any = None
    judge: Any = None
    k: int = 3
    opinions: int = 3
    threshold: float = 0.75
    plausible: float = 0.0
    delta: float = 0.01
    feedback: Literal["claims", "bare"] = "claims"
    sampling: Sampling = field(default_factory=Sampling)
    template: str = TEMPLATE

    def __post_init__(self) -> None:
        if self.delta < 0:
            raise UsageError(f"inference 'refine_smt': delta {self.delta:g} must be at least 0")
        if "{draft}" not in self.template:
            raise UsageError("inference 'refine_smt': the template has to contain {draft}")
        self.verifier  # noqa: B018  what is missing is said before anything is sampled

    @property
    def verifier(self) -> Claims:
        return Claims(
            self.threshold,
            self.plausible,
            judge=None if self.judge is None else Opinions(self.judge, self.opinions),
            translate=None if self.translator is None else Formaliser(self.translator, self.k),
        )

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        meter, verifier = Meter(tasks, engine, budget, rng, self.sampling), self.verifier
        rounds: list[list[Round]] = [[] for _ in tasks]
        open_ = set(range(len(tasks)))
        while open_:
            prompts = [
                through_template(task.prompt, self.template, draft=done[-1].episode.text, feedback=self._said(done[-1]))
                if done
                else task.prompt
                for task, done in zip(tasks, rounds, strict=True)
            ]
            ahead = [
                len(engine.encode(p)) if done and meter.budget.tokens is not None else 0
                for p, done in zip(prompts, rounds, strict=True)
            ]
            counts = [
                meter.may(i, 1, self.sampling.max_tokens + ahead[i]) if i in open_ else 0 for i in range(len(tasks))
            ]
            for i, new in enumerate(meter.sample(counts, prompts)):
                rounds[i] += [Round(episode, verifier(tasks[i], episode.text)) for episode in new]
                if i in open_ and (not new or self._ended(rounds[i])):
                    open_.remove(i)
        return [self._answer(meter, i, done) for i, done in enumerate(rounds)]

    def _said(self, last: Round) -> str:
        return last.verdict.feedback if self.feedback == "claims" else "Something in it is wrong."

    def _ended(self, done: list[Round]) -> bool:
        """Whether nothing is to be gained by another round."""
        last = done[-1].verdict
        if last.passed or last.fault == "tests":
            return True
        return len(done) > 1 and abs(last.score - done[-2].verdict.score) < self.delta

    def _answer(self, meter: Meter, i: int, done: list[Round]) -> Answer:
        episodes = [r.episode for r in done]
        if not done:
            return meter.answer(i, None, episodes)
        top = max(range(len(done)), key=lambda j: (done[j].verdict.passed is True, done[j].verdict.score, j))
        return meter.answer(
            i,
            episodes[top].text,
            episodes,
            scores=[r.verdict.score for r in done],
            accepted=done[top].verdict.passed is True,
            inconsistent=done[-1].verdict.fault == "tests",
        )
