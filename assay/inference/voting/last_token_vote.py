"""Majority vote in which each response weighs as much as its own verdict on itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from assay.batch import Batch
from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.inference.base import Answer, Budget
from assay.inference.meter import Meter
from assay.policies.base import Policy
from assay.registry import part
from assay.signals.last_token import finished
from assay.types import Ask, Group, Task
from assay.verify.answer.extract import extract


def weighted_vote(answers: Sequence[str | None], weights: Sequence[float]) -> int:
    """Return the first response whose answer has the largest sum of weights; a missing answer (``None``) has no vote.

    With equal weights it is the majority vote. Where there is no answer at all it is the first response.

    Raises:
        ValueError: no responses, or not as many weights.
    """
    if not answers:
        raise ValueError("a vote needs a response")
    totals: dict[str, float] = {}
    for answer, weight in zip(answers, weights, strict=True):
        if answer is not None:
            totals[answer] = totals.get(answer, 0.0) + weight
    return answers.index(max(totals, key=lambda a: totals[a])) if totals else 0


def vote_by_verdict(answers: Sequence[str | None], scores: Sequence[float]) -> int:
    """Return the first response with the answer that wins :func:`weighted_vote`, each score clipped to [0, 1]."""
    return weighted_vote(answers, [min(max(score, 0.0), 1.0) for score in scores])


@torch.no_grad()
def last_token_scores(
    policy: Policy, groups: Sequence[Group], token: int, scale: float, reference: float, budget: int = 8192
) -> list[list[float]]:
    """Return scale (log pi(token | prompt, response) - reference) for the episodes of each group; 0 if truncated.

    Raises:
        UsageError: the policy does not say what comes after a response.
    """
    if "next_logprob" not in policy.quantities:
        raise UsageError(f"a {type(policy).__name__} policy has no token after a response to read a verdict from")
    batch, name = Batch.from_groups(groups), f"next_logprob@{token}"
    scores = torch.zeros(len(batch))
    for rows in policy.micro_batches(batch, budget):
        scores[rows] = policy.forward(batch.rows(rows), {name}).live[name].float().cpu()
    found = torch.where(finished(batch), scale * (scores - reference), 0).split([len(g.episodes) for g in groups])
    return [row.tolist() for row in found]


@part("inference", "last_token_vote")
@dataclass(frozen=True, slots=True)
class LastTokenVote:
    """As many responses as the budget allows; the answer with the largest sum of the responses' own verdicts on them,
    each clipped to [0, 1].

    The verdict costs one more token: the log-probability of a reserved token after the response, which objective
    ``S081`` trains. The options are those of training, see :class:`~assay.signals.last_token.LastToken`.

    Source: LaSeR (arXiv 2510.14943).

    Args:
        token, reference, scale: of the verdict; the last two are in the run's metrics, as ``self_verdict/reference``
            and
            ``self_verdict/scale``.
        sampling: how tokens are drawn.
    """

    token: int
    reference: float
    scale: float = 0.1
    sampling: Sampling = field(default_factory=Sampling)

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        policy = getattr(engine, "policy", None)
        if policy is None:
            raise UsageError("inference 'last_token_vote' reads the policy itself, which this engine does not give")
        meter = Meter(tasks, engine, budget, rng, self.sampling)
        # One more token for each verdict.
        counts = [max(1, meter.may(i, None, self.sampling.max_tokens + 1)) for i in range(len(tasks))]
        groups = [Group(Ask(t, len(e)), tuple(e)) for t, e in zip(tasks, meter.sample(counts), strict=True)]
        out = []
        scores = last_token_scores(policy, groups, self.token, self.scale, self.reference)
        for i, (group, mine) in enumerate(zip(groups, scores, strict=True)):
            chosen = vote_by_verdict([extract(e.text) for e in group.episodes], mine)
            # A single response that has used up the budget is the answer without a verdict.
            left = meter.left(i)
            told = mine if left is None or left >= len(mine) else []
            meter.charge(i, len(told))
            out.append(meter.answer(i, group.episodes[chosen].text, group.episodes, scores=told))
        return out
