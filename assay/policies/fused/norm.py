"""RMSNorm in one pass each way.

Written out in tensor operations, as model code has it, the norm reads and writes its input half a dozen times and its
backward pass twice that; on a CPU that is a tenth of a small model's step.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor


class RMSNorm(torch.autograd.Function):
    """y = w x / sqrt(mean(x^2) + epsilon), over the last dimension.

    With n = x / rms(x) and g the gradient of y: dL/dw = sum g n, and dL/dx = (g w - n mean(g w n)) / rms(x).
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, epsilon: float) -> Float[Tensor, "*S D"]:
        inverse = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_().div_(x.shape[-1]).add_(epsilon).rsqrt_()
        normal = x * inverse
        ctx.save_for_backward(normal, inverse, weight)
        return normal * weight

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        normal, inverse, weight = ctx.saved_tensors
        d_weight = (grad * normal).reshape(-1, len(weight)).sum(0) if ctx.needs_input_grad[1] else None
        grad = grad * weight
        along = torch.linalg.vecdot(grad, normal).unsqueeze(-1).div_(normal.shape[-1])
        return torch.addcmul(grad, normal, along, value=-1).mul_(inverse), d_weight, None


@torch.no_grad()
def fuse_norms(model: torch.nn.Module) -> int:
    """Let every float32 RMSNorm of a model that computes just :class:`RMSNorm` use it; return how many do.

    Which ones do is found out by trying: variants that, say, scale by 1 + w give another result and are left alone.
    """
    fused = 0
    for module in model.modules():
        weight = getattr(module, "weight", None)
        epsilon = getattr(module, "variance_epsilon", getattr(module, "eps", None))
        if not type(module).__name__.endswith("RMSNorm") or not isinstance(weight, Tensor) or epsilon is None:
            continue
        if weight.ndim != 1 or weight.dtype != torch.float32:
            continue
        probe = torch.linspace(-2, 3, 2 * len(weight), device=weight.device).sin().view(2, -1) * 3
        # Weights of exactly one would hide a variant that ignores or shifts them.
        trial = weight.clone()
        weight.uniform_(0.5, 1.5, generator=torch.Generator(weight.device).manual_seed(0))
        same = torch.allclose(module(probe), RMSNorm.apply(probe, weight, epsilon), atol=1e-5)
        weight.copy_(trial)
        if same:
            module.forward = MethodType(_forward, module)
            module.fused_epsilon = epsilon
            fused += 1
    return fused


def _forward(self: Any, x: Tensor) -> Tensor:
    return RMSNorm.apply(x, self.weight, self.fused_epsilon)
