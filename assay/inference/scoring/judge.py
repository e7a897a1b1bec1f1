"""A model that reads question and response, thinks about it in writing, and says true or false."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.inference.scoring.base import Score
from assay.registry import build, part
from assay.types import Episode, Task
from assay.verify.critique import TEMPLATE, said


@part("scorer", "judge")
@dataclass(frozen=True, slots=True)
class Judge:
    """The share of ``n`` critiques of a response that call it right, those left out that come to no verdict.

    It reads the question and the response, never the reference. A response with no readable critique has no score.

    Args:
        engine: who judges: an engine, the specification of one, or ``None`` for the one that made the response.
        n: critiques of each response.
        template: the prompt, with ``{question}`` and ``{response}``; other braces are written twice.
        sampling: of the critiques.
        tail: characters of the response that are shown, the last ones; ``None`` for all.

    Raises:
        UsageError: ``n`` below 1, no engine, or a template without ``{response}``.
    """

    engine: Any = None
    n: int = 1
    template: str = TEMPLATE
    sampling: Sampling = field(default_factory=lambda: Sampling(max_tokens=1024))
    tail: int | None = None

    def __post_init__(self) -> None:
        if self.n < 1 or "{response}" not in self.template:
            raise UsageError("scorer 'judge': n must be at least 1, and the template show the {response}")
        if self.engine is not None:
            object.__setattr__(self, "engine", build("engine", self.engine))
            if not isinstance(self.engine, Engine):
                raise UsageError(f"scorer 'judge': it needs an engine or the specification of one, not {self.engine!r}")

    def score(self, pairs: Sequence[tuple[Task, Episode]], engine: Engine, rng: np.random.Generator) -> list[Score]:
        judge = engine if self.engine is None else self.engine
        asked = [
            Request(self.prompt(task, e.text), self.n, self.sampling, int(rng.integers(2**63))) for task, e in pairs
        ]
        out = []
        for replies in judge.generate(asked) if asked else []:
            verdicts = [said(r.text) for r in replies if r.stop != "error"]
            known = [v for v in verdicts if v is not None]
            cost = len(replies[0].prompt) + sum(len(r.tokens) for r in replies)
            out.append(Score(sum(known) / len(known) if known else None, cost, replies[0].text))
        return out

    def prompt(self, task: Task, response: str) -> str:
        """Return what the judge is asked."""
        shown = response if self.tail is None else response[-self.tail :]
        return self.template.format(question=task.question, response=shown)

    def most(self, task: Task, response: Episode | int, engine: Engine) -> int:
        judge, shown, more = engine if self.engine is None else self.engine, "", 0
        if isinstance(response, int):
            more = response if self.tail is None else min(response, self.tail)
        else:
            shown = response.text
        return len(judge.encode(self.prompt(task, shown))) + more + self.n * self.sampling.max_tokens
