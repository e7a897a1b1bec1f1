"""Replies that judge a solution step by step and then as a whole: how they are read, and whether they are right."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict

Form = Literal["tagged", "letters"]

TEMPLATE = r"""Question:
{question}

A solution in {count} steps:
{steps}

Judge each of the {count} steps in turn, between <verification> and </verification>: for each write a block
<step>...</step> with your analysis that ends in \boxed{{CORRECT}} or \boxed{{INCORRECT}}, and nothing outside of these
blocks. After </verification> say in one more box whether the final answer is right: \boxed{{CORRECT}} or
\boxed{{INCORRECT}}."""

LETTERS = {"T": True, "F": False}
FRAME = re.compile(r"<verification>(?P<inside>.*)</verification>(?P<after>.*)", re.DOTALL)
BLOCK = re.compile(r"<step>(.*?)</step>", re.DOTALL)
BOXED = re.compile(r"\\boxed\{\s*(CORRECT|INCORRECT)\s*\}")

MALFORMED, BESIDE = 0.8, 0.4
"""What a reply loses for a fault of its form; for text outside of its blocks."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reply says.

    Attributes:
        steps: of each block whether it calls its step right; ``None`` where it does not say.
        final: whether it calls the answer right; ``None`` where it does not say.
        framed: whether it has the frame of a verification.
        clean: nothing but white space stands outside of blocks and verdicts.
    """

    steps: tuple[bool | None, ...]
    final: bool | None
    framed: bool
    clean: bool


def read(reply: str, form: Form = "tagged") -> Reading:
    """Read a reply.

    - ``tagged``: blocks in a frame, as :data:`TEMPLATE` asks for; the last box of a block and after the frame counts;
    - ``letters``: of the letters T and F the last is the final verdict, those before it are of steps.
    """
    if form == "letters":
        said = [LETTERS[c] for c in reply if c in LETTERS]
        clean = all(c in LETTERS or c.isspace() for c in reply)
        return Reading(tuple(said[:-1]), said[-1] if said else None, bool(said), clean)
    frame = FRAME.search(reply)
    if frame is None:
        return Reading((), _boxed(reply), False, False)
    inside, after = frame["inside"], frame["after"]
    rest = reply[: frame.start()] + BLOCK.sub("", inside) + BOXED.sub("", after)
    return Reading(tuple(_boxed(b) for b in BLOCK.findall(inside)), _boxed(after), True, not rest.strip())


def _boxed(text: str) -> bool | None:
    found = BOXED.findall(text)
    return found[-1] == "CORRECT" if found else None


def form_score(reading: Reading, steps: int) -> float:
    """Return how well a reply keeps to its form, in [0, 1].

    1, less 0.8 without a final verdict, 0.8 without a block, 0.8 where it judges another number than ``steps`` (which
    is not asked of a solution without steps), 0.4 for text outside of blocks; at least 0, and 0 without the frame.
    """
    if not reading.framed:
        return 0.0
    judged = len(reading.steps) == steps and None not in reading.steps
    lost = (reading.final is None) + (not reading.steps) + (steps > 0 and bool(reading.steps) and not judged)
    return max(0.0, 1 - MALFORMED * lost - BESIDE * (not reading.clean))


@part("verify", "verification")
@dataclass(frozen=True, slots=True)
class VerificationVerdict:
    """Right iff the final verdict of a reply is that of the solution it is on; step verdicts are not looked at.

    ``task.reference`` is ``{"right": whether the solution is, "steps": how many it has}``; abstains without. The part
    ``form`` is :func:`form_score`, 0 where there is no final verdict, which counts as wrong.

    Args:
        form: see :func:`read`.
    """

    form: Form = "tagged"

    def __post_init__(self) -> None:
        if self.form not in ("tagged", "letters"):
            raise UsageError(f"verifier 'verification': form is 'tagged' or 'letters', not {self.form!r}")

    def __call__(self, task: Task, response: str) -> Verdict:
        truth = task.reference
        if not isinstance(truth, Mapping) or not isinstance(truth.get("right"), bool):
            return Verdict.abstain(f"task {task.id} does not say whether its solution is right")
        reading = read(response, self.form)
        if reading.final is None:
            return Verdict(0.0, False, {"form": 0.0}, "no final verdict")
        passed = reading.final == truth["right"]
        words = "" if passed else f"the solution is {'right' if truth['right'] else 'wrong'}"
        return Verdict(float(passed), passed, {"form": form_score(reading, int(truth.get("steps", 0)))}, words)
