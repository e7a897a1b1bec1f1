"""Causal attention of padded rows: the library's kernel, or plain matrix products where those win.

On a CPU the fused kernel works in blocks made for long rows. For rows of a few dozen tokens, which is what a short
answer is, two matrix products and a softmax take half its time, forward and backward together.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

SHORT = 64
"""Longest rows for which scores are written out, ``4 N H L^2`` bytes of them."""


def causal(q: Tensor, k: Tensor, v: Tensor, scale: float | None, window: int | None = None) -> Tensor:
    """Causal attention of right-padded rows: q ``(N, H, L, D)``, k and v ``(N, H_kv, L, D)``, gives ``(N, H, L, D)``.

    Token i sees tokens j <= i, with a ``window`` only those where i - j < window.
    """
    length = q.shape[2]
    if window is not None and window >= length:
        window = None
    if q.device.type == "cpu" and q.dtype == torch.float32 and length <= SHORT:
        return short_causal(q, k, v, q.shape[-1] ** -0.5 if scale is None else scale, window)
    near = None
    if window is not None:
        near = torch.ones(length, length, dtype=torch.bool, device=q.device).tril().triu(1 - window)
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=near, is_causal=near is None, scale=scale, enable_gqa=q.shape[1] != k.shape[1]
    )


def short_causal(q: Tensor, k: Tensor, v: Tensor, scale: float, window: int | None) -> Tensor:
    """As :func:`causal`, with the scores written out."""
    n, heads, length, dim = q.shape
    shared = heads // k.shape[1]
    hidden = q.new_full((length, length), -torch.inf).triu_(1)
    if window is not None:
        hidden += q.new_full((length, length), -torch.inf).tril_(-window)
    # Query heads that share a key head stand below each other, so that keys and values need not be repeated.
    out = ShortAttention.apply(
        q.reshape(-1, shared * length, dim),
        k.reshape(-1, length, dim),
        v.reshape(-1, length, dim),
        hidden.repeat(shared, 1),
        scale,
    )
    return out.view(n, heads, length, dim)


class ShortAttention(torch.autograd.Function):
    """softmax(scale q k^T + bias) v, for q ``(B, R, D)``, k and v ``(B, L, D)``, bias ``(R, L)``.

    With p the softmax and g the gradient of the result: dv = p^T g; with s = scale p (g v^T - rowsum(p g v^T)),
    dq = s k and dk = s^T q.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor, scale: float) -> Float[Tensor, "B R D"]:
        weights = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=scale).softmax(-1)
        ctx.save_for_backward(q, k, v, weights)
        ctx.scale = scale
        return torch.bmm(weights, v)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        q, k, v, weights = ctx.saved_tensors
        d_weights = torch.bmm(grad, v.transpose(1, 2))
        along = torch.linalg.vecdot(d_weights, weights).unsqueeze(-1)
        d_scores = d_weights.sub_(along).mul_(weights).mul_(ctx.scale)
        return (
            torch.bmm(d_scores, k),
            torch.bmm(d_scores.transpose(1, 2), q),
            torch.bmm(weights.transpose(1, 2), grad),
            None,
            None,
        )
