"""Liger's fused linear log-probabilities, where they fuse something.

``LigerFusedLinearScaledCrossEntropyFunction`` (liger-kernel 0.8.5) gives each token's negative log-probability under a
temperature, and its backward pass takes each token's own gradient. On a Hopper GPU and in bfloat16 it is one kernel
that never writes logits to memory. On anything else it is a loop over blocks of 512 tokens in PyTorch that rounds
logits to the model's precision, and there :mod:`assay.policies.logprobs` stays. So it does for output layers with a
bias or a cap on logits, which the kernel does not know, and for entropies, which it rounds to bfloat16.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

HOPPER = (9, 0)


def fits(hidden: Float[Tensor, "S D"], weight: Float[Tensor, "V D"], plain: bool) -> bool:
    """Whether the kernel computes what is wanted, on this GPU, and was seen to do it right.

    Args:
        hidden, weight: of the output layer.
        plain: it has neither a bias nor a cap, and no entropies are asked for.
    """
    if not (plain and hidden.is_cuda and hidden.dtype == weight.dtype == torch.bfloat16 and len(hidden)):
        return False
    return torch.cuda.get_device_capability(hidden.device) == HOPPER and _works(hidden.device)


def fused_logprobs(
    hidden: Float[Tensor, "S D"], weight: Float[Tensor, "V D"], targets: Int[Tensor, "S"], temperature: float
) -> Float[Tensor, "S"]:
    """Return log softmax(W h / temperature)[target] in float32, with gradients.

    Raises:
        ImportError: no liger-kernel, or one without this function.
    """
    return -_function().apply(hidden, weight, targets, temperature)


def _function() -> Any:
    from liger_kernel.ops import LigerFusedLinearScaledCrossEntropyFunction

    return LigerFusedLinearScaledCrossEntropyFunction


@functools.cache
def _works(device: torch.device) -> bool:
    """Try the kernel once on a small input; if it is there and does not do it right, the log says so."""
    try:
        _function()
    except ImportError:
        return False
    reason = disagreement(device)
    if reason:
        logging.getLogger(__name__).warning("liger-kernel is not used for log-probabilities: %s", reason)
    return not reason


@torch.enable_grad()
def disagreement(device: torch.device) -> str:
    """Say how the kernel's values and gradients differ from those by the definition; nothing if they do not."""
    generator = torch.Generator().manual_seed(0)
    shapes = ((300, 128), (1000, 128))
    hidden, weight = (torch.randn(s, generator=generator).to(device, torch.bfloat16).requires_grad_() for s in shapes)
    targets = torch.randint(1000, (300,), generator=generator).to(device)
    upstream = torch.randn(300, generator=generator).to(device)
    try:
        found = fused_logprobs(hidden, weight, targets, 3.0)
        gradients = torch.autograd.grad(found, (hidden, weight), upstream)
    except Exception as error:  # compilers and drivers raise whatever they trip over
        return (str(error).strip() or type(error).__name__).splitlines()[0]
    exact = [x.detach().float().requires_grad_() for x in (hidden, weight)]
    wanted = (exact[0] @ exact[1].T / 3.0).log_softmax(-1).gather(-1, targets[:, None])[:, 0]
    pairs = zip((found, *gradients), (wanted, *torch.autograd.grad(wanted, exact, upstream)), strict=True)
    # Logits are sums in float32; their gradients are rounded to bfloat16 on the way into the products.
    for a, b in pairs:
        worst = float((a - b).detach().abs().max() / b.detach().abs().max())
        if not worst <= 2**-6:
            return f"its results differ by {worst:.2g} of the largest"
    return ""
