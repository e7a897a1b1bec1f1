"""Rotary position embedding in three passes each way.

Model code negates, concatenates, multiplies twice and adds, and its backward pass does as much again: on a CPU, a
fiftieth of a small model's step.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor

HELPER = "apply_rotary_pos_emb"


class Rotate(torch.autograd.Function):
    """y = x cos + (-x2, x1) sin, where x1 and x2 are the halves of x's last dimension; cos and sin are constants."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        half = x.shape[-1] // 2
        y = x * cos
        y[..., :half].addcmul_(x[..., half:], sin[..., :half], value=-1)
        y[..., half:].addcmul_(x[..., :half], sin[..., half:])
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        half = grad.shape[-1] // 2
        dx = grad * cos
        dx[..., :half].addcmul_(grad[..., half:], sin[..., half:])
        dx[..., half:].addcmul_(grad[..., :half], sin[..., :half], value=-1)
        return dx, None, None


def rotate_both(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> tuple[Tensor, Tensor]:
    """Rotate queries and keys ``(1, H, S, D)`` by cos and sin ``(1, S, D)``; the signature is transformers'."""
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    return Rotate.apply(q, cos, sin), Rotate.apply(k, cos, sin)


@torch.no_grad()
def fuse_rotary(model: torch.nn.Module) -> int:
    """Let every float32 attention layer whose rotation is just :class:`Rotate` use it; return how many do.

    transformers' layers call a helper of their module. A layer gets its own ``forward`` with that name bound to ours,
    if the two agree on a trial; variants that rotate other pairs, or a part of a head, are left alone.
    """
    fused, agrees = 0, dict[Callable[..., Any], bool]()
    for layer in model.modules():
        forward = type(layer).forward
        helper = getattr(forward, "__globals__", {}).get(HELPER)
        if not isinstance(forward, FunctionType) or HELPER not in forward.__code__.co_names or helper is None:
            continue
        if any(p.dtype != torch.float32 for p in layer.parameters()):
            continue
        if helper not in agrees:
            agrees[helper] = _agrees(helper)
        if agrees[helper]:
            own = FunctionType(
                forward.__code__,
                {**forward.__globals__, HELPER: rotate_both},
                forward.__name__,
                forward.__defaults__,
                forward.__closure__,
            )
            own.__kwdefaults__ = forward.__kwdefaults__
            layer.forward = MethodType(own, layer)
            fused += 1
    return fused


def _agrees(helper: Callable[..., Any]) -> bool:
    q, k = (torch.linspace(-2, 3, 2 * 3 * 8).mul(f).sin().view(1, 2, 3, 8) for f in (3, 5))
    angles = torch.linspace(0, 2, 3 * 8).view(1, 3, 8)  # other angles in the two halves, to tell them apart
    cos, sin = angles.cos(), angles.sin()
    try:
        theirs = helper(q, k, cos, sin)
    except (TypeError, ValueError, RuntimeError, AttributeError):
        return False
    return all(torch.allclose(a, b, atol=1e-6) for a, b in zip(theirs, rotate_both(q, k, cos, sin), strict=True))
