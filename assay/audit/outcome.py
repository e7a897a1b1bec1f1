"""What a verifier made of one response, whatever way it says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from assay.types import Verdict
from assay.verify.guard import THRESHOLD, as_verdict

Status = Literal["accepted", "rejected", "abstained", "crashed", "timed_out"]
UNDECIDED: tuple[Status, ...] = ("abstained", "crashed", "timed_out")
DECISIONS: dict[str, bool] = {"accepted": True, "rejected": False}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a verifier made of one response.

    Attributes:
        status: accepted or rejected; or why there is no decision.
        score: the verdict's score in [0, 1]; 0 where there is no decision.
        feedback: the verdict's feedback, or the reason why there is none.
        seconds: wall time of the call; NaN where its process was killed.
    """

    status: Status
    score: float
    feedback: str
    seconds: float


def outcome(said: Any, seconds: float, threshold: float = THRESHOLD) -> Outcome:
    """Read what a verifier answered: what :func:`~assay.verify.guard.as_verdict` takes, ``None``, or a table.

    ``None`` abstains. A score without ``passed`` passes from ``threshold`` on. A table has ``passed``, ``score`` or
    both, and perhaps ``feedback``. Anything else is a crash, and the feedback says what it was.
    """
    try:
        if isinstance(said, Mapping):
            verdict = _of_table(said, threshold)
        else:
            verdict = Verdict.abstain("abstained") if said is None else as_verdict(said, threshold)
    except ValueError as error:
        return Outcome("crashed", 0.0, f"answered {shown(said)}: it {error}", seconds)
    if verdict.passed is None:
        return Outcome("abstained", 0.0, str(verdict.feedback) or "abstained", seconds)
    return Outcome("accepted" if verdict.passed else "rejected", verdict.score, str(verdict.feedback), seconds)


def _of_table(fields: Mapping[str, Any], threshold: float) -> Verdict:
    score, feedback = fields.get("score"), str(fields.get("feedback") or "")
    if "passed" not in fields and "score" not in fields:
        raise ValueError("has neither passed nor score")
    if "passed" not in fields:
        return Verdict.abstain(feedback) if score is None else replace(as_verdict(score, threshold), feedback=feedback)
    passed = fields["passed"]
    told = as_verdict(Verdict(0.0 if score is None else score, passed, {}, feedback))
    return told if score is not None or passed is None else replace(told, score=float(passed))


def shown(value: Any, width: int = 60) -> str:
    """A value as a short piece of a feedback line."""
    text = repr(value)
    return text if len(text) <= width else text[: width - 3] + "..."
