"""What comes next in a text: a prediction is right if it says what the text goes on with, however far it gets."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from assay.errors import UsageError
from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.text.exact import shorten
from assay.verify.text.overlap import f1
from assay.verify.text.text import normalised, references, tokens

OPEN, CLOSE = "<|startofprediction|>", "<|endofprediction|>"


@part("verify", "continuation")
@dataclass(frozen=True, slots=True)
class Continuation:
    """Right iff the prediction is a beginning of the reference that goes at least as far as its first segment.

    ``task.reference`` is a list of texts, the segment to predict and those after it. Texts are compared by their words,
    without case, punctuation and English articles. A prediction may end within a later segment, but not within the
    first: the first word of a text is a beginning of it too. Parts: ``formed``, ``next`` (it is the first segment
    alone) and ``prefix`` (the rule above).

    Args:
        near: below 1, a prediction is right whose words have at least this F1 with those of the first k segments, for
            some k; the largest F1 is the score.
        open, close: what a prediction stands between; the last such pair counts, and without one the response is wrong.

    Raises:
        UsageError: ``near`` outside (0, 1], or an empty mark.
    """

    near: float = 1.0
    open: str = OPEN
    close: str = CLOSE

    def __post_init__(self) -> None:
        if not 0 < self.near <= 1 or not self.open or not self.close:
            raise UsageError(f"verifier 'continuation': near {self.near:g} must be in (0, 1], and the marks not empty")

    def __call__(self, task: Task, response: str) -> Verdict:
        wanted = [text for text in references(task.reference) if text.strip()]
        if not wanted:
            return Verdict.abstain(f"task {task.id} has no text to go on with")
        said = prediction(response, self.open, self.close)
        if not said:
            parts: dict[str, float | None] = {"formed": float(said is not None), "next": 0.0, "prefix": 0.0}
            return Verdict(0.0, False, parts, "no prediction" if said is None else "an empty prediction")
        given, whole = words(said), [words(text) for text in wanted]
        prefix = is_beginning(given, whole)
        score = float(prefix)
        if self.near < 1:
            joined = accumulate(wanted, lambda left, right: f"{left} {right}")
            score = max(score, *(f1(text, said) for text in joined))
        passed = prefix or score >= self.near
        parts = {"formed": 1.0, "next": float(given == whole[0]), "prefix": float(prefix)}
        return Verdict(score, passed, parts, "" if passed else f"goes on with {shorten(wanted[0])!r}")


def prediction(response: str, open: str = OPEN, close: str = CLOSE) -> str | None:
    """Return what stands between the last pair of marks, without white space around; ``None`` if there is no pair."""
    end = response.rfind(close)
    start = response.rfind(open, 0, max(end, 0))
    return response[start + len(open) : end].strip() if start >= 0 else None


def words(text: str) -> list[str]:
    """Return what of a text is compared."""
    return tokens(normalised(text, "squad"))


def is_beginning(given: list[str], whole: list[list[str]]) -> bool:
    """Say whether ``given`` is a beginning of the segments ``whole`` that has all of the first."""
    together = [word for segment in whole for word in segment]
    return len(whole[0]) <= len(given) and given == together[: len(given)]
