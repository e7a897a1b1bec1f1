r"""An analysis of a proof, or of such an analysis, that ends in a score: how it is read, and how near the score is."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.registry import part
from assay.types import Task, Verdict

OPENING, CLOSING = "My analysis:", "So the score is:"
SCORES = (0.0, 0.5, 1.0)
_TAIL = re.compile(rf"{re.escape(CLOSING)}\s*\\boxed\{{\s*(0|0?\.5|1)\s*\}}\s*\Z")
_THOUGHT = re.compile(r"\A.*</think>", re.DOTALL)
_PARTS = re.compile(r"^## Solution[ \t]*\n(.*?)^## Self-Evaluation[ \t]*\n(.*)\Z", re.DOTALL | re.MULTILINE)


def spoken(reply: str) -> str:
    """Return a reply without its thinking."""
    return _THOUGHT.sub("", reply).strip()


def score_of(analysis: str) -> float | None:
    """Return the score that an analysis in its form ends with, 0, 1/2 or 1; ``None`` for what is not in its form.

    The form: a line ``My analysis:``, the analysis, ``So the score is:`` and a box, behind which there is nothing.
    """
    text = spoken(analysis)
    found = _TAIL.search(text)
    return float(found[1]) if found and OPENING in text[: found.start()] else None


def divided(reply: str) -> tuple[str, str] | None:
    """Return the solution and the self-evaluation of a reply, under headings of these names in this order; ``None``
    where one of them is missing or empty."""
    found = _PARTS.search(spoken(reply))
    proof, analysis = (found[1].strip(), found[2].strip()) if found else ("", "")
    return (proof, analysis) if proof and analysis else None


@part("verify", "analysis")
@dataclass(frozen=True, slots=True)
class Analysis:
    """score = 1 - |s' - s| of an analysis in its form (:func:`score_of`) that says s', and 0 of any other.

    ``task.reference`` is s, 0, 1/2 or 1; passes where s' = s. Parts: ``form``, and ``said``, which is s'. Abstains on a
    task without such a score.

    Source: DeepSeekMath-V2, R_format R_score; the phrases are a choice.
    """

    def __call__(self, task: Task, response: str) -> Verdict:
        try:
            truth = float(task.reference)
        except (TypeError, ValueError):
            truth = -1.0
        if truth not in SCORES:
            return Verdict.abstain(f"task {task.id} has the score {task.reference!r}, not 0, 0.5 or 1")
        said = score_of(response)
        if said is None:
            return Verdict(
                0.0, False, {"form": 0.0, "said": None}, f"not in the form {OPENING} ... {CLOSING} and a box"
            )
        words = "" if said == truth else f"said {said:g}, it is {truth:g}"
        return Verdict(1 - abs(said - truth), said == truth, {"form": 1.0, "said": said}, words)
