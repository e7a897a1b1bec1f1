"""Tools that check one step of a solution: is what it says true, whatever becomes of it?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

from assay.engines.asking import ask, filled, judge_of
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.registry import build
from assay.types import Task
from assay.verify.guard import judge

OPINION = """Problem:
{question}

Steps so far:
{before}

Next step:
{step}

A tool that checks equations says: {tool}

Is the next step right? Reason briefly, then end with \\boxed{right} or \\boxed{wrong}."""

_LETTER = re.compile(r"[A-Za-z]")
_BOX = re.compile(r"\\boxed\{\s*(right|wrong)\s*\}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Checked:
    """What a tool says of a step: 1 right, -1 wrong, 0 that it cannot tell, and why."""

    mark: int
    rationale: str = ""


@runtime_checkable
class StepTool(Protocol):
    """Checks steps, each with those before it."""

    def check(self, steps: Sequence[tuple[Task, Sequence[str], str]]) -> list[Checked]: ...


@dataclass(frozen=True, slots=True)
class Equations:
    """Checks the equations in a step, each neighbouring pair of sides, by the verifier of mathematics.

    A step is wrong where two sides without letters differ, and right where something could be checked and nothing was
    wrong. Of sides with letters only what holds always says something: ``x = 3`` is no claim that a tool can check.

    Args:
        verifier: name, table or object that compares two expressions.
    """

    verifier: Any = "math"

    def check(self, steps: Sequence[tuple[Task, Sequence[str], str]]) -> list[Checked]:
        verifier = build("verify", self.verifier)
        return [self._one(verifier, step) for *_, step in steps]

    def _one(self, verifier: Any, step: str) -> Checked:
        held: list[str] = []
        for line in step.splitlines():
            sides = [side.strip() for side in line.split("=")]
            for left, right in pairwise(sides):
                if not left or not right:
                    continue
                # What is to be worked out may stand on either side.
                ways = ((left, right), (right, left))
                said = [judge(verifier, Task("", "", a, "math"), f"\\boxed{{{b}}}").passed for a, b in ways]
                if True in said:
                    held.append(f"{left} = {right}")
                elif None not in said and not _LETTER.search(left + right):
                    return Checked(-1, f"{left} is not {right}")
        return Checked(1, "; ".join(held)) if held else Checked(0, "nothing to check")


@dataclass(frozen=True, slots=True)
class Reads:
    """A model reads a step and what a tool says of it, and decides; it is asked again where its reply says neither.

    Args:
        engine: an engine, or the specification of one.
        tool: see :class:`StepTool`.
        tries: replies at most, after which the mark is 0.
        sampling: of a reply.
        template: with ``{question}``, ``{before}``, ``{step}`` and ``{tool}``.

    Raises:
        UsageError: no engine, no try, or a template that does not show the step.
    """

    engine: Any
    tool: Any = Equations()
    tries: int = 5
    sampling: Sampling = Sampling(512, 1.0)  # noqa: RUF009  # frozen
    template: str = OPINION

    def __post_init__(self) -> None:
        object.__setattr__(self, "engine", judge_of(self.engine, "a judge of steps"))
        if self.tries < 1 or "{step}" not in self.template:
            raise UsageError("a judge of steps needs at least 1 try, and a template that shows the {step}")

    def check(self, steps: Sequence[tuple[Task, Sequence[str], str]]) -> list[Checked]:
        said = self.tool.check(steps)
        prompts = [
            filled(self.template, question=task.question, before="".join(before), step=step, tool=found.rationale)
            for (task, before, step), found in zip(steps, said, strict=True)
        ]
        out = [Checked(0, "no verdict could be read")] * len(steps)
        open_ = list(range(len(steps)))
        for attempt in range(self.tries):
            # Another attempt is another prompt, since equal ones have one reply.
            replies = ask(self.engine, [prompts[i] + "\n" * attempt for i in open_], self.sampling)
            for i, reply in zip(open_, replies, strict=True):
                marks = _BOX.findall(reply.text) if reply.stop != "error" else []
                if marks:
                    out[i] = Checked(1 if marks[-1].lower() == "right" else -1, reply.text)
            open_ = [i for i in open_ if out[i].mark == 0]
            if not open_:
                break
        return out
