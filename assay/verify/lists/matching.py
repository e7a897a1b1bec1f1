"""Pairing predicted with reference items: any way round, or in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Pairs = list[tuple[int, int]]


def best_pairs(similarity: np.ndarray) -> Pairs:
    """Return the one-to-one pairs (predicted, reference) of greatest total similarity, without those of similarity 0.

    ``similarity`` is ``(m, n)``, at least 0. The Hungarian method, O(min(m, n)^2 max(m, n)).
    """
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(similarity, maximize=True)
    return [(int(i), int(j)) for i, j in zip(rows, columns, strict=True) if similarity[i, j] > 0]


def ordered_pairs(similarity: np.ndarray) -> Pairs:
    """Return the one-to-one pairs of greatest total similarity that increase on both sides; O(m n).

    D[i, j] = max(D[i-1, j], D[i, j-1], D[i-1, j-1] + S[i, j]), as in the alignment of sequences.
    """
    m, n = similarity.shape
    total = np.zeros((m + 1, n + 1))
    for i in range(m):
        # max(D[i-1, j], D[i-1, j-1] + S) for the row at once; the running maximum is the step along the row.
        total[i + 1, 1:] = np.maximum.accumulate(np.maximum(total[i, 1:], total[i, :-1] + similarity[i]))
    pairs: Pairs = []
    i, j = m, n
    while i and j:
        if total[i, j] == total[i - 1, j]:
            i -= 1
        elif total[i, j] == total[i, j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((i, j))
    return pairs[::-1]


def total(similarity: np.ndarray, pairs: Sequence[tuple[int, int]]) -> float:
    """Sum of the similarities of ``pairs``."""
    return float(sum(similarity[i, j] for i, j in pairs))


def f_beta(precision: float, recall: float, beta: float = 1.0) -> float:
    """(1 + beta^2) P R / (beta^2 P + R), and 0 where both are 0."""
    below = beta**2 * precision + recall
    return (1 + beta**2) * precision * recall / below if below > 0 else 0.0
