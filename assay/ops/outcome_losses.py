"""Losses by which scores of whole responses, h, learn which of them are right."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from assay.ops.groups import group_mean

OutcomeLoss = Literal["ce", "dpo", "detached_dpo", "kto", "nca"]


def kto_loss(
    h: Float[Tensor, "N"],
    desirable: Bool[Tensor, "N"],
    reference_point: Float[Tensor, "N"],
    beta: float,
    desirable_weight: float = 1.0,
    undesirable_weight: float = 1.0,
) -> Float[Tensor, "N"]:
    """lambda_D (1 - sigmoid(beta (h - z))) for the desirable, lambda_U (1 - sigmoid(beta (z - h))) for the others."""
    gap = beta * (h - reference_point)
    return torch.where(desirable, desirable_weight * torch.sigmoid(-gap), undesirable_weight * torch.sigmoid(gap))


def nca_loss(better: Float[Tensor, "P"], worse: Float[Tensor, "P"]) -> Float[Tensor, "P"]:
    """-log sigmoid(Q_w) - 1/2 log sigmoid(-Q_w) - 1/2 log sigmoid(-Q_l) of pairs.

    Source: noise contrastive alignment (arXiv 2402.05369), equation 8 with two responses.
    """
    return -logsigmoid(better) - logsigmoid(-better) / 2 - logsigmoid(-worse) / 2


def class_weights(right: Bool[Tensor, "N"]) -> Float[Tensor, "N"]:
    """Weights of mean 1 by which right and wrong samples weigh the same in all; 1 where there is one kind alone."""
    count = torch.stack([(~right).sum(), right.sum()]).double()
    if not bool((count > 0).all()):
        return torch.ones(len(right), dtype=count.dtype, device=right.device)
    return (len(right) / (2 * count))[right.long()]


def right_and_wrong(
    right: Bool[Tensor, "N"], group: Int[Tensor, "N"], where: Bool[Tensor, "N"]
) -> tuple[Int[Tensor, "P"], Int[Tensor, "P"]]:
    """Return the rows of the right and of the wrong one of every such pair of a group, both in ``where``."""
    together = (group[:, None] == group[None]) & (where & right)[:, None] & (where & ~right)[None]
    better, worse = together.nonzero(as_tuple=True)
    return better, worse


def outcome_loss(
    h: Float[Tensor, "N"],
    right: Bool[Tensor, "N"],
    group: Int[Tensor, "N"],
    where: Bool[Tensor, "N"],
    beta: float,
    kind: OutcomeLoss = "ce",
    balanced: bool = False,
) -> Float[Tensor, ""]:
    """The loss of scores by the labels of responses; 0, with a gradient of 0, where there is nothing to learn from.

    With Q = beta h, of the samples in ``where``:

    - ``ce``: mean over samples of -log sigmoid(Q) of a right one and -log sigmoid(-Q) of a wrong one;
    - ``dpo``: -log sigmoid(Q_w - Q_l), the mean over a group's pairs of a right and a wrong one, then over groups with
      one;
    - ``detached_dpo``: mean over samples of -log sigmoid(s (Q - m)), s = 1 of a right one and -1 of a wrong one, m the
      mean of Q over those of its group with the other label, a constant, 0 where there are none;
    - ``kto``: mean over samples of :func:`kto_loss`, z = max(0, mean h), a constant;
    - ``nca``: :func:`nca_loss` over pairs as for ``dpo``.

    Args:
        h: scores.
        right: labels.
        group: index of the responses to one task.
        where: samples that count.
        beta: above 0.
        kind: see above.
        balanced: of the losses over samples, right and wrong ones weigh the same in all.
    """
    q, nothing = beta * h, 0 * h.sum()
    if not bool(where.any()):
        return nothing
    if kind in ("dpo", "nca"):
        better, worse = right_and_wrong(right, group, where)
        if not len(better):
            return nothing
        losses = -logsigmoid(q[better] - q[worse]) if kind == "dpo" else nca_loss(q[better], q[worse])
        pairs = torch.bincount(group[better])
        return (losses / pairs[group[better]]).sum() / (pairs > 0).sum()
    if kind == "ce":
        each = binary_cross_entropy_with_logits(q, right.to(q.dtype), reduction="none")
    elif kind == "kto":
        z = h.detach()[where].mean().clamp(min=0)
        each = kto_loss(h, right, z.expand_as(h), beta)
    else:
        each = -logsigmoid(torch.where(right, 1, -1) * (q - _other(q.detach(), right, group, where)))
    weights = class_weights(right[where]).to(h) if balanced else 1
    return (weights * each[where]).mean()


def _other(
    q: Float[Tensor, "N"], right: Bool[Tensor, "N"], group: Int[Tensor, "N"], where: Bool[Tensor, "N"]
) -> Float[Tensor, "N"]:
    """Mean over the samples of one's group that have the other label, 0 without any."""
    return torch.where(right, group_mean(q, group, where & ~right), group_mean(q, group, where & right))


def pairwise_accuracy(
    h: Float[Tensor, "N"], right: Bool[Tensor, "N"], group: Int[Tensor, "N"], where: Bool[Tensor, "N"]
) -> float:
    """Mean over groups of the share of pairs of a right and a wrong one whose right one scores higher.

    One half of a group without a pair, as in PRIME's implementation, and where there is no group.
    """
    better, worse = right_and_wrong(right, group, where)
    groups = group[where].unique()
    if not len(groups):
        return 0.5
    size = int(groups.max()) + 1
    pairs = torch.bincount(group[better], minlength=size)[groups].to(h.dtype)
    won = torch.bincount(group[better], (h[better] > h[worse]).to(h.dtype), minlength=size)[groups]
    return float(torch.where(pairs > 0, won / pairs.clamp(min=1), 0.5).mean())
