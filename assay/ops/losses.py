"""What objectives are made of: log-ratios, estimates of divergences, the reduction of token losses to a number."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch

Aggregation = Literal["token_mean", "sequence_mean", "sequence_sum", "constant"]
Estimator = Literal["k1", "k2", "k3", "k3+"]

IMPOSSIBLE = -1e4
"""Log-probabilities are taken as at least this: a token that became impossible has a finite loss, and no gradient."""


def log_ratio(
    logprobs: Float[Tensor, "N T"], old: Float[Tensor, "N T"], mask: Bool[Tensor, "N T"], limit: float = 20.0
) -> Float[Tensor, "N T"]:
    """log pi - log pi_old on ``mask``, within [-limit, limit] (no gradient at the bounds), zero elsewhere.

    Where pi_old is unknown (NaN: another author's token, or an engine that kept no record) the policy as it stands
    takes its place: the value is 0 and the gradient that of ``logprobs``.
    """
    here = torch.where(mask, logprobs, 0)
    known = torch.where(mask & ~old.isnan(), old, here.detach())
    gap = here - known
    # A token impossible under both (-inf - -inf) says nothing.
    return torch.where(gap.isnan(), 0, gap).clamp(-limit, limit)


def kl_estimate(
    logprobs: Float[Tensor, "N T"], reference: Float[Tensor, "N T"], estimator: Estimator = "k3"
) -> Float[Tensor, "N T"]:
    """Per-token estimate of KL(pi || reference) from tokens sampled by pi.

    With d = log reference - log pi, for k3 at most 20 (beyond it k3 is constant, without gradient):
    k1 = -d (unbiased, no sign), k2 = d^2 / 2, k3 = exp(d) - d - 1 (unbiased, never negative).
    As a *loss*, k1 has zero expected gradient, k2 has the gradient of KL(pi || reference), k3 that of
    KL(reference || pi). ``k3+`` has the value of k3 and the gradient of k2.
    Source: J. Schulman, "Approximating KL divergence" (2020); ``k3+`` as in verl.
    """
    d = reference - logprobs
    if estimator == "k1":
        return -d
    if estimator == "k2":
        return d**2 / 2
    bounded = d.clamp(max=20)
    k3 = bounded.exp() - bounded - 1
    if estimator == "k3":
        return k3
    k2 = d**2 / 2
    return k3.detach() + (k2 - k2.detach())


def aggregate(
    loss: Float[Tensor, "N T"], batch: Batch, mode: Aggregation = "token_mean", max_length: int | None = None
) -> Float[Tensor, ""]:
    """Reduce a per-token loss to a scalar; denominators come from ``batch.totals``, so micro-batches add up.

    With m the mask, w the sample weights and B the number of sequences of the mini-batch:

    - ``token_mean``: sum w m l / sum m (DAPO);
    - ``sequence_mean``: 1/B sum_i w_i (sum_t m l / T_i) (GRPO as first published);
    - ``sequence_sum``: 1/B sum_i w_i sum_t m l;
    - ``constant``: sum w m l / (B max_length) (Dr. GRPO).

    Args:
        loss: ``(N, T)``; values outside the mask are ignored, even NaN.
        batch: supplies mask, weights, validity and totals (its own counts when ``totals`` is unset).
        mode: see above.
        max_length: required by ``constant``.
    """
    totals = batch.totals or batch.count()
    weights = torch.where(batch.active, batch.weights, 0).to(loss.dtype)
    masked = torch.where(batch.mask & batch.active[:, None], loss, 0)
    per_sequence = masked.sum(-1)
    if mode == "token_mean":
        return (weights * per_sequence).sum() / max(totals.tokens, 1.0)
    if mode == "sequence_mean":
        return (weights * per_sequence / batch.lengths.clamp(min=1)).sum() / max(totals.sequences, 1.0)
    if mode == "sequence_sum":
        return (weights * per_sequence).sum() / max(totals.sequences, 1.0)
    if max_length is None:
        raise ValueError("aggregation 'constant' needs max_length")
    return (weights * per_sequence).sum() / (max(totals.sequences, 1.0) * max_length)
