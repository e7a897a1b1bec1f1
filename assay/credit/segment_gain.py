"""Credit for the segments of a response by how much each makes the reference answer likelier."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.batch import Batch
from assay.credit.grpo import GRPO
from assay.registry import build, part
from assay.signals.entropy_steps import EntropySteps
from assay.signals.likelihood import ReferenceLikelihood
from assay.signals.likelihood_value import value
from assay.signals.reasoning import Probed


def segments() -> ReferenceLikelihood:
    return ReferenceLikelihood("steps", required=False, steps=EntropySteps(), name="segment_likelihood")


@part("credit", "segment_gain")
@dataclass(slots=True)
class SegmentGain:
    """A_it = inner_it + alpha (C_k - C_{k-1}) for a token t of segment k; C_k = pi(y* | x, segments 1 to k).

    C_0 is the probability of the reference y* without any reasoning. Tokens after the reasoning, such as an answer,
    belong to no segment; where C is not known (no reference, no room) the difference is 0.

    Source: GRPO-VPS (arXiv 2604.20659).

    Args:
        inner: the other credit (name, table or part already made); the reward less its group's mean by default.
        alpha: weight of the difference.
        by: C: the probability of the reference as a whole, or the mean over its tokens.
        likelihood: what C is made of, and the segments.
    """

    inner: Any = field(default_factory=lambda: GRPO(normalise=False))
    alpha: float = 1.2
    by: Literal["prob", "avg_prob"] = "prob"
    likelihood: ReferenceLikelihood = field(default_factory=segments)

    level = "token"

    def __post_init__(self) -> None:
        self.inner = build("credit", self.inner)

    @property
    def members(self) -> list[Any]:
        return [self.inner]

    @property
    def group_relative(self) -> bool:
        return bool(getattr(self.inner, "group_relative", False))

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.likelihood, Probed(self.likelihood), *getattr(self.inner, "needs", ())})

    @property
    def summary(self) -> dict[str, str]:
        return dict(getattr(self.inner, "summary", {}))

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        chance = value(batch.signals[self.likelihood.name], self.by).to(batch.rewards.dtype)
        gain = spread_gains(chance, batch.signals[f"{self.likelihood.name}_at"], batch.mask.shape[1])
        used = batch.mask & batch.active[:, None]
        return torch.where(used, self.inner(batch) + self.alpha * gain, 0)


def spread_gains(chance: Float[Tensor, "N K"], at: Int[Tensor, "N K"], width: int) -> Float[Tensor, "N T"]:
    """Return chance_k - chance_{k-1} on the tokens [at_{k-1}, at_k), 0 elsewhere and where either is NaN."""
    out = chance.new_zeros(len(chance), width)
    place = torch.arange(width)
    for k in range(1, chance.shape[1]):
        gain = (chance[:, k] - chance[:, k - 1]).nan_to_num(0)
        inside = (place >= at[:, k - 1, None]) & (place < at[:, k, None]) & (at[:, k - 1, None] >= 0)
        out = torch.where(inside, gain[:, None], out)
    return out
