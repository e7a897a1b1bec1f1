"""How alike what training changed in two models of different sizes is, along the responses of the larger one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from assay.batch import Batch
from assay.engines.shifted import check_tokens
from assay.errors import UsageError
from assay.ops.divergence import bucketed, divergence
from assay.policies.base import Policy
from assay.policies.causal_lm import CausalLM
from assay.policies.combined.logit_sum import logit_sum
from assay.signals.base import Models
from assay.types import Group

STILL = 1e-5
"""Length of a shift that is rounding."""


@dataclass(frozen=True, slots=True)
class ShiftAlignment:
    """Means over the policy's own tokens of the responses.

    Attributes:
        cosine: of the two shifts, over positions where both models have changed; NaN without any.
        divergence: KL of the trained large model from the large one before, in nats.
        left: KL of the trained large model from the large one shifted by the small ones; below ``divergence`` the shift
            brings it nearer.
        covered: share of the tokens that the large model before training likes best where they stand: the paper's path
            coverage rate, of responses that were decoded greedily.
        covered_shifted: the same of that model shifted by the small ones.
        positions: tokens that were looked at.
    """

    cosine: float
    divergence: float
    left: float
    covered: float
    covered_shifted: float
    positions: int


def shift_alignment(
    groups: Sequence[Group],
    trained: Policy,
    base: Policy,
    small_trained: Policy,
    small_base: Policy,
    k: int = 64,
    weight: float = 1.0,
    temperature: float = 1.0,
    token_budget: int = 8192,
) -> ShiftAlignment:
    """Compare the change that training made in a large model with the one it made in a small model.

        d(c) = log p_trained(c | y_<t) - log p_base(c | y_<t),   of either size, over k tokens c, less its mean
        cosine_t = <d_large, d_small> / (|d_large| |d_small|)

    The k tokens are the likeliest under the trained large model; a softmax sees no constant, hence the means.
    Divergences are over these tokens and the rest as one more.

    Args:
        groups: what the trained large model answered, such as ``SingleTurn(sampling).collect(asks, engine, rng)``.
        trained, base: the large policy after and before training.
        small_trained, small_base: the small one, whose tokens are among the large one's.
        k: tokens; of a vocabulary that has fewer, all.
        weight: of the shift in ``left`` and ``covered_shifted``, lambda of S214, above 0.
        temperature: of the distributions.
        token_budget: tokens of a pass.

    Raises:
        UsageError: policies that do not share their tokens, or tree; ``weight`` not above 0; no responses.

    Source: RAST (arXiv 2506.15710), the analyses behind its hypothesis. Its authors' script takes the cosine of plain
    logits of the whole vocabulary.
    """
    if weight <= 0:
        raise UsageError(f"weight {weight:g} of a shift must be above 0")
    if isinstance(base, CausalLM):
        for other in (small_trained, small_base):
            check_tokens(base, other)
    batch = Batch.from_groups(groups, torch.float64)
    candidates: torch.Tensor | None = None
    for rows in trained.micro_batches(batch, token_budget):
        likeliest = trained.likeliest(batch.rows(rows), k)
        if candidates is None:
            candidates = torch.zeros(*batch.tokens.shape, likeliest.shape[-1], dtype=torch.int64)
        candidates[rows, : likeliest.shape[1]] = likeliest
    if candidates is None:
        raise UsageError("shifts are compared on responses, and there are none")
    batch.signals["candidates"] = candidates

    def of(policy: Policy) -> torch.Tensor:
        models = Models(policy, temperature=temperature, token_budget=token_budget)
        found = models.quantities(batch, {"candidate_logprobs"})["candidate_logprobs"]
        return found[batch.mask].double()

    def liked(policy: Policy) -> float:
        """Share of the responses' tokens that are the policy's likeliest."""
        best = torch.zeros_like(batch.tokens)
        for rows in policy.micro_batches(batch, token_budget):
            found = policy.likeliest(batch.rows(rows), 1)[..., 0]
            best[rows, : found.shape[1]] = found.to(best)
        return float((best == batch.tokens)[batch.mask].double().mean())

    # The small shift is what the sum has more than the large model, up to a constant; of a token that is lacking, 0.
    after, before = of(trained), of(base)
    sum_: Any = logit_sum([(base, 1.0), (small_trained, weight), (small_base, -weight)])
    mixed = of(sum_)
    shifts = [d - d.mean(-1, keepdim=True) for d in (after - before, mixed - before)]
    sizes = [d.norm(dim=-1) for d in shifts]
    moved = (sizes[0] > STILL) & (sizes[1] > STILL)
    cosines = (shifts[0] * shifts[1]).sum(-1)[moved] / (sizes[0] * sizes[1])[moved]
    final = bucketed(after)
    return ShiftAlignment(
        float(cosines.mean()),
        float(divergence(final, bucketed(before)).mean()),
        float(divergence(final, bucketed(mixed)).mean()),
        liked(base),
        liked(sum_),
        len(after),
    )
