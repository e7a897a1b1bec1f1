"""Prompts whose responses hardly differ in what they are worth teach little, and are left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops import group_count, group_std, outcome
from assay.registry import part


@part("select", "reward_std")
@dataclass(slots=True)
class RewardSpread:
    """Weight 0 for the samples of prompts with sigma < beta e, else 1; sigma the standard deviation of their rewards.

    e is an exponential mean over steps of the mean sigma of a step's prompts: the plain mean of steps ``after`` + 1 to
    ``wait``, then e <- decay e + (1 - decay) (mean sigma of the step before), for each step in which prompts are left
    out. The first ``wait`` steps leave out none. Prompts of fewer than two samples with a reward have no sigma and are
    kept. What was left out is not asked again: the step learns from the rest. The mean is in the checkpoint.

    Source: RLPR (arXiv 2506.18254), section on standard deviation filtering, and its implementation.

    Args:
        beta: at least 0; 0 keeps all.
        decay: in [0, 1).
        after: steps whose sigma is not counted, in the beginning.
        wait: steps that leave out none; above ``after``.
        ddof: 1 for the unbiased standard deviation, 0 for the population's.

    Raises:
        UsageError: an option out of range.
    """

    beta: float = 0.5
    decay: float = 0.99
    after: int = 5
    wait: int = 10
    ddof: int = 1
    _done: int = field(default=0, init=False, repr=False, compare=False)
    _mean: float = field(default=0.0, init=False, repr=False, compare=False)
    _last: float | None = field(default=None, init=False, repr=False, compare=False)
    _counted: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.beta < 0 or not 0 <= self.decay < 1 or not 0 <= self.after < self.wait:
            raise UsageError(
                f"select 'reward_std': needs beta {self.beta:g} >= 0, decay {self.decay:g} in [0, 1) and "
                f"0 <= after {self.after} < wait {self.wait}"
            )

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        rewards = outcome(batch)
        sigma = group_std(rewards, batch.prompt_group, batch.active, self.ddof)
        measured = group_count(batch.prompt_group, batch.active, rewards.dtype) > 1
        first = [int((batch.prompt_group == g).nonzero()[0, 0]) for g in batch.prompt_group.unique()]
        here = [float(sigma[i]) for i in first if bool(measured[i])]
        keep = torch.ones_like(rewards)
        self._done += 1
        if self._done > self.wait and self._counted:
            # The plain mean has the last of the waiting steps in it already.
            if self._done > self.wait + 1 and self._last is not None:
                self._mean = self.decay * self._mean + (1 - self.decay) * self._last
            keep = torch.where(measured & (sigma < self.beta * self._mean), 0, keep)
        mean = sum(here) / len(here) if here else None
        if self.after < self._done <= self.wait and mean is not None:
            self._counted += 1
            self._mean += (mean - self._mean) / self._counted
        self._last = mean
        return keep.to(rewards.dtype)

    def state_dict(self) -> dict[str, Any]:
        return {"done": self._done, "mean": self._mean, "last": self._last, "counted": self._counted}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._done, self._mean = int(state["done"]), float(state["mean"])
        self._last, self._counted = state["last"], int(state["counted"])
