"""What a verifier made of one response, whatever way it says so."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from assay.types import Verdict

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


def outcome(said: Any, seconds: float, threshold: float = 0.5) -> Outcome:
    """Read what a verifier answered: a :class:`~assay.types.Verdict`, a truth value, a score, or a table.

    ``None`` abstains. A score without ``passed`` passes from ``threshold`` on. A table has ``passed``, ``score`` or
    both, and perhaps ``feedback``. Anything else is a crash, and the feedback says what it was.
    """
    if isinstance(said, Verdict):
        said = {"passed": said.passed, "score": said.score, "feedback": said.feedback}
    fields: Mapping[str, Any]
    if isinstance(said, Mapping):
        fields = said
    elif said is None or _is_truth(said):
        fields = {"passed": said}
    else:
        fields = {"score": said}
    score, feedback = fields.get("score"), str(fields.get("feedback") or "")
    if "passed" not in fields and "score" not in fields:
        return Outcome("crashed", 0.0, f"answered {shown(said)}, which is no verdict", seconds)
    if score is not None and not _is_score(score):
        return Outcome("crashed", 0.0, f"answered {shown(said)}: the score is no number in [0, 1]", seconds)
    passed = fields["passed"] if "passed" in fields else None if score is None else bool(score >= threshold)
    if passed is None:
        return Outcome("abstained", 0.0, feedback or "abstained", seconds)
    if not _is_truth(passed):
        return Outcome("crashed", 0.0, f"answered {shown(said)}: passed is neither true, false nor null", seconds)
    return Outcome("accepted" if passed else "rejected", float(passed if score is None else score), feedback, seconds)


def shown(value: Any, width: int = 60) -> str:
    """A value as a short piece of a feedback line."""
    text = repr(value)
    return text if len(text) <= width else text[: width - 3] + "..."


def _is_truth(value: Any) -> bool:
    # NumPy's bool is no subclass of Python's.
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


def _is_score(value: Any) -> bool:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return not isinstance(value, str | bytes) and math.isfinite(number) and 0 <= number <= 1
