"""Ranks the drawings of a group by how much better than the reference the policy explains them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Loss
from assay.errors import UsageError
from assay.registry import part
from assay.signals.drawings.noised import Noised


@part("objective", "group_ranking")
@dataclass(frozen=True, slots=True)
class GroupRanking:
    """A Plackett-Luce loss with soft targets on denoising errors, the group's samples j in order of falling reward.

        e_j = |v - v_theta(x_t)|^2,   s_j = -beta (e_j - e_ref,j),   q_i(j) = softmax over j >= i of r_j / tau
        L = sum_{i<k} [log sum_{m>=i} exp(s_m) - sum_{j>=i} q_i(j) s_j] + gamma e_1,   the mean over groups

    All samples of a group are looked at with one noise level and noise of their own
    (:class:`~assay.signals.drawings.noised.Noised`). With two samples and tau near 0 it is -log sigmoid(s_1 - s_2),
    Diffusion-DPO; e_1, of the best sample alone, keeps what is drawn near what was.

    Args:
        beta: of the scores; 0 is supervised learning of the best.
        tau: temperature of the targets: near 0 only order counts, without end no reward does.
        gamma: of the best sample's error.
        reduce: over a sample's dimensions; the scale of beta goes with it.

    Raises:
        UsageError: beta or gamma below 0, tau not above 0.

    Source: GDRO (arXiv 2601.02036).
    """

    beta: float = 12.0
    tau: float = 0.05
    gamma: float = 0.5
    reduce: Literal["sum", "mean"] = "sum"
    noised: Noised = field(default_factory=Noised, init=False, compare=False)

    reads = "nothing"
    whole_groups = True

    def __post_init__(self) -> None:
        if self.beta < 0 or self.gamma < 0 or not self.tau > 0:
            raise UsageError(
                f"objective 'group_ranking': beta {self.beta:g} and gamma {self.gamma:g} must be 0 or more, "
                f"tau {self.tau:g} above 0"
            )

    @property
    def needs(self) -> frozenset[Noised]:
        return frozenset({self.noised})

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        scale = batch.signals["noised"].shape[1] - 1 if self.reduce == "sum" else 1
        errors = -scale * logprobs[:, 0]
        scores = -self.beta * (errors + scale * batch.signals["reference_logprobs"][:, 0].to(errors))
        total, right, pairs = logprobs.sum() * 0, 0, 0
        found = batch.group[batch.active].unique().tolist()
        for group in found:
            rows = ((batch.group == group) & batch.active).nonzero()[:, 0]
            rows = rows[batch.rewards[rows].argsort(descending=True, stable=True)]
            total = total + ranking_loss(scores[rows], batch.rewards[rows].to(scores), self.tau)
            total = total + self.gamma * errors[rows[0]]
            if len(rows) > 1:
                right += int(scores[rows[0]] > scores[rows[-1]])
                pairs += 1
        groups = batch.totals.groups if batch.totals is not None else len(found)
        metrics = {"error": float(errors.detach()[batch.active].mean()) if found else 0.0}
        if pairs:
            metrics["best_above_worst"] = right / pairs
        return Loss(total / max(groups, 1), metrics)


def ranking_loss(scores: Float[Tensor, "k"], rewards: Float[Tensor, "k"], tau: float) -> Float[Tensor, ""]:
    """sum_{i<k} [log sum_{m>=i} exp(s_m) - sum_{j>=i} q_i(j) s_j], rewards falling; zero for one sample."""
    terms = [
        scores[i:].logsumexp(0) - ((rewards[i:] / tau).softmax(0) * scores[i:]).sum() for i in range(len(scores) - 1)
    ]
    return torch.stack(terms).sum() if terms else scores.sum() * 0
