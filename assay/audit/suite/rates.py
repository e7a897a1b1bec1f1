"""What a suite says of programs known to be right and wrong: acceptance, detection, diversity and their ceiling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.statistics.intervals import Interval
from assay.statistics.pass_at_k import wilson


@dataclass(frozen=True, slots=True)
class SuiteRates:
    """A suite's record on programs known to be right and wrong.

    Attributes:
        accepted: right programs that pass all tests, of ``right``.
        rejected: wrong programs that fail one test or more, of ``wrong``.
        false_negatives: indices of the right programs it rejects.
        false_positives: indices of the wrong programs it accepts.
    """

    accepted: int
    right: int
    rejected: int
    wrong: int
    false_negatives: tuple[int, ...]
    false_positives: tuple[int, ...]

    @property
    def tpr(self) -> Interval | None:
        """True-positive rate: share of right programs accepted, with Wilson's 95% interval; ``None`` without any."""
        return _proportion(self.accepted, self.right)

    @property
    def tnr(self) -> Interval | None:
        """True-negative rate, also detection rate: share of wrong programs rejected; ``None`` without any."""
        return _proportion(self.rejected, self.wrong)

    @property
    def accurate(self) -> bool:
        """Whether every wrong program is rejected: the problem's verifier accuracy, 1 or 0."""
        return self.rejected == self.wrong

    @property
    def balanced(self) -> float:
        """(TPR + TNR) / 2, a rate without programs counting as 1: what suites are chosen by."""
        rates = [rate.value if rate is not None else 1.0 for rate in (self.tpr, self.tnr)]
        return sum(rates) / 2


def suite_rates(right: ArrayLike, wrong: ArrayLike) -> SuiteRates:
    """Return how a suite of T tests judges known programs.

    Args:
        right: ``(R, T)`` truth values: right program r passes test t.
        wrong: ``(W, T)`` truth values: wrong program w passes test t. Note: *passes*, as a verifier reports it; the
            papers write the detection 1 - this.

    Raises:
        ValueError: not two dimensions, or another number of tests.

    Source: TPR and TNR as in CodeContests-O (arXiv 2601.13682); detection rate and verifier accuracy as in SAGA
    (arXiv 2507.06920).
    """
    accepted = np.asarray(_table(right, "right").all(1))
    passing = np.asarray(_table(wrong, "wrong").all(1))
    if np.shape(right)[0] and np.shape(wrong)[0] and np.shape(right)[1] != np.shape(wrong)[1]:
        raise ValueError(f"right programs ran {np.shape(right)[1]} tests, wrong ones {np.shape(wrong)[1]}")
    return SuiteRates(
        int(accepted.sum()),
        len(accepted),
        int((~passing).sum()),
        len(passing),
        tuple(np.flatnonzero(~accepted).tolist()),
        tuple(np.flatnonzero(passing).tolist()),
    )


def verifier_accuracy(problems: Sequence[SuiteRates]) -> Interval:
    """Share of problems whose suite rejects every wrong program, with Wilson's 95% interval; ValueError without any."""
    if not problems:
        raise ValueError("verifier accuracy needs one problem or more")
    found = _proportion(sum(p.accurate for p in problems), len(problems))
    assert found is not None
    return found


def diversity(detection: ArrayLike) -> tuple[int, float]:
    """Return the number of distinct non-zero detection vectors of the tests (DEPC), and its share of all tests.

    Args:
        detection: ``(W, T)`` truth values: test t rejects wrong program w.

    Source: SAGA (arXiv 2507.06920).
    """
    table = _table(detection, "detection")
    vectors = {column.tobytes() for column in table.T if column.any()}
    return len(vectors), len(vectors) / table.shape[1] if table.shape[1] else 0.0


def auc(detections: Sequence[ArrayLike]) -> float:
    """Return the area under verifier accuracy of the first n = 1 ... N tests, by trapezoids, divided by N - 1.

    Args:
        detections: per problem ``(W, T)`` truth values, T >= N: test t rejects wrong program w. N is the smallest T.

    Raises:
        ValueError: no problem, or a suite of fewer than two tests.

    Source: SAGA (arXiv 2507.06920), appendix B.2, with k_min = 1.
    """
    tables = [_table(d, "detection") for d in detections]
    n = min((t.shape[1] for t in tables), default=0)
    if n < 2:
        raise ValueError("the area needs two tests or more of every problem")
    curve = np.mean([np.logical_or.accumulate(t[:, :n], axis=1).all(0) for t in tables], axis=0)
    return float((curve[1:] + curve[:-1]).sum() / 2 / (n - 1))


def ceiling(detection: float, correlation: float, tests: float | None = None) -> float:
    """Return the detection rate that ``tests`` equally correlated tests can reach: 1 - (1 - p)^n_eff.

    n_eff = n / (1 + (n - 1) rho). With ``tests=None`` its limit, 1 - (1 - p)^(1 / rho), which no more tests can pass.

    Args:
        detection: p in [0, 1], how often one test rejects a wrong program.
        correlation: rho in [0, 1], mean correlation of two tests' detections.
        tests: n >= 1.

    Source: SAGA (arXiv 2507.06920).
    """
    if not 0 <= detection <= 1 or not 0 <= correlation <= 1 or (tests is not None and tests < 1):
        raise ValueError(f"ceiling needs p and rho in [0, 1] and n >= 1, got {detection}, {correlation}, {tests}")
    if tests is None:
        if correlation == 0:
            return float(detection > 0)
        return 1 - (1 - detection) ** (1 / correlation)
    return 1 - (1 - detection) ** (tests / (1 + (tests - 1) * correlation))


def mean_correlation(detection: ArrayLike) -> float:
    """Return the mean Pearson correlation of two tests' detections; tests that treat all programs alike have none.

    Args:
        detection: ``(W, T)`` truth values: test t rejects wrong program w.

    Returns:
        NaN where fewer than two tests tell programs apart.
    """
    table = _table(detection, "detection").astype(np.float64)
    table = table[:, table.std(0) > 0] if table.size else table
    if table.shape[1] < 2:
        return float("nan")
    matrix: NDArray[np.float64] = np.asarray(np.corrcoef(table, rowvar=False))
    pairs = matrix[np.triu_indices(table.shape[1], 1)]
    return float(pairs.mean())


def _table(values: ArrayLike, name: str) -> NDArray[np.bool_]:
    table = np.asarray(values, dtype=bool)
    if table.ndim == 1 and table.size == 0:
        return table.reshape(0, 0)
    if table.ndim != 2:
        raise ValueError(f"{name} must be a table, programs by tests; got shape {table.shape}")
    return table


def _proportion(successes: int, trials: int) -> Interval | None:
    return Interval(successes / trials, *wilson(successes, trials)) if trials else None
