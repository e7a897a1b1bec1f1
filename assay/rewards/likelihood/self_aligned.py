"""How much the question explains of a response: one that would follow any question earns nothing."""

from __future__ import annotations

from dataclasses import dataclass

from assay.batch import Batch, Reward
from assay.ops import IMPOSSIBLE, row_mean
from assay.registry import part
from assay.rewards.judged import judged
from assay.signals.alone import AloneLogprobs


@part("reward", "self_aligned")
@dataclass(frozen=True, slots=True)
class SelfAligned:
    """R_i = max((ppl(y_i) - ppl(y_i | x)) / ppl(y_i), -1) = max(1 - exp(mean log pi(y_i) - mean log pi(y_i | x)), -1).

    ppl is the perplexity of the response's learnable tokens under the policy before the update, with its prompt and
    under an empty one. At most 1; 0 where the response does not depend on the question, and for an empty one. A term
    to be added to another; a sample whose verifier failed has none.

    Source: Self-Aligned Reward (arXiv 2509.05489).
    """

    needs = frozenset({AloneLogprobs(), "policy_logprobs"})

    def __call__(self, batch: Batch) -> Reward:
        alone, asked = (
            row_mean(batch.signals[name].clamp(min=IMPOSSIBLE), batch.mask)[:, 0]
            for name in ("alone_logprobs", "policy_logprobs")
        )
        values = (1 - (alone - asked).exp()).clamp(min=-1).to(batch.rewards.dtype)
        terms = {"self_aligned": values, "perplexity": (-asked).exp().to(values.dtype)}
        return Reward(values, valid=judged(batch), terms=terms)
