"""A language model as verifier that tells right, wrong, and what cannot be judged."""

from __future__ import annotations

from dataclasses import dataclass

from assay.rewards.judges.reference_judge import Unread
from assay.rewards.judges.word_judge import WordJudge
from assay.tasks.judging.ternary import DIRECT, letter
from assay.types import Verdict


@dataclass(frozen=True, slots=True)
class TernaryJudge(WordJudge):
    r"""A verifier that asks a model for A, right, B, wrong, or C, invalid: nothing there can be judged.

        passed = 1[A];   parts["invalid"] = 1[C]

    B and C score 0 alike and stay apart in the verdict; with ``invalid = "abstain"`` C leaves the sample out of the
    update.

    Args:
        judge, template, unread, max_tokens, temperature, top_p, view: see
            :class:`~assay.rewards.judges.word_judge.WordJudge`; a reply without a letter is one without a verdict.
        invalid: what C comes to: ``wrong`` or ``abstain``.

    Raises:
        UsageError: as there.

    Source: CompassVerifier (arXiv 2508.03686).
    """

    template: str = DIRECT
    max_tokens: int = 8
    invalid: Unread = "wrong"

    def read(self, reply: str) -> Verdict | None:
        """See :meth:`~assay.rewards.judges.word_judge.WordJudge.read`."""
        found = letter(reply)
        if found is None:
            return None
        parts = {"invalid": float(found == "C")}
        if found == "C":
            passed = None if self.invalid == "abstain" else False
            return Verdict(0.0, passed, parts, "invalid: there is nothing that can be judged")
        return Verdict(float(found == "A"), found == "A", parts)
