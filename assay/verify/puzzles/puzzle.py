"""What checkers of puzzles share: reading the reference, finding the answer, and turning a complaint into a verdict."""

# No postponed annotations here: the fields of Puzzle are inherited by parts whose modules do not know these names.
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from assay.types import Task, Verdict
from assay.verify.answer.extract import Fallback, Rule, extract
from assay.verify.isolate.workers import Failure
from assay.verify.text.exact import shorten

_REFERENCE_ERRORS = (
    TypeError, KeyError, ValueError, AttributeError, IndexError, OverflowError, ZeroDivisionError, RecursionError,
)  # fmt: skip
_DENIAL = re.compile(
    r"(?:there (?:is|are|exists?) )?(?:no|not any) (?:valid |such |possible )?(?:solutions?|path|plan|tour|cycle|"
    r"colou?ring|assignment|model|answer sets?|subset|packing)(?: exists?)?|impossible|infeasible|unsolvable|"
    r"(?:it is )?not (?:possible|solvable|satisfiable)|unsat(?:isfiable)?|s unsatisfiable|none",
    re.IGNORECASE,
)


class BadAnswer(ValueError):
    """The answer cannot be read; the message says why. It is wrong."""


@dataclass(frozen=True, slots=True)
class Puzzle(ABC):
    """A verifier that checks constraints; subclasses say how the reference is read and an answer is checked.

    ``task.reference`` is a mapping, or the same as JSON text. A puzzle is taken to be solvable unless its reference has
    ``"solvable": false``; then the right answer is to say so ("no solution", "impossible", "unsat").

    Args:
        rules, fallback: where the answer stands, see :func:`~assay.verify.answer.extract.extract`; in what is found,
            the last fenced block (three backticks) is read, if there is one.
        partial: a wrong answer scores the share of constraints it keeps (always below 1) and not 0.
        max_chars: a longer answer is wrong without being read.
    """

    rules: tuple[Rule, ...] = ("answer_tag", "boxed")
    fallback: Fallback = "whole"
    partial: bool = False
    max_chars: int = 100_000

    shape: ClassVar[str] = "a mapping"
    """What the reference has to look like, for the message of an abstention."""

    @abstractmethod
    def read(self, reference: Mapping[str, Any]) -> Any:
        """Return the puzzle that ``reference`` describes; raise ValueError (or KeyError, TypeError ...) if none."""

    @abstractmethod
    def check(self, puzzle: Any, answer: str) -> Verdict:
        """Judge ``answer``; raise :class:`BadAnswer` where it cannot be read."""

    def deny(self, puzzle: Any, solvable: bool) -> Verdict:
        """Judge the answer that there is no solution."""
        return Verdict.wrong("there is a solution") if solvable else Verdict.right()

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            reference = json.loads(task.reference) if isinstance(task.reference, str) else task.reference
            solvable = reference.get("solvable", True) is not False
            puzzle = self.read(reference)
        except _REFERENCE_ERRORS as error:
            reason = f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else str(error)
            return Verdict.abstain(f"task {task.id}: reference is not {self.shape} ({shorten(reason, 120)})")
        answer = extract(response, self.rules, self.fallback)
        if answer is None:
            return Verdict.wrong("no final answer found")
        answer = unfence(answer)
        if not answer.strip():
            return self.unreadable("the answer is empty")
        if denies(answer):
            return self.deny(puzzle, solvable)
        if not solvable:
            return Verdict.wrong("there is no solution")
        if len(answer) > self.max_chars:
            return self.unreadable(f"the answer is longer than {self.max_chars} characters")
        try:
            return self.check(puzzle, answer)
        except BadAnswer as error:
            return self.unreadable(str(error))

    def unreadable(self, why: str) -> Verdict:
        return Verdict(0.0, False, {"format": 0.0}, why)

    def verdict(self, complaint: str, credit: float, parts: Mapping[str, float | None] | None = None) -> Verdict:
        """Right iff there is no ``complaint``; a wrong answer scores ``credit`` in [0, 1) where ``partial``."""
        score = 1.0 if not complaint else min(max(credit, 0.0), 0.99) if self.partial else 0.0
        return Verdict(score, not complaint, {"format": 1.0, **(parts or {})}, complaint)


def overspent(failure: Failure) -> bool:
    """Say whether a call was stopped for its own processor time or memory, and not by a crowded machine."""
    return failure.overspent


def denies(answer: str) -> bool:
    """Say whether ``answer`` claims that there is no solution."""
    answer = answer.strip(" \t\r\n.!*`\"'")
    return len(answer) < 80 and _DENIAL.fullmatch(answer) is not None


def unfence(text: str, languages: tuple[str, ...] = ()) -> str:
    """Return the content of the last block between lines of three backticks, else ``text``. Linear time.

    With ``languages``, a block that names one of them comes before blocks that name none or another.
    """
    blocks: list[tuple[str, str]] = []
    language, start, position = None, 0, 0
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if bare.startswith("```"):
            if language is None:
                language, start = bare[3:].strip().lower(), position + len(line)
            elif bare == "```":
                blocks.append((language, text[start:position]))
                language = None
        position += len(line)
    if language is not None and language in languages:
        blocks.append((language, text[start:]))  # cut off by the length limit, or not closed
    if not blocks:
        return text
    named = [block for block in blocks if block[0] in languages]
    return (named or blocks)[-1][1]
