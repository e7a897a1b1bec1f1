"""An answer that is refined over several turns, told what it lacks or not, until nothing is left to do."""

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

DONE = "[NO REFINEMENT NEEDED]"
GUIDED = """{question}

Your answer so far:
{draft}

It falls short of the following:
{feedback}

Write an improved, complete answer."""
SELF = """{question}

Your answer so far:
{draft}

Refine it: write an improved, complete answer. If it needs no refinement, reply with """


@part("inference", "refine_turns")
@dataclass(frozen=True, slots=True)
class RefineTurns:
    """An answer, and a turn for each further response of the budget in which the model may refine its last answer.

    Without a scorer, or with ``share`` 0, it is asked whether there is anything to refine (self-refinement); a reply
    with ``done`` in it declares that there is not, and freezes the answer. With one it is told what the answer falls
    short of: the lines of the scorer's feedback, all of them (guided) or ceil(share n) of n, drawn anew in each turn
    (partially guided); an answer that falls short of nothing, with score 1, is frozen. Where the scorer cannot tell it
    refines by itself; a request that fails ends it. The answer is what the model said last, not what scored best.

    ``meta["turns"]`` has the answer after each turn, up to where it was frozen, and ``meta["frozen"]`` whether it was.
    Under budgets 1, 2, ... 5 accuracy by turn is the Pass_t of RefineBench, and the mean score its Acc_t.

    Args:
        scorer: see :func:`~assay.inference.scoring.scorers.as_scorer`; ``None`` for self-refinement.
        share: of what it falls short of that is told, in [0, 1].
        sampling: how tokens are drawn.
        done: what declares that nothing is to be refined.
        guided, alone: prompts, put around the task's, with ``{draft}`` and, of the first, ``{feedback}``; of a chat,
            the last user message is put through them.

    Raises:
        UsageError: a share out of range, no ``done``, or a prompt that does not fit.

    Source: RefineBench (arXiv 2511.22173); the wording is a choice.
    """

    scorer: Any = None
    share: float = 1.0
    sampling: Sampling = field(default_factory=Sampling)
    done: str = DONE
    guided: str = GUIDED
    alone: str = SELF + DONE

    def __post_init__(self) -> None:
        if self.scorer is not None:
            object.__setattr__(self, "scorer", as_scorer(self.scorer))
        shown = "{draft}" in self.guided and "{feedback}" in self.guided and "{draft}" in self.alone
        if not 0 <= self.share <= 1 or not self.done.strip() or not shown:
            raise UsageError(
                f"inference 'refine_turns': share {self.share:g} is in [0, 1], done is some text, the prompts have "
                "{draft}, and the guided one {feedback}"
            )

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        drawing = rng.spawn(1)[0]  # so that responses do not depend on what is told of others
        told = self.scorer if self.share else None
        meter = Meter(tasks, engine, budget, rng, self.sampling, told)
        found: list[list[Episode]] = [[] for _ in tasks]
        scores: list[Score] = [Score(None) for _ in tasks]
        frozen, unscored = set[int](), [0] * len(tasks)
        open_ = set(range(len(tasks)))
        while open_:
            prompts = [
                self._prompt(t, f[-1], s, drawing) if f else t.prompt
                for t, f, s in zip(tasks, found, scores, strict=True)
            ]
            counted = meter.budget.tokens is not None
            ahead = [len(engine.encode(p)) if f and counted else 0 for p, f in zip(prompts, found, strict=True)]
            longest = [self.sampling.max_tokens + n for n in ahead]
            new = meter.sample([meter.may(i, 1, longest[i]) if i in open_ else 0 for i in range(len(tasks))], prompts)
            failed = [bool(f and e) and e[0].stop == "error" for f, e in zip(found, new, strict=True)]
            said = [bool(f and e) and self.done in e[0].text for f, e in zip(found, new, strict=True)]
            fresh = [[] if a or b else e for a, b, e in zip(failed, said, new, strict=True)]
            judged = meter.score_all(fresh) if told is not None else [[] for _ in tasks]
            for i in sorted(open_):
                declared = said[i] and not failed[i]
                found[i] += fresh[i]
                if judged[i]:
                    scores[i] = judged[i][0]
                    unscored[i] += scores[i].value is None
                complete = bool(judged[i]) and (scores[i].value or 0.0) >= 1
                if declared or complete:
                    frozen.add(i)
                if declared or complete or failed[i] or not new[i]:
                    open_.remove(i)
        return [
            meter.answer(i, f[-1].text, f, turns=[e.text for e in f], frozen=i in frozen, unscored=unscored[i])
            for i, f in enumerate(found)
        ]

    def _prompt(self, task: Task, draft: Episode, score: Score, rng: np.random.Generator) -> Any:
        items = score.feedback.splitlines() if score.value is not None else []
        kept = sorted(rng.permutation(len(items))[: math.ceil(self.share * len(items))].tolist())
        if not kept:
            return through_template(task.prompt, self.alone, draft=draft.text)
        said = "\n".join(f"- {items[k]}" for k in kept)
        return through_template(task.prompt, self.guided, draft=draft.text, feedback=said)
