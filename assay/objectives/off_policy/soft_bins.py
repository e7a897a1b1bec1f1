"""Values of whole actions as sums of what their bins add, drawn to what is found of the action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.batch import Batch, Loss
from assay.errors import UsageError
from assay.ops import aggregate
from assay.registry import part

Margin = Literal["cql", "margin", "none"]


@part("objective", "soft_bins")
@dataclass(frozen=True, slots=True)
class SoftBins:
    """sum_k mean over steps of (Q_k(s, a) - y)^2 + w mean over decisions of [demonstrated] sum_k m(A_k,i, b_i).

        cql:     m = max(0, tau log sum_{b != b_i} exp(A[b] / tau) - A[b_i])
        margin:  m = mean over b != b_i of max(0, A[b] - A[b_i])

    y and which steps are of demonstrations are signals of selection ``soft_bins``; both means are over all that was
    drawn. Advantages are not read.

    Args:
        weight: w, at least 0.
        margin: see above.
        tau: of ``cql``, above 0.

    Raises:
        UsageError: an option out of range; when called, the batch is not of that selection.

    Source: ARSQ (arXiv 2502.00288) and its authors' code.
    """

    weight: float = 1.0
    margin: Margin = "cql"
    tau: float = 0.1

    reads = "nothing"
    live = frozenset({"twin_q", "twin_advantages"})

    def __post_init__(self) -> None:
        if self.weight < 0 or self.tau <= 0:
            raise UsageError(f"objective 'soft_bins': weight {self.weight:g} must be >= 0 and tau {self.tau:g} > 0")

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        if "target" not in batch.signals:
            raise UsageError("objective 'soft_bins' learns from what select 'soft_bins' replays; take that selection")
        target, shown = (batch.signals[name].to(logprobs.device) for name in ("target", "demonstrated"))
        error = ((batch.live["twin_q"] - target[..., None]) ** 2).sum(-1)
        loss = error
        if self.weight and self.margin != "none":
            gap = margins(batch.live["twin_advantages"], batch.tokens, self.margin, self.tau)
            loss = loss + self.weight * torch.where(shown, gap.sum(-1), 0)
        seen = {"bellman/error": error, "bellman/q": batch.live["twin_q"]}
        return Loss(aggregate(loss, batch), {name: value.detach().mean().item() for name, value in seen.items()})


def margins(
    advantages: Float[Tensor, "N T K B"], tokens: Int[Tensor, "N T"], margin: Any, tau: float
) -> Float[Tensor, "N T K"]:
    """How far what was shown is from being best by a margin, see :class:`SoftBins`."""
    chosen = torch.nn.functional.one_hot(tokens, advantages.shape[-1]).bool()[:, :, None].expand_as(advantages)
    own = advantages.masked_fill(~chosen, 0).sum(-1)
    if margin == "cql":
        others = tau * (advantages / tau).masked_fill(chosen, -torch.inf).logsumexp(-1)
        return (others - own).relu()
    return (advantages - own[..., None]).relu().sum(-1) / (advantages.shape[-1] - 1)
