"""PPO's clipped surrogate over denoising steps, with a divergence from the reference that needs no samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.policy_loss import PolicyLoss, Ratios
from assay.ops import Aggregation, masked_mean
from assay.ops.denoising import step_kl
from assay.registry import part


@part("objective", "denoising")
@dataclass(frozen=True, slots=True)
class DenoisingSurrogate(ClippedSurrogate):
    """The surrogate ``clip`` of each noisy step, plus ``guard`` times its divergence from the reference policy's step.

    Both are Gaussians with the same deviation, so that the divergence is known:

        KL = |mean - mean_ref|^2 / (2 deviation^2)          ``exact``, summed over a sample's dimensions
        mean (mean - mean_ref)^2 / (2 sd^2)                  ``code``, deviation = sd sqrt(s - s'): without the step

    Args:
        guard: weight of the divergence; 0 computes no reference pass.
        divergence: which.

    Raises:
        UsageError: a step without noise, which has no divergence: the last one of the sampler ``cps``.

    Source: Flow-GRPO (arXiv 2505.05470), equation of its KL term; ``code`` as in its implementation, whose clip range
    of 1e-4 is the default.
    """

    aggregation: Aggregation = "sequence_mean"
    clip_low: float = 1e-4
    clip_high: float = 1e-4
    guard: float = 0.0
    divergence: Literal["exact", "code"] = "exact"

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({*PolicyLoss.needs.__get__(self), *({"reference_step_mean"} if self.guard else ())})

    @property
    def live(self) -> frozenset[str]:
        own = {"step_mean", "step_deviation"} if self.guard else set()
        return frozenset({*PolicyLoss.live.__get__(self), *own})

    @property
    def zero_advantage_is_idle(self) -> bool:
        return not self.guard and PolicyLoss.zero_advantage_is_idle.__get__(self)

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        loss, metrics = ClippedSurrogate.surrogate(self, r)
        if self.guard:
            kl = self.apart(r.batch, r.mask)
            metrics["kl/guard"] = masked_mean(kl.detach(), r.mask)
            loss = loss + self.guard * kl
        return loss, metrics

    def apart(self, batch: Batch, mask: Tensor) -> Float[Tensor, "N T"]:
        """Return the divergence of each step, 0 outside the mask."""
        deviation = torch.where(mask, batch.live["step_deviation"], 1.0)
        if bool((deviation == 0).any()):
            raise UsageError(
                "objective 'denoising': a step without noise has no divergence; end the window of noisy steps before "
                "the last one, or set sampler=sde"
            )
        mean = batch.live["step_mean"]
        kl = step_kl(mean, batch.signals["reference_step_mean"].to(mean), deviation)
        if self.divergence == "code":
            kl = kl * _lengths(batch).to(kl) / mean.shape[-1]
        return torch.where(mask, kl, 0.0)


def _lengths(batch: Batch) -> Float[Tensor, "N T"]:
    """Return s - s' of every noisy step."""
    found = np.zeros(batch.tokens.shape, dtype=np.float32)
    for row, episode in enumerate(batch.episodes):
        if episode.drawing is not None:
            levels, taken = episode.drawing.levels, episode.drawing.taken
            found[row, : len(taken)] = levels[taken] - levels[taken + 1]
    return torch.from_numpy(found)
