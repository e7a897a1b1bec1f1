"""Drawing tokens from logits: top-k, top-p, and uniforms that belong to a request's seed."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.engines.base import Request, Sampling
from assay.errors import RunError

BLOCK = 256
"""Probabilities that are summed before a block is chosen; see :func:`_invert`."""


def uniforms(request: Request) -> np.ndarray:
    """Return ``(n, max_tokens)`` float64 numbers in [0, 1) that depend on the request's seed alone."""
    return np.random.Generator(np.random.Philox(key=request.seed)).random((request.n, request.sampling.max_tokens))


def sample(
    logits: Float[Tensor, "B V"],
    uniform: Float[Tensor, "B"],
    sampling: Sampling,
    allowed: Bool[Tensor, "B V"] | None = None,
) -> tuple[Int[Tensor, "B"], Float[Tensor, "B"], Float[Tensor, "B"]]:
    """Draw one token per row; return tokens, their log-probabilities, and the entropies of the rows' distributions.

    The latter two are of the whole distribution, however tokens are drawn from it. With z the logits, p their softmax,
    and Z = max z - log max p, the log-probability of t is z_t - Z and the entropy Z - sum p z: the vocabulary is
    exponentiated once.

    Args:
        logits: divided by the temperature already.
        uniform: float64 numbers in [0, 1).
        sampling: its top_k, top_p, and whether its temperature is 0.
        allowed: what there is to choose from, one token or more per row; all if left out.

    Raises:
        RunError: a row holds no distribution.
    """
    probabilities = logits.softmax(-1)
    # Over tens of thousands of tokens, the softmax' own sum is off by some 1e-6, which the entropy would show tenfold.
    total = probabilities.sum(-1)
    normaliser = logits.amax(-1) - probabilities.amax(-1).log() + total.log()
    entropy = normaliser - torch.linalg.vecdot(probabilities, logits) / total
    if not bool(entropy.isfinite().all()):
        # A token whose logit is minus infinity adds nothing: 0 log 0 = 0.
        entropy = normaliser - (probabilities * logits.clamp(min=-1e30)).sum(-1) / total
        if not bool(entropy.isfinite().all()):
            raise RunError("the model gives NaN for probabilities, so its weights have diverged; lower train.lr")
    greedy = sampling.temperature == 0
    if allowed is None and (greedy or (not sampling.top_k and sampling.top_p >= 1.0)):
        token = logits.argmax(-1) if greedy else _invert(probabilities, uniform)
    else:
        logprobs = logits - normaliser[:, None]
        token = draw(logprobs, uniform, greedy, sampling.top_k, sampling.top_p, allowed)
    return token, logits.gather(-1, token[:, None])[:, 0] - normaliser, entropy


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
        # A token stays while the probability before it has not reached top_p; the first always does, of top_p 0 too.
        before = probabilities.cumsum(-1) - probabilities
        stays = before < top_p * probabilities.sum(-1, keepdim=True)
        stays[..., 0] = True
        probabilities = torch.where(stays, probabilities, 0)
    return tokens.gather(-1, _invert(probabilities, uniform)[:, None])[:, 0]


def _invert(probabilities: Float[Tensor, "B V"], uniform: Float[Tensor, "B"], block: int = BLOCK) -> Int[Tensor, "B"]:
    """Return the first index whose cumulative probability exceeds ``uniform`` of the total.

    In a large vocabulary, first the block of tokens is found and then the token in it: sums over blocks are several
    times as fast as a cumulative sum over all.
    """
    vocabulary = probabilities.shape[-1]
    if vocabulary < 8 * block:
        return _first_beyond(probabilities.cumsum(-1), uniform)[0]
    whole = vocabulary // block * block
    sums = probabilities[:, :whole].unflatten(-1, (-1, block)).sum(-1)
    if whole < vocabulary:
        sums = torch.cat([sums, probabilities[:, whole:].sum(-1, keepdim=True)], dim=-1)
    cumulative = sums.cumsum(-1)
    chosen, point = _first_beyond(cumulative, uniform)
    before = torch.where(chosen > 0, cumulative.gather(-1, (chosen - 1).clamp(min=0)[:, None])[:, 0], 0)
    columns = chosen[:, None] * block + torch.arange(block, device=chosen.device)
    inside = probabilities.gather(-1, columns.clamp(max=vocabulary - 1)).masked_fill_(columns >= vocabulary, 0)
    return chosen * block + _search(inside.cumsum(-1), point - before)


def _first_beyond(
    cumulative: Float[Tensor, "B V"], uniform: Float[Tensor, "B"]
) -> tuple[Int[Tensor, "B"], Float[Tensor, "B"]]:
    """Return the first index whose sum exceeds ``uniform`` of the last, and that point."""
    point = (uniform * cumulative[:, -1].double()).to(cumulative.dtype)
    return _search(cumulative, point), point


def _search(cumulative: Float[Tensor, "B V"], point: Float[Tensor, "B"]) -> Int[Tensor, "B"]:
    """Return the first index whose sum exceeds ``point``, which rounding may have brought up to the last sum or beyond.

    Sums are flat where a probability is zero, so such an index is never the first.
    """
    total = cumulative[:, -1]
    point = torch.minimum(point, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulative, point[:, None], right=True)[:, 0]
