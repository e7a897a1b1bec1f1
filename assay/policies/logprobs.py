"""Log-probabilities of tokens from hidden states, without ever holding all the logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

CHUNK_BYTES = 256 * 2**20
"""Largest block of float32 logits held at once."""


@dataclass(frozen=True, slots=True)
class Head:
    """The map from hidden states to logits: z = scale (W h + b), then softcap tanh(z / softcap) where there is one."""

    weight: Float[Tensor, "V D"]
    bias: Float[Tensor, "V"] | None = None
    scale: float = 1.0
    softcap: float | None = None

    def logits(self, hidden: Float[Tensor, "S D"], temperature: float = 1.0) -> Float[Tensor, "S V"]:
        """Logits divided by ``temperature``, in float32 or better."""
        logits = torch.nn.functional.linear(hidden, self.weight, self.bias)
        logits = logits.to(at_least_float32(logits.dtype))
        if self.scale != 1.0:
            logits = logits * self.scale
        if self.softcap is not None:
            logits = self.softcap * torch.tanh(logits / self.softcap)
        return logits if temperature == 1.0 else logits / temperature


def at_least_float32(dtype: torch.dtype) -> torch.dtype:
    """The precision that probabilities are computed in."""
    return torch.promote_types(dtype, torch.float32)


def token_logprobs(
    hidden: Float[Tensor, "S D"],
    head: Head,
    targets: Int[Tensor, "S"],
    temperature: float = 1.0,
    entropy: bool = False,
    chunk_bytes: int = CHUNK_BYTES,
) -> tuple[Float[Tensor, "S"], Float[Tensor, "S"] | None]:
    """Return log softmax(z / temperature)[target] and, if asked, each distribution's entropy in nats, with gradients.

    Works through blocks of at most ``chunk_bytes`` of logits. If everything fits into one block its logits are kept
    for the backward pass; otherwise each block's are computed again there.
    """
    logprobs, entropies = _TokenLogprobs.apply(
        hidden, head.weight, head.bias, head, targets, temperature, entropy, chunk_bytes
    )
    return logprobs, entropies if entropy else None


@torch.no_grad()
def token_ranks(
    hidden: Float[Tensor, "S D"], head: Head, targets: Int[Tensor, "S"], chunk_bytes: int = CHUNK_BYTES
) -> Int[Tensor, "S"]:
    """Return how many tokens are likelier than each target: 0 for the likeliest. Holds ``chunk_bytes`` of logits."""
    ranks = torch.empty(len(hidden), dtype=torch.int64, device=hidden.device)
    size = max(1, chunk_bytes // (4 * head.weight.shape[0]))
    for start in range(0, len(hidden), size):
        rows = slice(start, start + size)
        logits = head.logits(hidden[rows])
        ranks[rows] = (logits > logits.gather(-1, targets[rows, None])).sum(-1)
    return ranks


class _TokenLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        head: Head,
        targets: Tensor,
        temperature: float,
        entropy: bool,
        chunk_bytes: int,
    ) -> tuple[Tensor, Tensor]:
        size = max(1, chunk_bytes // (4 * weight.shape[0]))
        logprobs = torch.empty(len(hidden), dtype=at_least_float32(hidden.dtype), device=hidden.device)
        normaliser = torch.empty_like(logprobs)
        entropies = torch.empty_like(logprobs) if entropy else logprobs.new_zeros(0)
        keep = len(hidden) <= size and any(ctx.needs_input_grad)
        kept = None
        for start in range(0, len(hidden), size):
            rows = slice(start, start + size)
            logits = head.logits(hidden[rows], temperature)
            normaliser[rows] = logits.logsumexp(-1)
            logprobs[rows] = logits.gather(-1, targets[rows, None])[:, 0] - normaliser[rows]
            if entropy:
                probabilities = (logits - normaliser[rows, None]).exp_()
                # A token of probability zero has a logit of -inf and adds nothing: 0 log 0 = 0.
                entropies[rows] = normaliser[rows] - (probabilities * logits.clamp(min=-1e30)).sum(-1)
            if keep:
                kept = logits
        ctx.head, ctx.temperature, ctx.entropy, ctx.size, ctx.kept = head, temperature, entropy, size, kept
        ctx.save_for_backward(hidden, weight, bias, targets, normaliser, entropies)
        return logprobs, entropies

    @staticmethod
    def backward(ctx: Any, grad: Tensor, grad_entropy: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, targets, normaliser, entropies = ctx.saved_tensors
        head: Head = ctx.head
        need_hidden, need_weight, need_bias = ctx.needs_input_grad[:3]
        d_hidden = torch.empty_like(hidden) if need_hidden else None
        d_weight = torch.zeros_like(weight) if need_weight else None
        d_bias = torch.zeros_like(bias) if need_bias and bias is not None else None
        for start in range(0, len(hidden), ctx.size):
            rows = slice(start, start + ctx.size)
            logits = ctx.kept if ctx.kept is not None else head.logits(hidden[rows], ctx.temperature)
            cap = None
            if head.softcap is not None:  # d softcap tanh(z / softcap) / dz = 1 - tanh^2
                cap = 1 - (logits * (ctx.temperature / head.softcap)) ** 2
            logp = logits.sub_(normaliser[rows, None])
            if ctx.entropy:  # dH/dz_v = -p_v (log p_v + H); the clamp keeps 0 * -inf from becoming NaN
                p = logp.exp()
                d_logits = logp.clamp_(min=-1e4).add_(entropies[rows, None]).mul_(grad_entropy[rows, None])
                d_logits = d_logits.add_(grad[rows, None]).mul_(p).neg_()
            else:
                d_logits = logp.exp_().mul_(-grad[rows, None])
            d_logits.scatter_add_(-1, targets[rows, None], grad[rows, None])
            if cap is not None:
                d_logits *= cap
            factor = head.scale / ctx.temperature
            if factor != 1.0:
                d_logits *= factor
            d_logits = d_logits.to(hidden.dtype)
            if d_hidden is not None:
                torch.mm(d_logits, weight, out=d_hidden[rows])
            if d_weight is not None:
                d_weight.addmm_(d_logits.T, hidden[rows])
            if d_bias is not None:
                d_bias += d_logits.sum(0)
        ctx.kept = None
        return d_hidden, d_weight, d_bias, None, None, None, None, None
