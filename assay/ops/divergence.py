"""Divergences of two distributions over next tokens, of which the probabilities of some tokens are known."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.ops.losses import IMPOSSIBLE

Rest = Literal["bucket", "renormalise"]


def bucketed(logprobs: Float[Tensor, "*shape k"], rest: Rest = "bucket") -> Float[Tensor, "*shape m"]:
    """Make a distribution of the log-probabilities of k tokens.

    Args:
        logprobs: over the whole vocabulary, so that their exponentials sum to at most 1; those of tokens that are
            impossible may be minus infinity.
        rest: ``bucket`` adds one entry for all other tokens, log(1 - sum_i p_i), at least the precision of the number
            format; ``renormalise`` divides by sum_i p_i.
    """
    known = logprobs.clamp(min=IMPOSSIBLE)
    total = known.logsumexp(-1, keepdim=True)
    if rest == "renormalise":
        return known - total
    # Below this 1 - sum is rounding, and its logarithm's gradient noise.
    least = torch.finfo(known.dtype).eps
    return torch.cat([known, torch.log(-torch.expm1(total.clamp(max=-least)))], -1)


def divergence(
    student: Float[Tensor, "*shape m"], teacher: Float[Tensor, "*shape m"], alpha: float = 1.0
) -> Float[Tensor, "*shape"]:
    """Return a divergence of two distributions given as log-probabilities, with gradients through both.

    With s and t the two, and m = (1 - alpha) s + alpha t:

    - alpha = 1: reverse, KL(s || t) = sum_v s_v log(s_v / t_v);
    - alpha = 0: forward, KL(t || s);
    - between: Jensen-Shannon, (1 - alpha) KL(s || m) + alpha KL(t || m).

    The two ends are not the limits of what lies between, which goes to 0 there.

    Args:
        student, teacher: each sums to 1.
        alpha: in [0, 1].

    Source: generalised Jensen-Shannon divergence as in GKD (arXiv 2306.13649); the ends as in SDPO (arXiv 2601.20802).
    """
    if alpha == 1:
        return _kl(student, teacher)
    if alpha == 0:
        return _kl(teacher, student)
    weights = torch.tensor([1 - alpha, alpha], dtype=student.dtype, device=student.device).log()
    mixed = torch.logaddexp(student + weights[0], teacher + weights[1])
    return (1 - alpha) * _kl(student, mixed) + alpha * _kl(teacher, mixed)


def cross_entropy(student: Float[Tensor, "*shape m"], teacher: Float[Tensor, "*shape m"]) -> Float[Tensor, "*shape"]:
    """-sum_v t_v log s_v of two distributions given as log-probabilities, in nats."""
    p = teacher.exp()
    # 0 times the logarithm of an impossible token is 0, and has no gradient.
    return -(p * torch.where(p > 0, student, 0)).sum(-1)


def _kl(p: Float[Tensor, "*shape m"], q: Float[Tensor, "*shape m"]) -> Float[Tensor, "*shape"]:
    return (p.exp() * (p - q)).sum(-1)
