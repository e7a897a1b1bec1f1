"""A flow-matching model of a policy's hidden states: how far a token departs from what right responses do."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


class Sinusoid(torch.nn.Module):
    """Embeds one number: cosines and sines of it at ``frequencies`` rates between 1 and 1/10000, then two layers."""

    def __init__(self, width: int, frequencies: int = 128):
        super().__init__()
        self.rates: Tensor
        rates = torch.exp(-math.log(10_000) * torch.arange(frequencies) / frequencies)
        self.register_buffer("rates", rates, persistent=False)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(2 * frequencies, width), torch.nn.SiLU(), torch.nn.Linear(width, width)
        )

    def forward(self, x: Float[Tensor, "S"]) -> Float[Tensor, "S W"]:
        angles = x[:, None] * self.rates
        return self.layers(torch.cat([angles.cos(), angles.sin()], -1))


class Block(torch.nn.Module):
    """x + gate MLP(norm(x) (1 + scale) + shift), the three made from the context; the gate starts at zero."""

    def __init__(self, width: int):
        super().__init__()
        self.norm = torch.nn.RMSNorm(width, eps=1e-6)
        self.layers = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.SiLU(), torch.nn.Linear(width, width))
        self.modulation = torch.nn.Sequential(torch.nn.SiLU(), torch.nn.Linear(width, 3 * width))

    def forward(self, x: Float[Tensor, "S W"], context: Float[Tensor, "S W"]) -> Float[Tensor, "S W"]:
        shift, scale, gate = self.modulation(context).chunk(3, -1)
        return x + gate * self.layers(self.norm(x) * (1 + scale) + shift)


class Velocity(torch.nn.Module):
    """v(x, t, condition, layer): the velocity field that carries noise at t = 0 to hidden states at t = 1.

    Residual blocks modulated by the sum of the embedded time, layer and condition; the output starts at zero.

    Source: RLFR (arXiv 2510.10201) and its authors' code.

    Args:
        states: width of a hidden state.
        width: of the blocks.
        blocks: how many.
    """

    def __init__(self, states: int, width: int, blocks: int):
        super().__init__()
        self.enter = torch.nn.Linear(states, width)
        self.condition = torch.nn.Linear(states, width)
        self.time, self.layer = Sinusoid(width), Sinusoid(width)
        self.blocks = torch.nn.ModuleList(Block(width) for _ in range(blocks))
        self.norm = torch.nn.RMSNorm(width, eps=1e-6)
        self.modulation = torch.nn.Sequential(torch.nn.SiLU(), torch.nn.Linear(width, 2 * width))
        self.leave = torch.nn.Linear(width, states)
        for module in self.modules():
            if isinstance(module, torch.nn.Linear):
                torch.nn.init.xavier_uniform_(module.weight)
                torch.nn.init.zeros_(module.bias)
        torch.nn.init.zeros_(self.leave.weight)
        for name, parameter in self.named_parameters():
            if "modulation" in name:
                torch.nn.init.zeros_(parameter)

    def forward(
        self,
        x: Float[Tensor, "S D"],
        t: Float[Tensor, "S"],
        condition: Float[Tensor, "S D"],
        layer: float,
    ) -> Float[Tensor, "S D"]:
        context = self.time(t) + self.layer(torch.full_like(t, layer)) + self.condition(condition)
        x = self.enter(x)
        for block in self.blocks:
            x = block(x, context)
        shift, scale = self.modulation(context).chunk(2, -1)
        return self.leave(self.norm(x) * (1 + scale) + shift)


def deviation(
    velocity: Callable[..., Tensor],
    states: Float[Tensor, "S D"],
    condition: Float[Tensor, "S D"],
    layer: float,
    t: Float[Tensor, "S"],
    noise: Float[Tensor, "S D"],
) -> Float[Tensor, "S"]:
    """Mean over dimensions of (v(x_t, t) - u)^2, x_t = t h + (1 - t) n, u = h - n: the flow-matching loss of each
    state.

    Args:
        velocity: called as :class:`Velocity`.
        states, condition: h and what it is conditioned on; constants.
        layer: share of the depth they come from.
        t: in (0, 1).
        noise: n, standard normal.
    """
    x = t[:, None] * states + (1 - t[:, None]) * noise
    return (velocity(x, t, condition, layer) - (states - noise)).square().mean(-1)
