"""What steps that are alike come to: words in order, pictures covered by different ones, both together."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from assay.verify.lists.matching import best_pairs, ordered_pairs, total

DISTINCT = 0.2
"""Of the score of pictures, the part that hangs on how many different ones are used."""


def text_score(likeness: Float[np.ndarray, "m n"], ordered: bool = True) -> float:
    """Return the greatest sum of likeness over pairs of steps in order, by the number of reference steps n.

    Steps may be left out on both sides, and none is used twice.

    Args:
        likeness: of m given with n reference steps, in [0, 1].
        ordered: whether pairs have to increase on both sides; else any pairs will do.
    """
    pairs = ordered_pairs(likeness) if ordered else best_pairs(likeness)
    return total(likeness, pairs) / likeness.shape[1]


def image_score(likeness: Float[np.ndarray, "n m"], distinct: float = DISTINCT) -> float:
    """Return coverage ((1 - distinct) + distinct d) of n reference pictures by m given ones; 0 without any.

    Coverage is the mean over references of the greatest likeness, and d the number of different pictures that have it,
    by n, so that one picture for all is worth less.
    """
    if not likeness.shape[1]:
        return 0.0
    coverage = float(likeness.max(-1).mean())
    return coverage * ((1 - distinct) + distinct * len(set(likeness.argmax(-1).tolist())) / len(likeness))


def local_score(text: float, image: float, texts: int, images: int) -> float:
    """Return the mean of both scores, weighted by how many reference steps are text and how many pictures."""
    return (texts * text + images * image) / (texts + images)


def fused_score(local: float, overall: float, weight: float = 0.5) -> float:
    """Return sqrt((1 - w) local^2 + w overall^2)."""
    return math.sqrt((1 - weight) * local**2 + weight * overall**2)
