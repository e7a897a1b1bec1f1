"""What k samples of a task are worth: by their best, their worst, their vote, or their scorer's choice; exact in k.

All are unbiased: the expectation over the k-subsets of the n samples there are, without drawing any.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.evaluate.pass_at_k import pass_at_k


def pass_hat_k(total: ArrayLike, correct: ArrayLike, k: int) -> NDArray[np.float64]:
    """pass^k: the probability that all of ``k`` samples are right, C(c, k) / C(n, k).

    Source: tau-bench (arXiv 2406.12045), section 4.

    Args:
        total, correct, k: as in :func:`assay.evaluate.pass_at_k.pass_at_k`.
    """
    n, c = np.broadcast_arrays(np.asarray(total, dtype=np.float64), np.asarray(correct, dtype=np.float64))
    # All right is none wrong: 1 - P(at least one wrong).
    return 1.0 - pass_at_k(n, n - c, k)


def g_pass_at_k(total: ArrayLike, correct: ArrayLike, k: int, tau: float) -> NDArray[np.float64]:
    """G-Pass@k_tau: the probability that at least ceil(tau k) of ``k`` samples are right (hypergeometric tail).

    Source: Are Your LLMs Capable of Stable Reasoning? (arXiv 2412.13147), equation 3.

    Args:
        total, correct, k: as in :func:`assay.evaluate.pass_at_k.pass_at_k`.
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
    up_to = np.cumsum(sizes)
    # P(best is at most block b) = C(up_to, k) / C(n, k).
    at_most = np.array([_share(int(m), n, k) for m in up_to])
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

    Exact by enumeration while the ways to draw counts of the distinct answers are few; by ``draws`` random subsets
    otherwise, and with ``weights``. Samples without an answer (``None``) take part in the draw and vote for nothing; if
    nobody votes the result is wrong.

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
    truth = np.array([bool(right[list(code).index(j)]) for j in range(len(kinds))], dtype=np.float64)
    if not kinds:
        return 0.0
    counts = np.bincount(code[code >= 0], minlength=len(kinds))
    if weights is None and _ways([*counts.tolist(), n - int(counts.sum())], k) <= 20_000:
        return _exact_majority([*counts.tolist()], n - int(counts.sum()), k, truth)
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    rng = np.random.default_rng(seed)
    won = 0.0
    for _ in range(draws if k < n else 1):
        chosen = rng.permutation(n)[:k]
        votes = np.bincount(
            code[chosen][code[chosen] >= 0], weights=w[chosen][code[chosen] >= 0], minlength=len(kinds)
        ).astype(np.float64)
        won += _winner(votes, truth, bool((code[chosen] >= 0).any()))
    return won / (draws if k < n else 1)


def _winner(votes: NDArray[np.float64], truth: NDArray[np.float64], any_vote: bool) -> float:
    top = votes >= votes.max() - 1e-12
    return float(truth[top].mean()) if any_vote and votes.max() > 0 else 0.0


def _ways(counts: Sequence[int], k: int) -> int:
    """In how many ways k can be made of so many of each kind."""
    ways = np.zeros(k + 1)
    ways[0] = 1
    for c in counts:
        ways = np.array([ways[max(0, j - c) : j + 1].sum() for j in range(k + 1)])
    return int(min(ways[k], 1e9))


def _exact_majority(counts: Sequence[int], silent: int, k: int, truth: NDArray[np.float64]) -> float:
    total = 0.0
    # How many the kinds from i on, and those without an answer, can still give.
    room = [sum(counts[i:]) + silent for i in range(len(counts) + 1)]

    def go(i: int, left: int, drawn: tuple[int, ...], ways: int) -> None:
        nonlocal total
        if i == len(counts):
            votes = np.array(drawn, dtype=np.float64)
            total += ways * math.comb(silent, left) * _winner(votes, truth, bool(votes.any()))
            return
        for j in range(max(0, left - room[i + 1]), min(counts[i], left) + 1):
            go(i + 1, left - j, (*drawn, j), ways * math.comb(counts[i], j))

    go(0, k, (), 1)
    return total / math.comb(sum(counts) + silent, k)


def _share(m: int, n: int, k: int) -> float:
    """C(m, k) / C(n, k)."""
    return float(math.comb(m, k) / math.comb(n, k)) if m >= k else 0.0
