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
{response}

Check it step by step, and then say whether its final answer is right. Write for each of its {count} steps one block
<step>...</step> with what you find, in your own words, that ends in \boxed{{CORRECT}} or \boxed{{INCORRECT}}, and
nothing else than this:

<step_verification>
<step>what you find of step 1 \boxed{{CORRECT}}</step>
...
</step_verification>
<final_verification>\boxed{{CORRECT}} or \boxed{{INCORRECT}}</final_verification>"""

LETTERS = {"T": True, "F": False}
STEPS, FINAL = ("<step_verification>", "</step_verification>"), ("<final_verification>", "</final_verification>")
BLOCK = re.compile(r"<step>(.*?)</step>", re.DOTALL)
MARK = r"\\box(?:ed)?\{(CORRECT|INCORRECT)\}\.?\s*"
LAST_MARK = re.compile(MARK + r"\Z", re.IGNORECASE)
FINAL_MARK = re.compile(rf"{FINAL[0]}\s*{MARK}{FINAL[1]}", re.IGNORECASE)

MALFORMED, BESIDE = 0.8, 0.4
"""What a reply loses for a fault of its form; for text between its blocks."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reply says.

    Attributes:
        steps: of each block whether it calls its step right; ``None`` where it does not say.
        final: whether it calls the answer right; ``None`` where it does not say.
        framed: whether it has the frame of a verification, and nothing besides.
        clean: nothing but white space stands between the blocks.
    """

    steps: tuple[bool | None, ...]
    final: bool | None
    framed: bool
    clean: bool

    @property
    def judged(self) -> list[bool]:
        """What the blocks say that say something, in order."""
        return [mark for mark in self.steps if mark is not None]


def read(reply: str, form: Form = "tagged") -> Reading:
    """Read a reply.

    - ``tagged``: what :data:`TEMPLATE` asks for, and nothing before or after it; a block says what it ends in;
    - ``letters``: of the letters T and F the last is the final verdict, those before it are of steps.
    """
    if form == "letters":
        said = [LETTERS[c] for c in reply if c in LETTERS]
        clean = all(c in LETTERS or c.isspace() for c in reply)
        return Reading(tuple(said[:-1]), said[-1] if said else None, bool(said), clean)
    before, _, rest = reply.partition(STEPS[0])
    inside, closed, after = rest.partition(STEPS[1])
    after = after.strip()
    framed = bool(closed) and not before.strip() and after.startswith(FINAL[0]) and after.endswith(FINAL[1])
    marks = tuple(_said(LAST_MARK.search(b)) for b in BLOCK.findall(inside)) if closed else ()
    return Reading(marks, _said(FINAL_MARK.search(reply)), framed, not BLOCK.sub("", inside).strip())


def _said(mark: re.Match[str] | None) -> bool | None:
    return None if mark is None else mark[1].upper() == "CORRECT"


def form_score(reading: Reading, steps: int) -> float:
    """Return how well a reply keeps to its form, in [0, 1].

    1, less 0.8 without a final verdict, 0.8 without a block, 0.8 where it judges another number than ``steps`` (which
    is not asked of a solution without steps), 0.4 for text between blocks; at least 0, and 0 without the frame.
    """
    if not reading.framed:
        return 0.0
    other = steps > 0 and bool(reading.steps) and len(reading.judged) != steps
    lost = (reading.final is None) + (not reading.steps) + other
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
