"""No verifier: for tasks that only a reward function judges."""

from __future__ import annotations

from dataclasses import dataclass

from assay.registry import part
from assay.types import Task, Verdict


@part("verify", "none")
@dataclass(frozen=True, slots=True)
class NoVerifier:
    """Abstains from every response."""

    def __call__(self, task: Task, response: str) -> Verdict:
        return Verdict.abstain("no verifier: only the reward function judges")


UNJUDGED = NoVerifier()(Task("", ""), "")


def told(verdict: Verdict) -> bool:
    """Whether the verifier did not fail: it gave a verdict, or there is none."""
    return verdict.passed is not None or verdict == UNJUDGED
