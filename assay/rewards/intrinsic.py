"""Rewards that a policy gives itself: for being sure, or for saying what it says most often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from assay.batch import Batch, Reward
from assay.registry import part
from assay.rewards.judged import judged
from assay.rewards.vote import Ballot, Equal
from assay.verify.extract import RULES, Fallback, Rule

Kind = Literal["self_certainty", "token_entropy", "trajectory_entropy", "probability"]

READS: dict[str, str] = {
    "self_certainty": "policy_self_certainty",
    "token_entropy": "policy_entropy",
    "trajectory_entropy": "policy_logprobs",
    "probability": "policy_logprobs",
}


@part("reward", "certainty")
@dataclass(frozen=True, slots=True)
class Certainty:
    """How sure the policy is of response i, over its T_i learnable tokens; detached, and without any reference.

    - ``self_certainty``: (1/T_i) sum_t KL(uniform || pi_t) + log V, before temperature;
    - ``token_entropy``: -(1/T_i) sum_t H(pi_t);
    - ``trajectory_entropy``: (1/T_i) sum_t log pi(o_t), whose expectation is an entropy;
    - ``probability``: prod_t pi(o_t), which prefers the shorter of two responses that are equally sure by token.

    A response without learnable tokens has no reward, nor has a sample whose verifier failed.

    Args:
        kind: see above.
    """

    kind: Kind = "self_certainty"

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({READS[self.kind]})

    def __call__(self, batch: Batch) -> Reward:
        signal = torch.where(batch.mask, batch.signals[READS[self.kind]], 0).to(batch.rewards.dtype)
        total, lengths = signal.sum(-1), batch.lengths
        mean = total / lengths.clamp(min=1)
        values = total.exp() if self.kind == "probability" else -mean if self.kind == "token_entropy" else mean
        values = torch.where(lengths > 0, values, 0)
        return Reward(values, valid=judged(batch) & (lengths > 0), terms={self.kind: values})


@part("reward", "frequency")
class Frequency:
    """R_i = share of the answers to the prompt that say what response i says; 0 without an answer.

    Samples whose verifier failed neither count nor have a reward.

    Args:
        rules, fallback, equal: see :class:`~assay.rewards.vote.Ballot`.
    """

    def __init__(self, rules: tuple[Rule, ...] = RULES, fallback: Fallback = "line", equal: Equal = "same"):
        self.ballot = Ballot(rules, fallback, equal)

    def __call__(self, batch: Batch) -> Reward:
        valid, values, answers = judged(batch), torch.zeros_like(batch.rewards), self.ballot.answers(batch)
        for one in batch.prompt_group[valid].unique():
            rows = ((batch.prompt_group == one) & valid).nonzero()[:, 0].tolist()
            clusters = self.ballot.of(batch, rows, answers).clusters
            given = sum(c >= 0 for c in clusters)
            for i, cluster in zip(rows, clusters, strict=True):
                values[i] = clusters.count(cluster) / given if cluster >= 0 else 0.0
        return Reward(values, valid=valid, terms={"frequency": values})
