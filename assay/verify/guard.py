"""The one rule for what any verifier, a user's own too, may say: what breaks it abstains, with the reason."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any

from assay.errors import UsageError
from assay.types import Task, Verdict
from assay.verify.base import Verifier

THRESHOLD = 0.5
"""Score from which a bare number is right."""


def judge(verifier: Verifier, task: Task, response: str, name: str = "the verifier") -> Verdict:
    """Return the verdict of any verifier on a response; one that raises, leaves or says something else abstains.

    Args:
        verifier: any callable of a task and a response; what it may say is told by :func:`as_verdict`.
        name: of the verifier, for the reason.

    Raises:
        UsageError: the task cannot be judged at all, as one of a kind that no verifier judges.
    """
    try:
        said = verifier(task, response)
    except UsageError:
        raise
    except (Exception, SystemExit) as error:  # sys.exit() in a verifier is its failure, and not the end of the run
        return Verdict.abstain(raised(name, error))
    return checked(said, name)


def checked(said: Any, name: str = "the verifier") -> Verdict:
    """Return what a verifier said as a verdict; what is none abstains, with the reason."""
    try:
        return as_verdict(said)
    except ValueError as error:
        return Verdict.abstain(f"{name} {error}")


def as_verdict(said: Any, threshold: float = THRESHOLD) -> Verdict:
    """Read what a verifier said.

    Args:
        said: a verdict with a score in [0, 1]; a truth value, of NumPy or torch too; or a number in [0, 1], the score.
        threshold: the score from which a bare number is right.

    Raises:
        ValueError: it is something else; says what, to be put after the verifier's name.
    """
    if isinstance(said, Verdict):
        return _sound(said)
    value = _scalar(said)
    if isinstance(value, bool):
        return Verdict(float(value), value)
    if isinstance(value, numbers.Real):
        score = _score(value)
        return Verdict(score, score >= threshold)
    raise ValueError(f"returned a {type(said).__name__}, not a Verdict, a truth value or a score in [0, 1]")


def _sound(verdict: Verdict) -> Verdict:
    """The verdict itself, or an equal one of plain types."""
    passed, score = verdict.passed, verdict.score
    if type(score) is float and 0 <= score <= 1 and type(passed) is bool and not verdict.parts:
        return verdict
    passed = _scalar(passed)
    if passed is not None and not isinstance(passed, bool):
        raise ValueError(f"said passed={passed!r}, which is neither True, False nor None")
    score = _score(_scalar(score))
    parts = verdict.parts if isinstance(verdict.parts, Mapping) else {"": verdict.parts}
    for part, value in parts.items():
        if value is not None and not (isinstance(_scalar(value), numbers.Real) and math.isfinite(value)):
            raise ValueError(f"gave its part {part!r} the value {value!r}, which is no finite number")
    return Verdict(score, passed, verdict.parts, verdict.feedback, verdict.fault)


def _score(value: Any) -> float:
    try:
        score = float(value) if isinstance(value, numbers.Real) else math.nan
    except OverflowError:
        score = math.inf
    if not 0 <= score <= 1:  # which NaN is not either
        raise ValueError(f"gave the score {repr(value)[:60]}, which is not in [0, 1]")
    return score


def _scalar(value: Any) -> Any:
    """A scalar of NumPy or torch as Python's, anything else as it is."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value


def raised(what: str, error: BaseException) -> str:
    """One line, whatever the error says."""
    said = " ".join(str(error).split())[:500]
    return f"{what} raised {type(error).__name__}" + (f": {said}" if said else "")
