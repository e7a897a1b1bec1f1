"""Losses whose minimiser v of numbers q is near the largest of them: values without a look at unseen actions."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

Form = Literal["chi_square", "total_variation", "xql"]

CLIP = 5.0
"""Of the exponent of ``xql``."""


def f_dvl(d: Float[Tensor, "M"], weight: float, form: Literal["chi_square", "total_variation"]) -> Float[Tensor, "M"]:
    """lambda f(d) - (1 - lambda) d, of d = q - v:

        chi_square:        f(d) = d + d^2 / 4 for d > 0, else 0
        total_variation:   f(d) = max(d, 0)

    Both are convex, and grow as a power of d. The larger lambda the nearer to the largest q the minimiser: that of
    ``total_variation`` is the quantile of q with P(q > v) = (1 - lambda) / lambda, where lambda >= 1/2.

    Args:
        weight: lambda, in (0, 1).

    Source: Dual RL (arXiv 2302.08560), f-DVL. The authors' code has max(d + d^2 / 4, 0) for ``chi_square``, which below
    d = -4 is above 0 and not convex.
    """
    ahead = d.clamp(min=0)
    f = ahead + ahead**2 / 4 if form == "chi_square" else ahead
    return weight * f - (1 - weight) * d


def xql(d: Float[Tensor, "M"], beta: float, clip: float = CLIP) -> Float[Tensor, "M"]:
    """exp(z) - z - 1 with z = min(d / beta, clip), of d = q - v: its minimiser is v = beta log mean exp(q / beta).

    All of it is divided by exp of the batch's largest z (at least -1), as a constant, so that no exponential is large.

    Source: XQL (arXiv 2301.02328), as the authors of Dual RL run it for comparison.
    """
    z = (d / beta).clamp(max=clip)
    top = z.detach().max().clamp(min=-1.0)
    return (z - top).exp() - (z + 1) * (-top).exp()


def value_loss(d: Float[Tensor, "M"], form: Form, weight: float, clip: float = CLIP) -> Float[Tensor, "M"]:
    """Return one of them; ``weight`` is lambda, or beta of ``xql``."""
    return xql(d, weight, clip) if form == "xql" else f_dvl(d, weight, form)


def huber(x: Float[Tensor, "*M"], delta: float = 20.0) -> Float[Tensor, "*M"]:
    """x^2 / 2 up to |x| = delta, and beyond it the line that goes on from there."""
    size = x.abs()
    inner = size.clamp(max=delta)
    return inner**2 / 2 + delta * (size - inner)


def gain_weight(advantage: Float[Tensor, "M"], temperature: float, most: float = 100.0) -> Float[Tensor, "M"]:
    """min(exp(temperature A), most): what a likelihood is weighted with."""
    return torch.exp(temperature * advantage).clamp(max=most)
