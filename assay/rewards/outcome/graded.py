"""Three grades of an answer: right, wrong, and none where one was to be marked."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.types import Verdict
from assay.verify.answer.extract import Rule, check_rules, extract


@part("reward", "graded")
@dataclass(frozen=True, slots=True)
class Graded:
    r"""R_i = ``right`` for a right answer, ``wrong`` for a wrong one, ``unmarked`` for a response that marks none.

    A response that marks no answer has the lowest grade whatever the verdict on it, unless ``unmarked_right`` is what a
    right one then gets. One whose verifier abstained has no reward.

    Source: RISE (arXiv 2505.13445), whose grades these are.

    Args:
        right, wrong, unmarked: the grades, all different.
        unmarked_right: of a right answer that is not marked; ``unmarked`` if left out.
        marks: what marks an answer, see :func:`~assay.verify.answer.extract.extract`; with an empty list a
            response marks none if it is blank, or its verdict says so (part ``marked`` is 0). The paper's is a box.

    Raises:
        UsageError: two grades are equal, or an unknown mark.
    """

    right: float = 1.0
    wrong: float = -0.5
    unmarked: float = -1.0
    marks: tuple[Rule, ...] = ()
    unmarked_right: float | None = None

    def __post_init__(self) -> None:
        if len({self.right, self.wrong, self.unmarked}) < 3:
            raise UsageError("reward 'graded': right, wrong and unmarked must be three different numbers")
        check_rules(self.marks, "reward 'graded'")

    def grade(self, response: str, verdict: Verdict) -> float | None:
        """Return the grade of a judged response, ``None`` where the verifier abstained."""
        if verdict.passed is None:
            return None
        none = extract(response, self.marks, "none") is None if self.marks else not response.strip()
        if none or verdict.parts.get("marked") == 0:
            return self.unmarked_right if verdict.passed and self.unmarked_right is not None else self.unmarked
        return self.right if verdict.passed else self.wrong

    def __call__(self, batch: Batch) -> Reward:
        grades = [self.grade(e.text, v) for e, v in zip(batch.episodes, batch.verdicts, strict=True)]
        values = torch.tensor([0.0 if g is None else g for g in grades], dtype=batch.rewards.dtype)
        return Reward(values, valid=torch.tensor([g is not None for g in grades]), terms={"graded": values})
