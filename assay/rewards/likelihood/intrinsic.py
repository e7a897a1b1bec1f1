"""Rewards that a policy gives itself: for being sure, or for saying what it says most often."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from assay.batch import Batch, Reward
from assay.registry import part
from assay.rewards.judged import judged
from assay.rewards.outcome.vote import Ballot, Equal
from assay.signals.answer_tokens import AnswerTokens
from assay.verify.answer.extract import Fallback, Rule

Kind = Literal["self_certainty", "token_entropy", "trajectory_entropy", "probability", "disparity"]

READS: dict[str, str] = {
    "self_certainty": "policy_self_certainty",
    "token_entropy": "policy_entropy",
    "trajectory_entropy": "policy_logprobs",
    "probability": "policy_logprobs",
    "disparity": "policy_probability_gap",
}


@part("reward", "certainty")
@dataclass(frozen=True, slots=True)
class Certainty:
    """How sure the policy is of response i, over its T_i learnable tokens; detached, and without any reference.

    - ``self_certainty``: (1/T_i) sum_t KL(uniform || pi_t) + log V, before temperature;
    - ``token_entropy``: -(1/T_i) sum_t H(pi_t);
    - ``trajectory_entropy``: (1/T_i) sum_t log pi(o_t), whose expectation is an entropy;
    - ``probability``: prod_t pi(o_t), which prefers the shorter of two responses that are equally sure by token;
    - ``disparity``: the mean over the tokens of the final answer of the probability of the likeliest token less that of
      the second, before temperature; 0 for a response without a marked answer.

    A response without learnable tokens has no reward, nor has a sample whose verifier failed.

    Args:
        kind: see above.
        answer: where the final answer stands, for ``disparity``.
    """

    kind: Kind = "self_certainty"
    answer: AnswerTokens = field(default_factory=AnswerTokens)

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({READS[self.kind], *([self.answer] if self.kind == "disparity" else [])})

    def __call__(self, batch: Batch) -> Reward:
        where, lengths = batch.mask, batch.lengths
        if self.kind == "disparity":
            where = where & batch.signals[self.answer.name]
        total = torch.where(where, batch.signals[READS[self.kind]], 0).to(batch.rewards.dtype).sum(-1)
        mean = total / where.sum(-1).clamp(min=1)
        values = total.exp() if self.kind == "probability" else -mean if self.kind == "token_entropy" else mean
        values = torch.where(lengths > 0, values, 0)
        return Reward(values, valid=judged(batch) & (lengths > 0), terms={self.kind: values})


@part("reward", "frequency")
class Frequency:
    """R_i = share of the answers to the prompt that say what response i says; 0 without an answer.

    Samples whose verifier failed neither count nor have a reward.

    Args:
        rules, fallback, equal: see :class:`~assay.rewards.outcome.vote.Ballot`.
    """

    def __init__(self, rules: tuple[Rule, ...] | None = None, fallback: Fallback = "line", equal: Equal = "same"):
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
