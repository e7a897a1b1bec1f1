"""One response after another, each made with the one before it in sight."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.inference.base import Answer, Budget
from assay.inference.meter import Meter
from assay.inference.scoring.base import Score
from assay.inference.scoring.scorers import as_scorer
from assay.registry import part
from assay.rollout.templates import through_template
from assay.types import Episode, Task

TEMPLATE = (
    "{question}\n\nA previous attempt:\n{draft}\n\nWhat was said of it:\n{feedback}\n\n"
    "Write an improved, complete solution."
)


@part("inference", "refine")
@dataclass(frozen=True, slots=True)
class Refine:
    """A response, then another to the prompt with the last one and what was said of it, until the budget is spent.

    With a scorer it stops at a score of ``enough``, and the answer is the best-scored response, the last of equals;
    without one it is the last response.

    Args:
        scorer: see :func:`~assay.inference.scoring.scorers.as_scorer`; its feedback is shown. ``None`` for no scorer.
        sampling: how tokens are drawn.
        enough: a score that ends the search.
        template: of the second prompt and those after it, with ``{draft}`` and, if wanted, ``{question}`` and
            ``{feedback}``; of a chat, the last user message is put through it.
        tail: characters of the draft that are shown, the last ones; ``None`` for all.

    Raises:
        UsageError: a template that does not fit.
    """

    scorer: Any = None
    sampling: Sampling = field(default_factory=Sampling)
    enough: float = 1.0
    template: str = TEMPLATE
    tail: int | None = None

    def __post_init__(self) -> None:
        if self.scorer is not None:
            object.__setattr__(self, "scorer", as_scorer(self.scorer))
        try:
            fits = "\0" in self.template.format(question="", feedback="", draft="\0")
        except (KeyError, IndexError, ValueError):
            fits = False
        if not fits:
            raise UsageError(
                "inference 'refine': the template has to contain {draft}, may contain {question} and {feedback}, and "
                "writes other braces twice"
            )

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        meter = Meter(tasks, engine, budget, rng, self.sampling, self.scorer)
        found: list[list[Episode]] = [[] for _ in tasks]
        scores: list[list[Score]] = [[] for _ in tasks]
        open_ = set(range(len(tasks)))
        while open_:
            prompts = [
                self._prompt(t, f[-1], s[-1] if s else Score(None)) if f else t.prompt
                for t, f, s in zip(tasks, found, scores, strict=True)
            ]
            ahead = [
                len(engine.encode(p)) if f and meter.budget.tokens is not None else 0
                for p, f in zip(prompts, found, strict=True)
            ]
            counts = [
                meter.may(i, 1, self.sampling.max_tokens + ahead[i]) if i in open_ else 0 for i in range(len(tasks))
            ]
            new = meter.sample(counts, prompts)
            judged = meter.score_all(new) if self.scorer is not None else [[] for _ in tasks]
            for i in list(open_):
                found[i].extend(new[i])
                scores[i].extend(judged[i])
                value = judged[i][0].value if judged[i] else None
                if not new[i] or (value is not None and value >= self.enough):
                    open_.remove(i)
        out = []
        for i, (episodes, mine) in enumerate(zip(found, scores, strict=True)):
            values = [-math.inf if s.value is None else s.value for s in mine]
            top = max(range(len(values)), key=lambda j: (values[j], j)) if values else len(episodes) - 1
            missed = sum(s.value is None for s in mine)
            out.append(meter.answer(i, episodes[top].text, episodes, scores=[s.value for s in mine], unscored=missed))
        return out

    def _prompt(self, task: Task, draft: Episode, score: Score) -> Any:
        shown = draft.text if self.tail is None else draft.text[-self.tail :]
        said = score.feedback or ("nothing" if score.value is None else f"its score is {score.value:.3g}")
        return through_template(task.prompt, self.template, draft=shown, feedback=said)
