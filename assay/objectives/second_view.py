"""Distil what a teacher says of the student's own responses: a divergence of two distributions at every position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Loss
from assay.errors import UsageError
from assay.ops import IMPOSSIBLE, Aggregation, aggregate, log_ratio, masked_mean
from assay.ops.divergence import Rest, bucketed, divergence
from assay.signals.reread.second_view import SecondView


@dataclass(frozen=True, slots=True)
class Distilled:
    """L = Agg(w_it D(pi(. | x, y_<t) || sg q(. | x', y_<t))), q the teacher of a second view; advantages are not used.

    D is a divergence of the two distributions over the view's tokens and the rest, see
    :func:`assay.ops.divergence.divergence`. Its gradient is taken through pi alone, not through which y is sampled.
    With the response's ``own`` tokens it is the sampled reverse divergence sg[log pi - log q] log pi(y_t). With tokens
    ``drawn`` from the teacher it is their cross-entropy, - mean log pi(c).

    w_it = min(pi / pi_old, ``weight_cap``) of the sampled token, constant, makes up for an older policy's samples.

    Args:
        view: the second view.
        alpha: 1 for the reverse divergence, 0 for the forward, between for Jensen-Shannon.
        rest: what becomes of tokens that are not among the view's.
        weight_cap: at least 1; ``None`` for w = 1.
        aggregation: of token losses, see :func:`assay.ops.aggregate`.

    Raises:
        UsageError: alpha outside [0, 1], a cap below 1, or an alpha that samples cannot give.
    """

    view: SecondView
    alpha: float = 1.0
    rest: Rest = "bucket"
    weight_cap: float | None = 2.0
    aggregation: Aggregation = "token_mean"

    reads = "nothing"
    ignores_rewards = True
    live = frozenset({"candidate_logprobs"})

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1 or (self.weight_cap is not None and self.weight_cap < 1):
            raise UsageError(
                f"distillation from a second view: alpha {self.alpha:g} must lie in [0, 1] and weight_cap "
                f"{self.weight_cap} be at least 1"
            )
        only = {"own": 1.0, "drawn": 0.0}.get(self.view.tokens, self.alpha)
        if self.alpha != only:
            raise UsageError(
                f"distillation from a second view: with tokens = {self.view.tokens!r} alpha must be {only:g}, not "
                f"{self.alpha:g}; other divergences need the likeliest tokens"
            )

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.view})

    @property
    def weighs_older(self) -> bool:
        """Whether it makes up for an older policy's samples by itself."""
        return self.weight_cap is not None

    def costs(self, batch: Batch) -> Float[Tensor, "N T"]:
        """Return D at every position, with a gradient, before weights."""
        student = batch.live["candidate_logprobs"].clamp(min=IMPOSSIBLE)
        teacher = batch.signals["teacher_logprobs"].to(student)
        if self.view.tokens == "own":
            return ((student - teacher.clamp(min=IMPOSSIBLE)).detach() * student)[..., 0]
        if self.view.tokens == "drawn":
            return -student.mean(-1)
        return divergence(bucketed(student, self.rest), bucketed(teacher, self.rest), self.alpha)

    def weights(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Float[Tensor, "N T"]:
        """Return w."""
        if self.weight_cap is None:
            return torch.ones_like(logprobs)
        gap = log_ratio(logprobs.detach().clamp(min=IMPOSSIBLE), batch.logprobs.to(logprobs), batch.mask)
        return gap.exp().clamp(max=self.weight_cap)

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        costs, weights = self.costs(batch), self.weights(logprobs, batch)
        metrics = self.metrics(costs, batch)
        return Loss(aggregate(weights * costs, batch, self.aggregation), metrics)

    def metrics(self, costs: Float[Tensor, "N T"], batch: Batch) -> dict[str, float]:
        """``reread/divergence``: the mean of D over tokens that are learned from."""
        used = batch.mask & batch.active[:, None]
        return {"reread/divergence": float(masked_mean(costs.detach(), used))}

    @property
    def summary(self) -> dict[str, str]:
        """What the table of methods says of it."""
        words = {1.0: "reverse KL", 0.0: "forward KL"}
        return {
            "ratio": f"{words.get(self.alpha, f'JSD {self.alpha:g}')} to a second view",
            "clip": "none" if self.weight_cap is None else f"weight at most {self.weight_cap:g}",
            "aggregation": self.aggregation.replace("_", " "),
        }
