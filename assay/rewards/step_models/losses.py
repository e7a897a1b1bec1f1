"""Losses of scores of steps: against labels, against each other within a solution, and between two solutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from assay.rewards.step_models.examples import Label

Loss = Literal["hard", "soft", "mse", "regression", "ranking"]
Compared = Literal["steps", "fork", "last"]
Strength = Literal["ignored", "margin", "scaled"]


def labelled_loss(
    logits: Float[Tensor, "K"],
    labels: Sequence[Label],
    loss: Loss = "soft",
    wrong_weight: float = 1.0,
    margin: float = 4.0,
) -> Tensor:
    """Return the loss of a solution's steps, summed over those with a label; others are read and not learned.

        soft        - p log s(z) - w (1 - p) log s(-z)           s the sigmoid, z the score, p the label
        hard        the same with 1[p > 0] for p
        mse         (s(z) - p)^2
        regression  (z - p)^2
        ranking     mean_{t in {0} + C} - log( e^{z_t} / (sum_{q <= t} e^{z_q} + sum_{v in W} e^{z_v + margin}) )

    C are the right steps (p > 0) in their order, W the wrong ones, 0 the question, whose score is 0. A ranking is of
    the solution as a whole and times the number of its labels, so that it weighs as much as they do in other losses.

    Args:
        logits: z, one for each step; probabilities of two classes are of their difference, so that ``hard`` is the
            cross entropy of a token classifier.
        labels: p in [0, 1], ``None`` for unknown; fewer than steps leave the rest unknown.
        loss: see above.
        wrong_weight: w, how much a wrong step weighs.
        margin: by how much right steps are to score above wrong ones.

    Source: soft and hard labels of OmegaPRM (arXiv 2406.06592) and Math-Shepherd (arXiv 2312.08935); the ranking is
    equation 10 of PQM (arXiv 2410.11287).
    """
    known = [k for k, label in enumerate(labels) if label is not None]
    if not known:
        return logits.sum() * 0
    z = logits[known]
    p = torch.tensor([labels[k] for k in known], dtype=z.dtype, device=z.device)
    if loss == "mse":
        return (z.sigmoid() - p).square().sum()
    if loss == "regression":
        return (z - p).square().sum()
    if loss == "ranking":
        return len(known) * ranking_loss(z, p > 0, margin)
    if loss == "hard":
        p = (p > 0).to(z.dtype)
    return -(p * F.logsigmoid(z) + wrong_weight * (1 - p) * F.logsigmoid(-z)).sum()


def ranking_loss(logits: Float[Tensor, "K"], right: Tensor, margin: float) -> Tensor:
    """Return the ranking of :func:`labelled_loss` for steps that are ``right`` or wrong, not times their number."""
    chain = torch.cat([logits.new_zeros(1), logits[right]])
    wrong = logits[~right] + margin
    below = torch.logcumsumexp(chain, 0)
    if len(wrong):
        below = torch.logaddexp(below, wrong.logsumexp(0))
    return (below - chain).mean()


def pair_loss(
    better: Float[Tensor, "K"],
    worse: Float[Tensor, "J"],
    fork: int,
    compared: Compared = "steps",
    strength: float = 1.0,
    by: Strength = "ignored",
) -> Tensor:
    """Return the loss of two solutions that part at step ``fork``.

        steps  - sum_{i = fork}^{n} log s(z+_i - z-_i)
        fork   its first term: the siblings alone (Bradley-Terry)
        last   its last term: the solutions as wholes

    Where one solution is shorter, n is its last step, and it is compared with the last of the other. How much better
    the better one is, ``strength``, may count: as a ``margin``, - log s(z+ - z- - strength), or ``scaled``,
    - strength log s(z+ - z-), as though the pair were there so many times.

    Source: step-wise ranking of Tree-PLV (arXiv 2407.00390); what is compared of unequal lengths is our reading. The
    two ways of counting strength are those that HelpSteer2-Preference (arXiv 2410.01257) compares.
    """
    n = min(len(better), len(worse))
    gaps = torch.cat([better[fork : n - 1] - worse[fork : n - 1], (better[-1] - worse[-1])[None]])
    if compared == "fork":
        gaps = (better[fork] - worse[fork])[None]
    elif compared == "last":
        gaps = gaps[-1:]
    if by == "margin":
        gaps = gaps - strength
    loss = -F.logsigmoid(gaps).sum()
    return strength * loss if by == "scaled" else loss
