"""Rewards for the steps of a response by what each adds to the accuracy of an answer given right after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.probes import CLOSED, probes_of


@part("reward", "step_gains")
@dataclass(frozen=True, slots=True)
class StepGains:
    """weight r_k on the last learnable token of step k, and R_i = outcome times the verdict's score for the answer.

    A_0 ... A_n are the accuracies that the rollout ``probed`` found at n + 1 places of the response, step k what stands
    between places k - 1 and k, and d_k = A_k - A_{k-1}. What stands before the first place earns nothing.

        r_k = d_k                           if |d_k| >= threshold
        r_k = discount^q d_{k+q}            otherwise, q >= 1 the least with |d_{k+q}| >= threshold
        r_k = 0                             if there is no such q up to ``lookahead``

    A step whose d is not known earns nothing, and no step before it looks beyond it. A response without probes earns
    R_i alone. A sample whose verifier abstained has no reward.

    Source: VSRM (arXiv 2508.10293) and its implementation, which puts r_k on the first token of step k.

    Args:
        weight: of the steps.
        outcome: of the answer.
        discount: in [0, 1].
        lookahead: steps; 0 leaves r_k = d_k.
        threshold: least change that counts, above 0.
        unclosed: added to R_i where the thought did not end by itself.

    Raises:
        UsageError: an option out of range.
    """

    weight: float = 1.0
    outcome: float = 1.0
    discount: float = 0.7
    lookahead: int = 4
    threshold: float = 1e-5
    unclosed: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.discount <= 1 or self.lookahead < 0 or not self.threshold > 0:
            raise UsageError(
                f"reward 'step_gains': discount {self.discount:g} must be in [0, 1], lookahead {self.lookahead} not "
                f"negative and threshold {self.threshold:g} above 0"
            )

    def __call__(self, batch: Batch) -> Reward:
        tokens = torch.zeros_like(batch.advantages)
        answer = torch.zeros_like(batch.rewards)
        open_ = torch.zeros_like(batch.rewards)
        for i, (episode, verdict) in enumerate(zip(batch.episodes, batch.verdicts, strict=True)):
            answer[i] = verdict.score
            open_[i] = float(not episode.meta.get(CLOSED, True))
            probes = probes_of(episode)
            gains = spread([p.accuracy for p in probes], self.discount, self.lookahead, self.threshold)
            for k, gain in enumerate(gains, start=1):
                learned = batch.mask[i, probes[k - 1].at : probes[k].at].nonzero()
                if len(learned):
                    tokens[i, probes[k - 1].at + int(learned[-1, 0])] = self.weight * gain
        valid = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        terms = {"steps": tokens.sum(-1), "answer": answer, "unclosed": open_}
        return Reward(self.outcome * answer + self.unclosed * open_, tokens, valid, terms)


def spread(accuracy: Sequence[float], discount: float, lookahead: int, threshold: float) -> list[float]:
    """Return r_1 ... r_n for A_0 ... A_n, NaN where unknown; see :class:`StepGains`."""
    gains = [b - a for a, b in pairwise(accuracy)]
    out = []
    for k, gain in enumerate(gains):
        if abs(gain) >= threshold:
            out.append(gain)
            continue
        found = 0.0
        for q, later in enumerate(gains[k + 1 : k + 1 + lookahead], start=1):
            if gain != gain or later != later:
                break
            if abs(later) >= threshold:
                found = discount**q * later
                break
        out.append(found)
    return out
