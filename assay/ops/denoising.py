"""Steps of a rectified flow from noise to data, as pure functions.

Data x0 and noise x1 ~ N(0, I) are joined by x_s = (1 - s) x0 + s x1, s in [0, 1] being the noise level; a network says
the velocity v(x_s, s) ~ x1 - x0. Sampling goes down a grid of levels from 1 to 0. A step with noise is a decision: a
Gaussian over where it leads, whose log-probability a policy gradient can use (Flow-GRPO, arXiv 2505.05470).

Levels and spreads are tensors that broadcast against the states.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from assay.types import Sampler


def grid(steps: int, shift: float = 1.0) -> Tensor:
    """Return ``(K + 1,)`` levels from 1 down to 0, evenly spaced in s; ``shift`` c moves s to c s / (1 + (c - 1) s).

    Args:
        steps: K, at least 1.
        shift: above 1 takes more of the steps where there is much noise.
    """
    s = torch.linspace(1, 0, steps + 1)
    return shift * s / (1 + (shift - 1) * s)


def noised(x0: Tensor, x1: Tensor, level: Tensor) -> Tensor:
    """x_s = (1 - s) x0 + s x1."""
    return (1 - level) * x0 + level * x1


def ends(x: Tensor, v: Tensor, level: Tensor) -> tuple[Tensor, Tensor]:
    """Return what a velocity says of data and noise: x0 = x - s v, x1 = x + (1 - s) v."""
    return x - level * v, x + (1 - level) * v


def step(
    x: Tensor, v: Tensor, level: Tensor, following: Tensor, first: Tensor, noise: Tensor, sampler: Sampler = "sde"
) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of where a step from level s to s' leads; without noise it is x + v (s' - s).

    ``sde``, with d = s' - s < 0 and sd = a sqrt(s / (1 - s)), where s = 1 in the denominator is replaced by ``first``:

        mean = x (1 + sd^2 / (2 s) d) + v (1 + sd^2 (1 - s) / (2 s)) d,    deviation = sd sqrt(-d)

    ``cps``, with sd = s' sin(a pi / 2):

        mean = (1 - s') x0 + sqrt(s'^2 - sd^2) x1,    deviation = sd

    Args:
        x, v: states and their velocities.
        level, following: s and s'.
        first: the grid's first level below 1.
        noise: a.
        sampler: see :data:`assay.types.Sampler`.
    """
    if sampler == "cps":
        sd = following * torch.sin(noise * math.pi / 2)
        x0, x1 = ends(x, v, level)
        return (1 - following) * x0 + (following**2 - sd**2).clamp(min=0).sqrt() * x1, sd
    d = following - level
    sd = noise * (level / (1 - torch.where(level == 1, first, level))).sqrt()
    half = sd**2 / (2 * level)
    return x * (1 + half * d) + v * (1 + half * (1 - level)) * d, sd * (-d).sqrt()


def step_logprob(after: Tensor, mean: Tensor, deviation: Tensor, sampler: Sampler = "sde") -> Tensor:
    """Log-density of a step's outcome ``(N, D)`` as the MEAN over its dimensions, ``(N,)``.

    Of ``cps`` it is -mean (x' - mean)^2, without variance and constants.

    Args:
        after, mean: ``(N, D)``.
        deviation: ``(N, 1)``.
        sampler: which made the step.
    """
    apart = (after - mean) ** 2
    if sampler == "cps":
        return -apart.mean(-1)
    return (-apart / (2 * deviation**2) - deviation.log() - math.log(2 * math.pi) / 2).mean(-1)


def step_kl(mean: Tensor, reference: Tensor, deviation: Tensor) -> Tensor:
    """KL of two steps with the same deviation, ||mean - reference||^2 / (2 deviation^2), summed over dimensions.

    Args:
        mean, reference: ``(..., D)``.
        deviation: ``(...)``.
    """
    return ((mean - reference) ** 2).sum(-1) / (2 * deviation**2)
