"""A reward, and more of it where the reasoning makes its own answer likelier than others' does theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.ops import group_mean, row_mean
from assay.registry import build, part
from assay.rewards.spec import reward_of
from assay.signals.answer_tokens import AnswerTokens
from assay.signals.likelihoods.averaged import AveragedLogprobs
from assay.types import Task


@part("reward", "consistency_bonus")
@dataclass(frozen=True, slots=True)
class ConsistencyBonus:
    """R_i = r_i + ``bonus`` r_i where i is of S and p_i >= mean over S of p_j, less ``margin``; else r_i

        p_i = min(exp(mean over the answer's tokens of log pi_phi(y_t | x, y_<t)), ``cap``)
        S = the samples of a group with an answer, r_i > ``least`` and r_i >= the group's mean of r

    r is another reward, and phi a slow copy of the policy. A response without an answer has no p and no bonus.

    Terms: ``task``, which is r; ``bonus``; ``support``, which is p, 0 without an answer.

    Args:
        reward: r.
        bonus, margin, least: at least 0.
        cap: in (0, 1]; answers at least that likely are all alike.
        slow: options of :class:`~assay.signals.likelihoods.averaged.AveragedLogprobs`.
        answer: which tokens are the answer's, see :class:`~assay.signals.answer_tokens.AnswerTokens`.

    Raises:
        UsageError: an option out of range.

    Source: GRPO-CARE (arXiv 2506.16141) and its authors' code.
    """

    reward: Any = "verdict"
    bonus: float = 0.5
    cap: float = 0.95
    margin: float = 0.01
    least: float = 0.1
    slow: Any = field(default_factory=AveragedLogprobs)
    answer: Any = field(default_factory=AnswerTokens)

    def __post_init__(self) -> None:
        if min(self.bonus, self.margin, self.least) < 0 or not 0 < self.cap <= 1:
            raise UsageError(
                f"reward 'consistency_bonus': bonus {self.bonus:g}, margin {self.margin:g} and least {self.least:g} "
                f"must be at least 0, and cap {self.cap:g} in (0, 1]"
            )
        object.__setattr__(self, "reward", reward_of(self.reward))
        for name, kind in (("slow", "averaged_logprobs"), ("answer", "answer_tokens")):
            if isinstance(getattr(self, name), dict):
                object.__setattr__(self, name, build("signal", {"name": kind, **getattr(self, name)}))

    @property
    def members(self) -> list[Any]:
        return [self.reward]

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.slow, self.answer, *getattr(self.reward, "needs", ())})

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        getattr(self.reward, "check_tasks", lambda _: None)(tasks)

    def __call__(self, batch: Batch) -> Reward:
        found: Reward = self.reward(batch)
        told = batch.valid if found.valid is None else found.valid
        tokens = batch.signals[self.answer.name]
        means = row_mean(batch.signals[self.slow.name], tokens)[:, 0]
        support = torch.where(tokens.any(1), means.exp().clamp(max=self.cap), 0).to(found.values)
        paid = self.paid(found.values, support, tokens.any(1) & told, told, batch.group)
        extra = torch.where(paid, self.bonus * found.values, 0)
        terms = {**found.terms, "task": found.values, "bonus": extra, "support": support}
        return Reward(found.values + extra, found.tokens, found.valid, terms)

    def paid(
        self, r: Tensor, support: Tensor, answered: Bool[Tensor, "N"], told: Bool[Tensor, "N"], group: Tensor
    ) -> Bool[Tensor, "N"]:
        """Return who has the bonus.

        Args:
            r, support, group: ``(N,)``, see above.
            answered: there is a reward, and an answer.
            told: there is a reward.
        """
        chosen = answered & (r > self.least) & (r >= group_mean(r, group, told))
        return chosen & (support >= group_mean(support, group, chosen) - self.margin)
