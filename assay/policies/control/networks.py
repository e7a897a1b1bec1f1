"""The networks of policies and critics of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor


class Networks(torch.nn.Module):
    """K networks of the same layers with rectifiers between them, beside each other, each with weights of its own.

    Args:
        count: K.
        inputs, hidden, outputs: widths.
    """

    def __init__(self, count: int, inputs: int, hidden: Sequence[int], outputs: int):
        super().__init__()
        sizes = [inputs, *hidden, outputs]
        self.weights, self.biases = torch.nn.ParameterList(), torch.nn.ParameterList()
        for before, after in pairwise(sizes):
            bound = 1 / math.sqrt(before)  # as torch's own linear layers begin
            self.weights.append(torch.nn.Parameter(torch.empty(count, before, after).uniform_(-bound, bound)))
            self.biases.append(torch.nn.Parameter(torch.empty(count, 1, after).uniform_(-bound, bound)))

    def forward(self, x: Float[Tensor, "M I"]) -> Float[Tensor, "K M O"]:
        found = x.expand(len(self.weights[0]), *x.shape)
        last = len(self.weights) - 1
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            found = torch.baddbmm(bias, found, weight)
            found = found if i == last else found.relu()
        return found
