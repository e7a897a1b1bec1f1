"""Learning to rank where a document is known to be right, but not which of its passages."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Latent = Literal["hard_em", "first", "random", "soft_em", "uniform"]


def latent_positive_loss(
    scores: Float[Tensor, "M"],
    positive: Bool[Tensor, "M"],
    how: Latent = "soft_em",
    sharpness: float = 1.0,
    generator: torch.Generator | None = None,
) -> Float[Tensor, ""]:
    """Negative log-likelihood of the passage that bears a claim, which one of the positives is.

        l_j = -log( e^{s_j} / (e^{s_j} + sum over negatives n of e^{s_n}) )      for each positive j
        L   = sum over j of w_j l_j

    The other positives stand in no denominator: they may be right as well. The weights w are constants:

        hard_em   1 for the positive with the largest score
        first     1 for the first positive
        random    1 for one drawn by ``generator``
        soft_em   softmax over the positives of ``sharpness`` s_j, the model's own belief (the E step)
        uniform   the same for each

    Args:
        scores: s, of all passages of a claim, positive and negative.
        positive: which of them are the cited document's.
        how: see above.
        sharpness: 0 makes ``soft_em`` uniform, infinity hard.
        generator: needed for ``random`` alone.

    Raises:
        ValueError: no positive, or no negative.

    Source: SIDE (arXiv 2207.06220) and its authors' ``DocumentLevelRankerNllLoss``, which takes other positives out by
    adding -1e6 to their scores in the first three and by multiplying their scores by 0 in the last two, which leaves
    them in the denominator with e^0; here they are out in all five.
    """
    if not bool(positive.any()) or bool(positive.all()):
        raise ValueError("a claim needs a passage that is positive and one that is not")
    ours, rest = scores[positive], scores[~positive].logsumexp(0)
    losses = torch.logaddexp(ours, rest) - ours
    return (_weights(ours.detach(), how, sharpness, generator) * losses).sum()


def _weights(
    ours: Float[Tensor, "P"], how: Latent, sharpness: float, generator: torch.Generator | None
) -> Float[Tensor, "P"]:
    if how == "soft_em":
        return (sharpness * ours).softmax(0)
    if how == "uniform":
        return torch.full_like(ours, 1 / len(ours))
    chosen = {"hard_em": int(ours.argmax()), "first": 0}.get(how)
    if chosen is None:
        chosen = int(torch.randint(len(ours), (), generator=generator))
    return torch.nn.functional.one_hot(torch.tensor(chosen), len(ours)).to(ours)
