"""How likely a response is under a slow copy of the policy."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.policies.combined.averaged import AveragedCopy
from assay.registry import part
from assay.signals.base import Models


@part("signal", "averaged_logprobs")
@dataclass(frozen=True)
class AveragedLogprobs:
    """Signal ``averaged_logprobs`` ``(N, T)``: log pi_phi(y_t | x, y_<t) of the tokens of a response.

    phi are the policy's weights when RL began, and after every ``every`` steps' updates
    phi <- (1 - rate) phi + rate theta, see :class:`~assay.policies.combined.averaged.AveragedCopy`.

    Args:
        rate: in [0, 1].
        every: steps, at least 1.
        temperature: divides the logits, above 0; that of sampling if ``None``.

    Raises:
        UsageError: an option out of range.

    Source: GRPO-CARE (arXiv 2506.16141) and its authors' code, whose copy keeps .995 of itself every 10 steps.
    """

    rate: float = 0.005
    every: int = 10
    temperature: float | None = 1.0
    _copy: AveragedCopy = field(default_factory=AveragedCopy, init=False, repr=False, compare=False)

    name = "averaged_logprobs"
    trains_model = True

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1 or self.every < 1 or (self.temperature is not None and self.temperature <= 0):
            raise UsageError(
                f"signal 'averaged_logprobs': rate {self.rate:g} must lie in [0, 1], every {self.every} be at least 1, "
                "and temperature above 0"
            )

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N T"]:
        heat = models.temperature if self.temperature is None else self.temperature
        there = replace(models, policy=self._copy.policy, temperature=heat)
        return there.quantities(batch, {"logprobs"})["logprobs"]

    def start(self, models: Models) -> None:
        """Copy the policy."""
        self._copy.start(models.policy)

    def learn(self, batch: Batch, models: Models) -> dict[str, float]:
        """Move phi, if it is time; no metrics."""
        self._copy.follow(models.policy, self.rate, self.every)
        return {}

    def state_dict(self) -> dict[str, Any]:
        return self._copy.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._copy.load_state_dict(state)
