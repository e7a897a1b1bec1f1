"""REINFORCE: the reward itself, less a baseline that is the same for every prompt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops import broadcast, outcome
from assay.registry import part

Baseline = Literal["none", "constant", "batch", "moving"]


@part("credit", "reinforce")
@dataclass(frozen=True, slots=True)
class Reinforce:
    """A_it = R_i - b.

    b is 0 (``none``), ``constant``, the mean reward of the batch (``batch``; it includes one's own reward, which scales
    the expected gradient by (N - 1) / N), or a moving average over the batches *before* this one (``moving``):
    m <- decay m + (1 - decay) mean R, divided by 1 - decay^k after k batches; ``constant`` for the first batch. Being
    older than the samples, ``none``, ``constant`` and ``moving`` leave the expected gradient as it is.

    Source: R. J. Williams, "Simple statistical gradient-following algorithms" (1992).

    Args:
        baseline: see above.
        constant: in units of reward.
        decay: of the moving average, in [0, 1).

    Raises:
        UsageError: ``decay`` outside [0, 1).
    """

    baseline: Baseline = "none"
    constant: float = 0.0
    decay: float = 0.9
    _average: dict[str, float] = field(
        default_factory=lambda: {"value": 0.0, "batches": 0}, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not 0 <= self.decay < 1:
            raise UsageError(f"credit 'reinforce': decay {self.decay:g} is outside [0, 1)")

    @property
    def summary(self) -> dict[str, str]:
        words = {"none": "none", "constant": f"{self.constant:g}", "batch": "batch mean", "moving": "moving average"}
        return {"baseline": words[self.baseline], "normalisation": "none"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards = outcome(batch)
        mine = rewards[batch.active]
        mean = mine.mean().item() if len(mine) else 0.0
        return broadcast(rewards - self._value(mean, len(mine) > 0), batch)

    def _value(self, mean: float, any_active: bool) -> float:
        """The baseline for this batch; the moving average then takes the batch in."""
        if self.baseline == "none":
            return 0.0
        if self.baseline != "moving":
            return mean if self.baseline == "batch" else self.constant
        seen = int(self._average["batches"])
        value = self._average["value"] / (1 - self.decay**seen) if seen else self.constant
        if any_active:
            self._average["value"] = self.decay * self._average["value"] + (1 - self.decay) * mean
            self._average["batches"] = seen + 1
        return value

    def state_dict(self) -> dict[str, Any]:
        return dict(self._average)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._average.update(state)
