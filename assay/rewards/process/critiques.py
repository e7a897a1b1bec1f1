"""Critiques that give a verdict on every step of a solution: how they are asked for, read and put to the vote."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from assay.engines.asking import judge_of, seed_of
from assay.engines.base import Request, Sampling
from assay.errors import UsageError
from assay.rewards.process.error_step import question
from assay.types import Task

TEMPLATE = """Below are a problem and a solution whose steps are numbered from 0.

Problem:
{problem}

Solution:
{steps}

Check every step by itself. Then write a line for each step, "Step 0: correct" or "Step 0: incorrect" and so on, and \
last whether the final answer is right: "Verdict: correct" or "Verdict: incorrect"."""

BESIDE_THE_REFERENCE = TEMPLATE.replace(
    "\nSolution:", "\nReference answer, which a solution may reach by wrong steps:\n{reference}\n\nSolution:"
)

MARK = re.compile(r"^\W*step\W*(\d{1,6})\W*(in)?correct\b", re.IGNORECASE | re.MULTILINE)
VERDICT = re.compile(r"^\W*verdict\W*(in)?correct\b", re.IGNORECASE | re.MULTILINE)

Vote = Literal["intersection", "majority", "union", "average"]


@dataclass(frozen=True, slots=True)
class Critique:
    """What one critique says of a solution.

    Attributes:
        marks: of each step, whether it is right.
        final: whether the answer is right; ``None`` where it does not say.
        text: its words.
    """

    marks: tuple[bool, ...]
    final: bool | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Critics:
    """Asks an engine for ``n`` critiques of each solution. The steps are shown by number, see
    :func:`assay.rewards.process.error_step.question`; a reply says ``Step k: correct`` or ``incorrect`` of each of
    them, and may end with a ``Verdict:`` on the answer.

    Args:
        engine: an engine, or the specification of one.
        n: critiques of each solution, at least 1.
        max_tokens, temperature: of a critique.
        template: with ``{problem}`` and ``{steps}``; ``{reference}`` shows the reference answer too.

    Raises:
        UsageError: no engine, ``n`` below 1, or a template without ``{steps}``.
    """

    engine: Any
    n: int = 1
    max_tokens: int = 4096
    temperature: float = 1.0
    template: str = TEMPLATE

    def __post_init__(self) -> None:
        if self.n < 1 or "{steps}" not in self.template:
            raise UsageError("critics of steps: n must be at least 1, and the template show the {steps}")
        object.__setattr__(self, "engine", judge_of(self.engine, "critics of steps"))

    def critiques(self, solutions: Sequence[tuple[Task, Sequence[str]]]) -> list[list[Critique] | None]:
        """Return the critiques of each solution that can be read; ``None`` where no request was answered.

        A solution without steps is not asked about and has none. Equal solutions of equal problems are asked about
        once.
        """
        asked = [self.prompt(task, steps) if steps else None for task, steps in solutions]
        found = self.replies([p for p in asked if p is not None])
        return [
            [] if p is None else read_all(found[p], len(steps)) for p, (_, steps) in zip(asked, solutions, strict=True)
        ]

    def prompt(self, task: Task, steps: Sequence[str]) -> str:
        return question(task.question, task.reference, [step.strip() for step in steps], self.template)

    def replies(self, prompts: Sequence[str]) -> dict[str, list[str | None]]:
        """Return what is said to each prompt, ``n`` times; ``None`` for a request that failed."""
        sampling = Sampling(self.max_tokens, self.temperature)
        once = list(dict.fromkeys(prompts))
        # Of the prompt alone, so that what is said does not depend on what else is in the batch.
        made = self.engine.generate([Request(p, self.n, sampling, seed_of(p)) for p in once]) if once else []
        return {p: [None if e.stop == "error" else e.text for e in row] for p, row in zip(once, made, strict=True)}


def read_all(replies: Sequence[str | None], steps: int) -> list[Critique] | None:
    """Return the critiques that can be read; ``None`` where every request failed."""
    if all(reply is None for reply in replies):
        return None
    return [found for reply in replies if reply is not None and (found := read(reply, steps)) is not None]


def read(reply: str, steps: int) -> Critique | None:
    """Return a critique of so many steps; ``None`` unless it has a verdict on every one. Of two, the last counts."""
    said = {int(m[1]): m[2] is None for m in MARK.finditer(reply)}
    if any(k not in said for k in range(steps)):
        return None
    final = [m[1] is None for m in VERDICT.finditer(reply)]
    return Critique(tuple(said[k] for k in range(steps)), final[-1] if final else None, reply)


def flawed(critiques: Sequence[Critique], vote: Vote) -> list[float]:
    """Return for each step how far it is flawed by the vote of these critiques, at least one.

    ``intersection``: 1 if all call it wrong; ``majority``: 1 if at least half of them do; ``union``: 1 if any does;
    ``average``: the share of those that do.
    """
    n = len(critiques)
    against = [sum(not right for right in marks) for marks in zip(*(c.marks for c in critiques), strict=True)]
    if vote == "average":
        return [a / n for a in against]
    least = {"intersection": n, "majority": n / 2, "union": 1}[vote]
    return [float(a >= least) for a in against]


@dataclass(frozen=True, slots=True)
class Voted:
    """A scorer of steps by vote: 1 - 2 f_k, f_k how far step k is flawed by :func:`flawed`.

    Nothing where no critique of a response can be read or no request was answered.
    """

    critics: Critics
    vote: Vote

    def scores(self, responses: Sequence[tuple[Task, list[str]]]) -> list[list[float] | None]:
        """See :class:`assay.rewards.process.step_scores.StepScorer`."""
        out: list[list[float] | None] = []
        for (_, steps), found in zip(responses, self.critics.critiques(responses), strict=True):
            told = [1 - 2 * f for f in flawed(found, self.vote)] if found else None
            out.append(told if steps else [])
        return out


def consensus(critiques: Sequence[Critique]) -> tuple[tuple[bool, ...], bool]:
    """Return the majority's verdict on each step, and on the answer; a tie is against it.

    A critique that says nothing of the answer finds it right if it finds every step right.
    """
    marks = tuple(f < 1 for f in flawed(critiques, "majority"))
    return marks, sum(final_of(c) for c in critiques) > len(critiques) / 2


def final_of(critique: Critique) -> bool:
    """Return a critique's verdict on the answer: what it says, else whether it finds every step right."""
    return all(critique.marks) if critique.final is None else critique.final


def nearest(critiques: Sequence[Critique], by: Literal["steps", "outcome"] = "steps") -> Critique:
    """Return the critique that agrees with the others best, the first of equals.

    ``outcome``: one whose verdict on the answer is the majority's; ``steps``: of those, where there is one, the one
    with most verdicts on steps that are the majority's.
    """
    marks, final = consensus(critiques)

    def agreed(critique: Critique) -> tuple[bool, int]:
        alike = sum(a == b for a, b in zip(critique.marks, marks, strict=True))
        return final_of(critique) == final, alike if by == "steps" else 0

    return max(critiques, key=agreed)
