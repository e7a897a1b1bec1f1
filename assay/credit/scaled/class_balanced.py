"""Advantages of judges, by whether what they judge is right: the rarer kind counts more."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.credit.scaled.rescaled import Rescaled
from assay.errors import RunError, UsageError
from assay.registry import part


@part("credit", "class_balanced")
@dataclass(slots=True)
class ClassBalanced(Rescaled):
    """A_it = c(y_i) A'_it, A' another credit's advantages and y_i whether what was judged is right.

    With n+ and n- the samples of either kind in a batch, m = decay m + (1 - decay) n of each, n itself in the first
    batch, c = 1 / (sqrt(m) + 1e-6), scaled so that its mean over the batch's samples is 1. A judge of mostly wrong
    solutions would else learn to call everything wrong. m is in the checkpoint.

    The kind of a sample is ``task.reference["right"]``, as of verifier ``verification``.

    Args:
        credit: A' (name, table or part).
        decay: in [0, 1).

    Raises:
        UsageError: ``decay`` out of range.
        RunError: a task that does not say.

    Source: RL Tango (arXiv 2505.15034) and its implementation.
    """

    credit: Any = "grpo"
    decay: float = 0.8
    _counts: tuple[float, float] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.decay < 1:
            raise UsageError(f"credit 'class_balanced': decay {self.decay:g} is outside [0, 1)")
        Rescaled.__post_init__(self)

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        right = torch.tensor([_right(task) for task in batch.tasks], dtype=torch.bool)
        return self.credit(batch) * self.coefficients(right, batch)[:, None]

    def coefficients(self, right: Tensor, batch: Batch) -> Float[Tensor, "N"]:
        """Return c of each sample, and remember the counts of the active ones."""
        counts = tuple(float((batch.active & (right == kind)).sum()) for kind in (False, True))
        if self._counts is None:
            self._counts = counts  # type: ignore[assignment]
        else:
            a, b = (self.decay * m + (1 - self.decay) * n for m, n in zip(self._counts, counts, strict=True))
            self._counts = (a, b)
        wrong, good = (1 / (math.sqrt(m) + 1e-6) for m in self._counts)  # type: ignore[union-attr]
        c = torch.where(right, good, wrong).to(batch.rewards.dtype)
        used = c[batch.active]
        return c / used.mean() if len(used) else torch.ones_like(c)

    def state_dict(self) -> dict[str, Any]:
        return {"counts": None if self._counts is None else list(self._counts)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._counts = None if state["counts"] is None else (float(state["counts"][0]), float(state["counts"][1]))


def _right(task: Any) -> bool:
    truth = task.reference
    if not isinstance(truth, Mapping) or not isinstance(truth.get("right"), bool):
        raise RunError(
            f"credit 'class_balanced': task {task.id} does not say whether what it shows is right; its reference is to "
            'be {"right": true} or false'
        )
    return truth["right"]
