"""Weights of linear layers laid out for the processor's matrix kernels, for as long as an engine generates.

A decoding step multiplies few rows by every weight of the model. On an x86 CPU, oneDNN's kernels do that a fifth faster
than the default ones when the weight lies in blocks of their liking, and an output layer of tens of thousands of tokens
half as fast again. Laying a weight out costs about as much as multiplying it by a hundred rows, and as much memory as
the weight; it pays only over a whole call, and is undone after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

LEAST_TOKENS = 2048
"""Tokens through the model from which laying its weights out pays."""

MOST_BYTES = 8 * 2**30
"""Weights of more than this are left as they are: their copies would take as much again."""


class PackedLinear:
    """Stands in for a linear layer's ``forward`` where no gradient is wanted: the same result but for rounding.

    A weight is laid out when it is first used, and again when it has been changed in place since.
    """

    def __init__(self, layer: torch.nn.Linear):
        self.layer = layer
        self.version = -1

    def __call__(self, input: Float[Tensor, "*S K"]) -> Float[Tensor, "*S N"]:  # torch's name
        weight, bias = self.layer.weight, self.layer.bias
        if torch.is_grad_enabled() or input.dtype != torch.float32 or not input.numel():
            return F.linear(input, weight, bias)
        if weight._version != self.version:
            self.version = weight._version
            self.packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), None)
        return torch.ops.mkldnn._linear_pointwise(input, self.packed, bias, "none", [], "")


@contextmanager
def packed_linears(model: torch.nn.Module, tokens: int) -> Iterator[None]:
    """Let a model's float32 linear layers on the CPU compute with packed weights inside this context.

    Args:
        tokens: about how many will go through the model; nothing is done unless that pays.
    """
    layers = _plain_layers(model) if pays(model, tokens) else []
    try:
        for layer in layers:
            layer.forward = PackedLinear(layer)  # type: ignore[method-assign]
        yield
    finally:
        for layer in layers:
            vars(layer).pop("forward", None)


def pays(model: torch.nn.Module, tokens: int) -> bool:
    """Whether so many tokens through a model are worth packing its weights, as far as that can and may be done."""
    if tokens < LEAST_TOKENS or not supported():
        return False
    return 0 < sum(4 * layer.weight.numel() for layer in _plain_layers(model)) <= MOST_BYTES


def _plain_layers(model: torch.nn.Module) -> list[torch.nn.Linear]:
    return [m for m in model.modules() if isinstance(m, torch.nn.Linear) and plain(m)]


def plain(module: torch.nn.Linear) -> bool:
    """Whether a module is just a float32 linear layer on the CPU, its ``forward`` nobody else's."""
    if type(module) is not torch.nn.Linear or "forward" in vars(module):
        return False
    weight = module.weight
    return (
        type(weight) in (torch.nn.Parameter, Tensor) and weight.dtype == torch.float32 and weight.device.type == "cpu"
    )


@cache
def supported() -> bool:
    """Whether this machine's torch has the kernels and they give what ``linear`` gives."""
    if not torch.backends.mkldnn.is_available() or not torch.backends.cpu.get_cpu_capability().startswith("AVX"):
        return False
    # Asked for inside inference mode, whose tensors have no version to watch, as a model's weights do.
    with torch.inference_mode(False), torch.no_grad():
        layer = torch.nn.Linear(24, 40)
        layer.weight.copy_(torch.linspace(-1, 1, 24 * 40).mul(7).sin().view(40, 24))
        probe = torch.linspace(-2, 2, 3 * 24).view(3, 24)
        try:
            return torch.allclose(PackedLinear(layer)(probe), F.linear(probe, layer.weight, layer.bias), atol=1e-5)
        except (AttributeError, RuntimeError, NotImplementedError):
            return False
