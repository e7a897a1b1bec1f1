"""Sampled estimators of the Kullback-Leibler divergence between two policies."""

from __future__ import annotations

from typing import Literal

from jaxtyping import Float
from torch import Tensor

Estimator = Literal["k1", "k2", "k3"]


def kl_estimate(
    logprobs: Float[Tensor, "N T"], reference: Float[Tensor, "N T"], estimator: Estimator = "k3"
) -> Float[Tensor, "N T"]:
    """Per-token estimate of KL(pi || reference) from tokens sampled by pi.

    With d = log reference - log pi, for k3 at most 20 (beyond it k3 is constant, without gradient):
    k1 = -d (unbiased, no sign), k2 = d^2 / 2, k3 = exp(d) - d - 1 (unbiased, never negative).
    As a *loss*, k1 has zero expected gradient, k2 has the gradient of KL(pi || reference), k3 that of
    KL(reference || pi). Source: J. Schulman, "Approximating KL divergence" (2020).
    """
    d = reference - logprobs
    if estimator == "k1":
        return -d
    if estimator == "k2":
        return d**2 / 2
    d = d.clamp(max=20)
    return d.exp() - d - 1
