"""Prompts whose responses hardly differ in what they are worth teach little, and are left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops import group_count, group_std, outcome
from assay.registry import part


@part("select", "reward_std")
@dataclass(slots=True)
class RewardSpread:
    """Weight 0 for the samples of prompts with sigma < max(beta e, least), else 1; sigma their rewards' deviation.

    e is an exponential mean over steps of the mean sigma of a step's prompts: the plain mean of steps ``after`` + 1 to
    ``wait``, then e <- decay e + (1 - decay) (mean sigma of the step before), for each step in which prompts are left
    out by it. The first ``wait`` steps leave out none by e. Prompts of fewer than two samples with a reward have no
    sigma and are kept. The mean is in the checkpoint.

    With ``rounds`` above 1 other prompts are asked in place of those left out, up to so many rounds in a step:
    dynamic sampling on the rewards (``beta = 0, least = 1e-6``: on their being different at all).

    Source: RLPR (arXiv 2506.18254), section on standard deviation filtering, and its implementation.

    Args:
        beta: at least 0; 0 leaves out none by e.
        decay: in [0, 1).
        after: steps whose sigma is not counted, in the beginning.
        wait: steps that leave out none by e; above ``after``.
        ddof: 1 for the unbiased standard deviation, 0 for the population's.
        least: at least 0, from the first step on.
        rounds: of generation in a step, at least 1; see :func:`assay.learning.step.sample`.

    Raises:
        UsageError: an option out of range.
    """

    beta: float = 0.5
    decay: float = 0.99
    after: int = 5
    wait: int = 10
    ddof: int = 1
    least: float = 0.0
    rounds: int = 1
    _done: int = field(default=0, init=False, repr=False, compare=False)
    _mean: float = field(default=0.0, init=False, repr=False, compare=False)
    _last: float | None = field(default=None, init=False, repr=False, compare=False)
    _counted: int = field(default=0, init=False, repr=False, compare=False)
    _seen: list[float] = field(default_factory=list, init=False, repr=False, compare=False)
    _kept: float = field(default=1.0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.beta < 0 or not 0 <= self.decay < 1 or not 0 <= self.after < self.wait:
            raise UsageError(
                f"select 'reward_std': needs beta {self.beta:g} >= 0, decay {self.decay:g} in [0, 1) and "
                f"0 <= after {self.after} < wait {self.wait}"
            )
        if self.least < 0 or self.rounds < 1:
            raise UsageError(f"select 'reward_std': needs least {self.least:g} >= 0 and rounds {self.rounds} >= 1")

    @property
    def threshold(self) -> float:
        """Of the step that is under way."""
        if self._done < self.wait or not self._counted:
            return self.least
        # The plain mean has the last of the waiting steps in it already.
        late = self._done > self.wait and self._last is not None
        mean = self.decay * self._mean + (1 - self.decay) * (self._last or 0.0) if late else self._mean
        return max(self.beta * mean, self.least)

    def keep(self, batch: Batch) -> Bool[Tensor, "N"]:
        """Return which samples of a round are kept; what it saw counts when the step's batch is selected from."""
        sigma, measured, here = self._spread(batch)
        self._seen += here
        return ~measured | (sigma >= self.threshold)

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        sigma, measured, here = self._spread(batch)
        bound = self.threshold
        keep = ~measured | (sigma >= bound)
        # Of a step in several rounds, every prompt counts, not those alone that are left.
        here, self._seen = self._seen or here, []
        self._kept = sum(s >= bound for s in here) / len(here) if here else 1.0
        if self._done > self.wait and self._counted and self._last is not None:
            self._mean = self.decay * self._mean + (1 - self.decay) * self._last
        self._done += 1
        mean = sum(here) / len(here) if here else None
        if self.after < self._done <= self.wait and mean is not None:
            self._counted += 1
            self._mean += (mean - self._mean) / self._counted
        self._last = mean
        return keep.to(batch.rewards.dtype)

    def _spread(self, batch: Batch) -> tuple[Float[Tensor, "N"], Bool[Tensor, "N"], list[float]]:
        """Return each sample's sigma, whether it has one, and the sigma of each prompt that has."""
        rewards = outcome(batch)
        sigma = group_std(rewards, batch.prompt_group, batch.active, self.ddof)
        measured = group_count(batch.prompt_group, batch.active, rewards.dtype) > 1
        first = [int((batch.prompt_group == g).nonzero()[0, 0]) for g in batch.prompt_group.unique()]
        return sigma, measured, [float(sigma[i]) for i in first if bool(measured[i])]

    def metrics(self) -> dict[str, float]:
        """``spread/kept``: the share of the step's prompts with a sigma that were kept."""
        return {"spread/kept": self._kept}

    def state_dict(self) -> dict[str, Any]:
        means = {"mean": self._mean, "last": self._last, "counted": self._counted}
        return {"done": self._done, "kept": self._kept, **means}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._done, self._mean = int(state["done"]), float(state["mean"])
        self._last, self._counted = state["last"], int(state["counted"])
        self._kept, self._seen = float(state.get("kept", 1.0)), []
