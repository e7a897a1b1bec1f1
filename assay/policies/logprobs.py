"""Log-probabilities of tokens from hidden states, without ever holding all the logits.

Probabilities are computed in float32 whatever the precision of the model: states and weights of bfloat16 are multiplied
into float32 logits, which are never rounded (a logit of 20 would be off by up to 1/16), and what the blocks add to the
gradient of the weights is summed in float32.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.policies import liger

CHUNK_BYTES = 256 * 2**20
"""Largest block of float32 logits held at once."""


@dataclass(frozen=True, slots=True)
class Head:
    """The map from hidden states to logits: z = scale (W h + b), then softcap tanh(z / softcap) where there is one."""

    weight: Float[Tensor, "V D"]
    bias: Float[Tensor, "V"] | None = None
    scale: float = 1.0
    softcap: float | None = None
    compiled: bool = False
    """Fuse the passes over a block of logits into one, see :func:`compiled`."""

    def rows(self, chunk_bytes: int = CHUNK_BYTES) -> int:
        """Return how many hidden states' logits, in float32, are a block of at most ``chunk_bytes``; at least 1."""
        return max(1, chunk_bytes // (4 * len(self.weight)))

    def logits(self, hidden: Float[Tensor, "S D"], temperature: float = 1.0) -> Float[Tensor, "S V"]:
        """Logits divided by ``temperature``, in float32 or better."""
        if at_least_float32(self.weight.dtype) == self.weight.dtype:
            logits = torch.nn.functional.linear(hidden, self.weight, self.bias)
        else:
            logits = _Wide.apply(hidden, self.weight)
            if self.bias is not None:
                logits = logits + self.bias
        if self.scale != 1.0:
            logits = logits * self.scale
        if self.softcap is not None:
            logits = self.softcap * torch.tanh(logits / self.softcap)
        return logits if temperature == 1.0 else logits / temperature


def at_least_float32(dtype: torch.dtype) -> torch.dtype:
    """The precision that probabilities are computed in."""
    return torch.promote_types(dtype, torch.float32)


def wide_product(a: Float[Tensor, "R D"], b: Float[Tensor, "D C"]) -> Float[Tensor, "R C"]:
    """Return a b of matrices of low precision, in float32: what a GPU's units add up in anyway, not rounded after."""
    if a.is_cuda and hasattr(torch.ops.aten.mm, "dtype"):
        return torch.mm(a, b, out_dtype=torch.float32)
    return a.float() @ b.float()


@functools.cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as ``torch.compile`` makes it for inputs of any size, once in a process."""
    return torch.compile(function, dynamic=True)


class _Wide(torch.autograd.Function):
    """h W^T in float32, of states and weights of low precision; gradients pass in that precision."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor) -> Float[Tensor, "S V"]:
        ctx.save_for_backward(hidden, weight)
        return wide_product(hidden, weight.T)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        hidden, weight = ctx.saved_tensors
        grad = grad.to(hidden.dtype)
        return grad @ weight, grad.T @ hidden


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
    for the backward pass; otherwise each block's are computed again there. Where :mod:`assay.policies.liger` has a
    kernel that does the same without blocks, that computes them.
    """
    plain = head.bias is None and head.softcap is None and not entropy
    if liger.fits(hidden, head.weight, plain):
        return liger.fused_logprobs(hidden, head.weight, targets, temperature / head.scale), None
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
    size = head.rows(chunk_bytes)
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
        size = head.rows(chunk_bytes)
        logprobs = torch.empty(len(hidden), dtype=at_least_float32(hidden.dtype), device=hidden.device)
        normaliser = torch.empty_like(logprobs)
        entropies = torch.empty_like(logprobs) if entropy else logprobs.new_zeros(0)
        keep = len(hidden) <= size and any(ctx.needs_input_grad)
        kept = None
        summaries = compiled(_summaries) if head.compiled else _summaries
        for start in range(0, len(hidden), size):
            rows = slice(start, start + size)
            logits = head.logits(hidden[rows], temperature)
            logprobs[rows], normaliser[rows], spread = summaries(logits, targets[rows], entropy)
            if spread is not None:
                entropies[rows] = spread
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
        wide = at_least_float32(weight.dtype)
        d_weight = torch.zeros_like(weight, dtype=wide) if need_weight else None
        d_bias = torch.zeros_like(bias, dtype=wide) if need_bias and bias is not None else None
        slopes = compiled(_slopes) if head.compiled else _slopes
        for start in range(0, len(hidden), ctx.size):
            rows = slice(start, start + ctx.size)
            logits = ctx.kept if ctx.kept is not None else head.logits(hidden[rows], ctx.temperature)
            along = (entropies[rows], grad_entropy[rows]) if ctx.entropy else None
            cap = None if head.softcap is None else ctx.temperature / head.softcap
            factor = head.scale / ctx.temperature
            d_logits = slopes(logits, targets[rows], normaliser[rows], grad[rows], along, cap, factor)
            if d_bias is not None:
                d_bias += d_logits.sum(0)
            d_logits = d_logits.to(hidden.dtype)
            if d_hidden is not None:
                torch.mm(d_logits, weight, out=d_hidden[rows])
            if d_weight is not None and wide == weight.dtype:
                d_weight.addmm_(d_logits.T, hidden[rows])
            elif d_weight is not None:
                d_weight += wide_product(d_logits.T, hidden[rows])
        ctx.kept = None
        return d_hidden, d_weight, d_bias, None, None, None, None, None


def _summaries(
    logits: Float[Tensor, "S V"], targets: Int[Tensor, "S"], entropy: bool
) -> tuple[Float[Tensor, "S"], Float[Tensor, "S"], Float[Tensor, "S"] | None]:
    """Return each target's log-probability, logsumexp(z), and the entropy if asked."""
    normaliser = logits.logsumexp(-1)
    logprobs = logits.gather(-1, targets[:, None])[:, 0] - normaliser
    if not entropy:
        return logprobs, normaliser, None
    probabilities = (logits - normaliser[:, None]).exp_()
    # A token of probability zero has a logit of -inf and adds nothing: 0 log 0 = 0.
    return logprobs, normaliser, normaliser - (probabilities * logits.clamp(min=-1e30)).sum(-1)


def _slopes(
    logits: Float[Tensor, "S V"],
    targets: Int[Tensor, "S"],
    normaliser: Float[Tensor, "S"],
    grad: Float[Tensor, "S"],
    along: tuple[Float[Tensor, "S"], Float[Tensor, "S"]] | None,
    cap: float | None,
    factor: float,
) -> Float[Tensor, "S V"]:
    """Return the gradient of the logits before scale, cap and temperature, in the memory of the logits after them.

    Args:
        grad: of the targets' log-probabilities.
        along: entropies and their gradient, if there is one.
        cap: what logits are multiplied by to give the tanh they came from, if there was one.
        factor: scale over temperature.
    """
    bend = None if cap is None else 1 - (logits * cap) ** 2  # d softcap tanh(z / softcap) / dz = 1 - tanh^2
    logp = logits.sub_(normaliser[:, None])
    if along is not None:  # dH/dz_v = -p_v (log p_v + H); the clamp keeps 0 * -inf from becoming NaN
        entropies, grad_entropy = along
        p = logp.exp()
        d_logits = logp.clamp_(min=-1e4).add_(entropies[:, None]).mul_(grad_entropy[:, None])
        d_logits = d_logits.add_(grad[:, None]).mul_(p).neg_()
    else:
        d_logits = logp.exp_().mul_(-grad[:, None])
    d_logits.scatter_add_(-1, targets[:, None], grad[:, None])
    if bend is not None:
        d_logits *= bend
    if factor != 1.0:
        d_logits *= factor
    return d_logits
