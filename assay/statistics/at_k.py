"""What k samples of a task are worth: by their best, their worst, their vote, or their scorer's choice; exact in k.

All are unbiased: the expectation over the k-subsets of the n samples there are, without drawing any.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.statistics.pass_at_k import pass_at_k

EXACT = 64
"""Most samples whose vote is worked out exactly."""


def pass_hat_k(total: ArrayLike, correct: ArrayLike, k: int) -> NDArray[np.float64]:
    """pass^k: the probability that all of ``k`` samples are right, C(c, k) / C(n, k).

    Source: tau-bench (arXiv 2406.12045), section 4.

    Args:
        total, correct, k: as in :func:`assay.statistics.pass_at_k.pass_at_k`.
    """
    n, c = np.broadcast_arrays(np.asarray(total, dtype=np.float64), np.asarray(correct, dtype=np.float64))
    # All right is none wrong: 1 - P(at least one wrong).
    return 1.0 - pass_at_k(n, n - c, k)


def g_pass_at_k(total: ArrayLike, correct: ArrayLike, k: int, tau: float) -> NDArray[np.float64]:
    """G-Pass@k_tau: the probability that at least ceil(tau k) of ``k`` samples are right (hypergeometric tail).

    Source: Are Your LLMs Capable of Stable Reasoning? (arXiv 2412.13147), equation 3.

    Args:
        total, correct, k: as in :func:`assay.statistics.pass_at_k.pass_at_k`.
        tau: share in (0, 1].

    Raises:
        ValueError: ``tau`` outside (0, 1], or counts that do not fit.
    """
    from scipy import stats

    if not 0 < tau <= 1:
        raise ValueError(f"G-Pass@k needs tau in (0, 1], got {tau:g}")
    n, c = np.broadcast_arrays(np.asarray(total, dtype=np.int64), np.asarray(correct, dtype=np.int64))
    if k < 1 or (n < k).any() or ((c < 0) | (c > n)).any():
        raise ValueError(f"G-Pass@{k} needs 1 <= k <= total and 0 <= correct <= total")
    # A share such as 0.1 * 30 must not be rounded up past 3.
    least = math.ceil(tau * k - 1e-9)
    return np.asarray(stats.hypergeom.sf(least - 1, n, c, k))


def mean_g_pass_at_k(total: ArrayLike, correct: ArrayLike, k: int) -> NDArray[np.float64]:
    """mG-Pass@k: 2 / k sum_{i = ceil(k / 2) + 1}^{k} G-Pass@k_{i / k}, the mean over the upper half of shares.

    Source: arXiv 2412.13147, equation 5.
    """
    shares = range(math.ceil(k / 2) + 1, k + 1)
    found = [g_pass_at_k(total, correct, k, i / k) for i in shares]
    zero = np.zeros(np.broadcast(np.asarray(total), np.asarray(correct)).shape)
    return 2.0 / k * np.sum(found, axis=0) if found else zero


def best_of_k(scores: ArrayLike, right: ArrayLike, k: int) -> float:
    """Probability that the best-scored of ``k`` samples is right; ties at the top are drawn among evenly.

    Sorted by score, a sample is the best of a k-subset iff the k - 1 others stand below it; for a block of equal
    scores the chance that the best lies in it is shared by its members.

    Args:
        scores: ``(n,)`` of one task; NaN counts as lowest.
        right: ``(n,)`` truth values or values of any kind whose mean is wanted.
        k: at least 1, at most n.

    Raises:
        ValueError: k out of range.
    """
    s = np.nan_to_num(np.asarray(scores, dtype=np.float64), nan=-np.inf, neginf=-np.inf, posinf=np.inf)
    r = np.asarray(right, dtype=np.float64)
    n = len(s)
    if not 1 <= k <= n:
        raise ValueError(f"best of {k} needs 1 <= k <= {n} samples")
    values, inverse = np.unique(s, return_inverse=True)
    sizes = np.bincount(inverse)
    means = np.bincount(inverse, weights=r) / sizes
    # P(best is at most block b) = C(up_to, k) / C(n, k).
    at_most = _shares(n, k)[np.cumsum(sizes)]
    return float((np.diff(at_most, prepend=0.0) * means[: len(values)]).sum())


def majority_at_k(
    answers: Sequence[Hashable | None],
    right: Sequence[bool],
    k: int,
    weights: ArrayLike | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> float:
    """Probability that the most frequent answer of ``k`` samples is right; ties are drawn among evenly.

    Exact for up to :data:`EXACT` samples that all count the same, in time polynomial in their number; by ``draws``
    random subsets for more, and with ``weights``. Samples without an answer (``None``) take part in the draw and vote
    for nothing; if nobody votes the result is wrong.

    Args:
        answers: of one task's samples, equal where they count as the same.
        right: whether each is right; equal answers share one truth (the first's).
        k: samples drawn, without replacement.
        weights: ``(n,)`` vote of each sample; 1 each if left out.
        draws, seed: of the random subsets.

    Raises:
        ValueError: k out of range, or lengths that differ.
    """
    n = len(answers)
    if len(right) != n or not 1 <= k <= n:
        raise ValueError(f"maj@{k} needs 1 <= k <= {n} samples, each with its truth")
    kinds: dict[Hashable, int] = {}
    for answer in answers:
        if answer is not None:
            kinds.setdefault(answer, len(kinds))
    code = np.array([kinds[a] if a is not None else -1 for a in answers])
    if not kinds:
        return 0.0
    firsts = np.unique(code, return_index=True)[1][-len(kinds) :]
    truth = np.array([bool(right[i]) for i in firsts], dtype=np.float64)
    counts = np.bincount(code[code >= 0], minlength=len(kinds))
    if weights is None and n <= EXACT:
        return _exact_majority(tuple(sorted(zip(counts.tolist(), truth.tolist(), strict=True))), n, k)
    rng = np.random.default_rng(seed)
    if weights is None:
        silent = n - int(counts.sum())
        drawn = rng.multivariate_hypergeometric([*counts, silent], k, size=draws if k < n else 1)[:, :-1]
        return float(np.mean([_winner(votes, truth) for votes in drawn]))
    w = np.asarray(weights, dtype=np.float64)
    won = []
    for _ in range(draws if k < n else 1):
        chosen = rng.permutation(n)[:k]
        chosen = chosen[code[chosen] >= 0]
        won.append(_winner(np.bincount(code[chosen], weights=w[chosen], minlength=len(kinds)), truth))
    return float(np.mean(won))


def _winner(votes: NDArray[Any], truth: NDArray[np.float64]) -> float:
    most = votes.max()
    return float(truth[votes >= most - 1e-12].mean()) if most > 0 else 0.0


@functools.lru_cache(maxsize=4096)
def _exact_majority(kinds: tuple[tuple[int, float], ...], n: int, k: int) -> float:
    """Sum over right answers and the votes m they win with.

    With u marking a tie, the k-subsets in which answer a has m votes and no other more are counted by
    C(n_a, m) x^m prod_{b != a} (sum_{c < m} C(n_b, c) x^c + u C(n_b, m) x^m) (1 + x)^silent, and a win shared by t + 1
    answers counts 1 / (t + 1) = int_0^1 u^t du, which Gauss and Legendre's rule integrates exactly. An answer given
    fewer than m times cannot tie: all such answers are the one factor (1 + x)^(their number).
    """
    sizes = [size for size, _ in kinds]
    total = 0.0
    for m in range(1, k + 1):
        rivals = [size for size in sizes if size >= m]
        for mine, right in kinds:
            if mine < m or not right:
                continue
            others = list(rivals)
            others.remove(mine)
            # At most so many others can have m votes as well.
            nodes, weights = np.polynomial.legendre.leggauss(min(len(others), k // m) // 2 + 1)
            u, left = (nodes + 1) / 2, k - m
            ways = np.tile(_binomials(n - mine - sum(others), left), (len(u), 1))
            for size in others:
                tied = _binomials(size, min(m, left))
                grown = np.zeros_like(ways)
                for c, many in enumerate(tied):
                    grown[:, c:] += (u[:, None] if c == m else 1.0) * many * ways[:, : left + 1 - c]
                ways = grown
            total += right * math.comb(mine, m) * float(weights @ ways[:, left]) / 2
    return total / math.comb(n, k)


def _binomials(n: int, most: int) -> NDArray[np.float64]:
    """C(n, 0), ..., C(n, most)."""
    return np.array([float(math.comb(n, j)) for j in range(most + 1)])


@functools.lru_cache(maxsize=256)
def _shares(n: int, k: int) -> NDArray[np.float64]:
    """C(m, k) / C(n, k) for m = 0..n, by C(m - 1, k) = C(m, k) (m - k) / m."""
    m = np.arange(n, k, -1, dtype=np.float64)
    out = np.zeros(n + 1)
    out[k:] = np.concatenate([[1.0], np.cumprod((m - k) / m)])[::-1]
    return out
