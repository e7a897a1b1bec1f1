"""Scores of steps from a model that is asked where a solution first goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.engines.asking import judge_of
from assay.engines.base import Request, Sampling
from assay.errors import UsageError
from assay.types import Task
from assay.verify.step_index import TEMPLATE, first_error

SEED = 0
"""Of every request, so that scores do not depend on what else is in the batch."""


@dataclass(frozen=True, slots=True)
class AskedSteps:
    """r_k = 1 - 2 P(the first error is at step k or before), P the share of ``n`` critiques that say so.

    A step is as good as the critiques are sure that nothing has gone wrong up to it: 1 where all find no error so far,
    -1 from a step on that all call the first wrong one, and never rising. Critiques without a readable index are left
    out; without any left, as where the model could not be reached, the response has no scores. The model reads question
    and steps, never the reference. Equal solutions of equal questions are asked about once a batch.

    Args:
        engine: an engine, or the specification of one.
        n: critiques of each response, at least 1.
        max_tokens, temperature: of a critique.
        template: the prompt, with ``{question}`` and ``{steps}``; other braces are written twice.

    Raises:
        UsageError: no engine, ``n`` below 1, or a template without ``{steps}``.
    """

    engine: Any
    n: int = 1
    max_tokens: int = 2048
    temperature: float = 1.0
    template: str = TEMPLATE

    def __post_init__(self) -> None:
        if self.n < 1 or "{steps}" not in self.template:
            raise UsageError("a scorer of steps that is asked: n must be at least 1, and the template show the {steps}")
        object.__setattr__(self, "engine", judge_of(self.engine, "a scorer of steps that is asked"))

    def scores(self, responses: Sequence[tuple[Task, list[str]]]) -> list[list[float] | None]:
        """Return r_k of each step of each response, in [-1, 1]; ``None`` where no critique can be read."""
        prompts = [self.prompt(task, steps) if steps else None for task, steps in responses]
        once = list(dict.fromkeys(p for p in prompts if p is not None))
        sampling = Sampling(self.max_tokens, self.temperature)
        replies = self.engine.generate([Request(p, self.n, sampling, SEED) for p in once]) if once else []
        said = {p: [e.text for e in found if e.stop != "error"] for p, found in zip(once, replies, strict=True)}
        return [
            [] if p is None else scored([first_error(text, len(steps)) for text in said[p]], len(steps))
            for p, (_, steps) in zip(prompts, responses, strict=True)
        ]

    def prompt(self, task: Task, steps: Sequence[str]) -> str:
        shown = "\n".join(f"[{i}] {step.strip()}" for i, step in enumerate(steps))
        return self.template.format(question=task.question, steps=shown)


def scored(found: Sequence[int | None], steps: int) -> list[float] | None:
    """Return r_k of each step from what critiques said, see :class:`AskedSteps`; -1 stands for no error."""
    known = [index for index in found if index is not None]
    if not known:
        return None
    return [1 - 2 * sum(0 <= index <= k for index in known) / len(known) for k in range(steps)]
