"""Drawing tokens from logits: temperature, top-k, top-p, and uniforms that belong to a request's seed."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.engines.base import Request


def uniforms(request: Request) -> np.ndarray:
    """Return ``(n, max_tokens)`` float64 numbers in [0, 1) that depend on the request's seed alone."""
    return np.random.Generator(np.random.Philox(key=request.seed)).random((request.n, request.sampling.max_tokens))


def draw(
    logprobs: Float[Tensor, "B V"],
    uniform: Float[Tensor, "B"],
    greedy: bool = False,
    top_k: int = 0,
    top_p: float = 1.0,
    allowed: Bool[Tensor, "B V"] | None = None,
) -> Int[Tensor, "B"]:
    """Draw one token per row by inverting the cumulative distribution at ``uniform``.

    Args:
        logprobs: normalised log-probabilities after temperature.
        uniform: float64 numbers in [0, 1).
        greedy: take the most likely token instead.
        top_k: keep only the k most likely tokens; 0 keeps all.
        top_p: keep only the smallest set of most likely tokens whose probability reaches this; 1 keeps all.
        allowed: what there is to choose from, one token or more per row; all if left out.
    """
    if allowed is not None:
        # Normalised again: the allowed tokens may be so unlikely that their probabilities round to zero.
        logprobs = logprobs.masked_fill(~allowed, -torch.inf).log_softmax(-1)
    if greedy:
        return logprobs.argmax(-1)
    if not top_k and top_p >= 1.0:
        return _invert(logprobs.exp(), uniform)
    vocabulary = logprobs.shape[-1]
    kept, tokens = logprobs.topk(min(top_k, vocabulary) if top_k else vocabulary, dim=-1)
    probabilities = kept.exp()
    if top_p < 1.0:
        # A token stays while the probability before it has not reached top_p, so the first always does.
        before = probabilities.cumsum(-1) - probabilities
        probabilities = torch.where(before < top_p * probabilities.sum(-1, keepdim=True), probabilities, 0)
    return tokens.gather(-1, _invert(probabilities, uniform)[:, None])[:, 0]


def _invert(probabilities: Float[Tensor, "B V"], uniform: Float[Tensor, "B"]) -> Int[Tensor, "B"]:
    """Return the first index whose cumulative probability exceeds ``uniform`` of the total."""
    cumulative = probabilities.cumsum(-1)  # flat where a probability is zero, so such an index is never the first
    total = cumulative[:, -1]
    point = (uniform * total.double()).to(total.dtype)
    point = torch.minimum(point, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulative, point[:, None], right=True)[:, 0]
