"""A normal distribution of actions, whose mean a network says."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.policies.control.networks import Networks
from assay.policies.control.policy import ControlPolicy

LEAST, MOST = -5.0, 2.0
"""Bounds of log sigma."""


class GaussianPolicy(ControlPolicy):
    """a ~ N(tanh m(s), sigma^2), sigma learned and the same in all states; a step is one decision, of log-density

        log pi(a | s) = -sum_d [ (a_d - tanh m_d(s))^2 / (2 sigma_d^2) + log sigma_d + log(2 pi) / 2 ]

    A world takes of an action what lies in [-1, 1]; the density is that of the action as it was drawn. Temperature tau
    makes the variance tau sigma^2, as p^(1/tau) has. The entropy is exact.
    """

    @property
    def per_step(self) -> int:
        return 1

    def made(self) -> torch.nn.Module:
        states, actions = self.sizes
        module = torch.nn.Module()
        module.mean = Networks(1, states, self.config.hidden, actions)
        module.spread = torch.nn.Parameter(torch.zeros(actions))
        return module

    def chance(self, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal(self.sizes[1]).astype(np.float32)

    def distribution(self, states: Float[Tensor, "M S"], temperature: float = 1.0) -> tuple[Tensor, Tensor]:
        """Return means ``(M, A)`` and log sigma ``(A,)``."""
        module: Any = self.module
        return module.mean(states)[0].tanh(), module.spread.clamp(LEAST, MOST) + math.log(temperature) / 2

    def decide(
        self, states: Float[Tensor, "M S"], chance: np.ndarray, temperature: float
    ) -> tuple[Int[Tensor, "M P"], Float[Tensor, "M A"], Float[Tensor, "M P"]]:
        mean, log_sigma = self.distribution(states, temperature or 1.0)
        noise = torch.from_numpy(chance).to(mean) if temperature else torch.zeros_like(mean)
        actions = mean + log_sigma.exp() * noise
        tokens = torch.zeros(len(states), 1, dtype=torch.int64, device=states.device)
        return tokens, actions, density(actions, mean, log_sigma)[:, None]

    def read(
        self,
        states: Float[Tensor, "M S"],
        actions: Float[Tensor, "M A"],
        tokens: Int[Tensor, "M P"],
        live: Collection[str],
        temperature: float,
    ) -> tuple[Float[Tensor, "M P"], dict[str, Tensor]]:
        mean, log_sigma = self.distribution(states, temperature)
        entropy = (log_sigma + (1 + math.log(2 * math.pi)) / 2).sum().expand(len(states), 1)
        return density(actions, mean, log_sigma)[:, None], {"entropy": entropy} if "entropy" in live else {}


def density(
    actions: Float[Tensor, "M A"], mean: Float[Tensor, "M A"], log_sigma: Float[Tensor, "A"]
) -> Float[Tensor, "M"]:
    """The log-density of a normal distribution of independent dimensions."""
    z = (actions - mean) / log_sigma.exp()
    return -(z**2 / 2 + log_sigma + math.log(2 * math.pi) / 2).sum(-1)
