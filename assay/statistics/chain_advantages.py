"""What rewards for answers (CA) do to right chains of thought (CC), in expectation and exactly."""

from __future__ import annotations

import math

from assay.errors import UsageError


def chain_advantages(p: float, alpha: float, beta: float, group: int | None = None) -> tuple[float, float]:
    """Return E[A | CC] and E[A | not CC] of GRPO's advantages, A = (R - mean) / std, R = 1 for a right answer.

    With ``group`` the exact expectation over groups of that size, std with n - 1, and A = 0 where all rewards agree;
    else the limit of large groups,

        E[A | CC] = (1 - p) (alpha - beta) / sigma      E[A | not CC] = -p (alpha - beta) / sigma

    with mu = p alpha + (1 - p) beta and sigma^2 = mu (1 - mu). Both are 0 where every answer is right, or none.

    Source: "Reinforcement Learning with Verifiable Rewards Implicitly Incentivizes Correct Reasoning in Base LLMs"
    (arXiv 2506.14245), its theorem.

    Args:
        p: P(CC).
        alpha, beta: P(CA | CC), P(CA | not CC).
        group: responses per prompt, 2 or more.

    Raises:
        UsageError: a probability outside [0, 1], or a group below 2.
    """
    if not all(0 <= x <= 1 for x in (p, alpha, beta)) or (group is not None and group < 2):
        raise UsageError("S077: p, alpha and beta are probabilities, and a group has at least 2 responses")
    mu = p * alpha + (1 - p) * beta
    if not 0 < mu < 1:
        return 0.0, 0.0
    right, wrong = (1 - mu) / math.sqrt(mu * (1 - mu)), -mu / math.sqrt(mu * (1 - mu))
    if group is not None:
        right = wrong = 0.0
        for others in range(group):
            chance = math.comb(group - 1, others) * mu**others * (1 - mu) ** (group - 1 - others)
            right += chance * _advantage(1, others + 1, group)
            wrong += chance * _advantage(0, others, group)
    return alpha * right + (1 - alpha) * wrong, beta * right + (1 - beta) * wrong


def chain_drift(p: float, alpha: float, beta: float, group: int | None = None) -> float:
    """Return the expected gradient on logit P(CC): p (1 - p) (E[A | CC] - E[A | not CC]), of the sign of alpha - beta.

    Raises:
        UsageError: as :func:`chain_advantages`.
    """
    sound, flawed = chain_advantages(p, alpha, beta, group)
    return p * (1 - p) * (sound - flawed)


def _advantage(reward: int, right: int, group: int) -> float:
    mean = right / group
    spread = mean * (1 - mean) * group / (group - 1)
    return (reward - mean) / math.sqrt(spread) if spread > 0 else 0.0
