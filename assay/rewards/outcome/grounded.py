"""Answers where there is one and abstention where there is none, the two ways of confusing them, and gibberish."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.types import Task, Verdict


@part("reward", "grounded")
@dataclass(frozen=True, slots=True)
class Grounded:
    """R_i by what the verdict of verifier ``persona`` calls a response, and 0 of any that is degenerate:

        true positive ``tp``, true negative ``tn``, false negative ``fn``, false positive ``fp``, else 0

    so that who names another person loses nothing, and who names one where nobody is does. Terms: ``right``,
    ``abstained`` (said that nobody is there), ``confused`` (fn or fp), ``degenerate``.

    Args:
        tp, tn, fn, fp: see above; the first two above 0, the others below.

    Raises:
        UsageError: values of another sign; before a run, tasks of another kind.

    Source: Omni-Persona (arXiv 2605.09996) and its authors' code.
    """

    tp: float = 1.0
    tn: float = 1.0
    fn: float = -0.5
    fp: float = -0.5

    def __post_init__(self) -> None:
        if min(self.tp, self.tn) <= 0 or max(self.fn, self.fp) > 0:
            raise UsageError(
                f"reward 'grounded': tp {self.tp:g} and tn {self.tn:g} must be above 0, fn {self.fn:g} and fp "
                f"{self.fp:g} at most 0"
            )

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            if task.kind != "persona":
                raise UsageError(
                    f"reward 'grounded': task {task.id} is of kind {task.kind!r}, in which nobody can be absent; take "
                    "tasks of kind 'persona', such as tasks.source=personas"
                )

    def worth(self, verdict: Verdict) -> float:
        """Return what a verdict is worth."""
        if verdict.parts.get("degenerate"):
            return 0.0
        values = {
            "true positive": self.tp,
            "true negative": self.tn,
            "false negative": self.fn,
            "false positive": self.fp,
        }
        return values.get(verdict.feedback, 0.0)

    def __call__(self, batch: Batch) -> Reward:
        said = [v.feedback for v in batch.verdicts]
        lists = {
            "right": [v.passed is True for v in batch.verdicts],
            "abstained": [text in ("true negative", "false negative") for text in said],
            "confused": [text in ("false positive", "false negative") for text in said],
            "degenerate": [bool(v.parts.get("degenerate")) for v in batch.verdicts],
        }
        values = torch.tensor([self.worth(v) for v in batch.verdicts], dtype=batch.rewards.dtype)
        terms = {name: torch.tensor(found).to(values) for name, found in lists.items()}
        return Reward(values, valid=judged(batch), terms=terms)
