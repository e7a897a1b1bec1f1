"""The model grades its own response, in the words in which it is trained to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.inference.scoring.base import Score
from assay.registry import build, part
from assay.rewards.outcome.graded import Graded
from assay.rollout.templates import check_template, through_template
from assay.types import Episode, Prompt, Task
from assay.verify.answer.extract import RULES, extract
from assay.verify.text.compare import parse_number

TEMPLATE = r"""Below are a question and a solution of it. Check the solution and predict its score:
- {unmarked} if it gives no final answer{marked};
- {wrong} if its final answer{marked} is wrong;
- {right} if its final answer{marked} is right.

Question:
{question}

Solution:
{response}

Reason step by step, then write the score in \boxed{{}}."""


def asked_to_verify(prompt: Prompt, response: str, grades: Graded, template: str = TEMPLATE) -> Prompt:
    """Return the prompt that asks for the grade of a response to ``prompt``, by what the grades are given for."""
    named = {name: str(getattr(grades, name)) for name in ("right", "wrong", "unmarked")}
    marked = r" in \boxed{}" if tuple(grades.marks) == ("boxed",) else ""
    return through_template(prompt, template, response=response, marked=marked, **named)


def check_verification(template: str, where: str) -> None:
    """Raise UsageError unless a template shows the ``{response}`` and names nothing that is not there."""
    for name in ("right", "wrong", "unmarked", "marked"):
        template = template.replace(f"{{{name}}}", "")
    check_template(template, "response", where)


@part("scorer", "self_verification")
@dataclass(frozen=True, slots=True)
class SelfVerification:
    """The mean of ``n`` grades that the model predicts for its response, from 0 for the lowest to 1 for the highest.

    With the scorer ``weighted_majority`` is the self-verified vote of RISE, and ``best_of_n`` the self-verified best of
    k. A prediction that is none of the grades says nothing; a response with no readable one has no score.

    Source: RISE (arXiv 2505.13445); that grades are moved into [0, 1] is a choice, without which many low grades would
    add up to less than none.

    Args:
        n: predictions for each response.
        grades: reward ``graded``, or options of it.
        template: the prompt, with ``{response}``, and if wanted ``{question}``, ``{right}``, ``{wrong}``,
            ``{unmarked}`` and ``{marked}`` (`` in \\boxed{}`` where the grades ask for a box); other braces are written
            twice.
        sampling: of the predictions.

    Raises:
        UsageError: ``n`` below 1, or a template without ``{response}``.
    """

    n: int = 1
    grades: Any = "graded"
    template: str = TEMPLATE
    sampling: Sampling = field(default_factory=lambda: Sampling(max_tokens=1024))

    def __post_init__(self) -> None:
        object.__setattr__(self, "grades", build("reward", self.grades))
        if self.n < 1 or not isinstance(self.grades, Graded):
            raise UsageError("scorer 'self_verification': n must be at least 1, and grades those of reward 'graded'")
        check_verification(self.template, "scorer 'self_verification'")

    def score(self, pairs: Sequence[tuple[Task, Episode]], engine: Engine, rng: np.random.Generator) -> list[Score]:
        asked = [
            Request(self.prompt(task, e.text), self.n, self.sampling, int(rng.integers(2**63))) for task, e in pairs
        ]
        out = []
        for replies in engine.generate(asked) if asked else []:
            known = [value for r in replies if r.stop != "error" and (value := self.read(r.text)) is not None]
            cost = len(replies[0].prompt) + sum(len(r.tokens) for r in replies)
            out.append(Score(sum(known) / len(known) if known else None, cost, replies[0].text))
        return out

    def read(self, reply: str) -> float | None:
        """Return the grade that a prediction marks, in [0, 1]; ``None`` where it marks none of them."""
        grades = self.grades
        told = extract(reply, grades.marks or RULES, "none" if grades.marks else "line")
        number = None if told is None else parse_number(told)
        low, high = (f((grades.right, grades.wrong, grades.unmarked)) for f in (min, max))
        if number is None or float(number) not in (grades.right, grades.wrong, grades.unmarked):
            return None
        return float((float(number) - low) / (high - low))

    def prompt(self, task: Task, response: str) -> Prompt:
        """Return what the model is asked about its response."""
        return asked_to_verify(task.prompt, response, self.grades, self.template)

    def most(self, task: Task, response: Episode | int, engine: Engine) -> int:
        shown, more = ("", response) if isinstance(response, int) else (response.text, 0)
        return len(engine.encode(self.prompt(task, shown))) + more + self.n * self.sampling.max_tokens
