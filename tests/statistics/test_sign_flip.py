"""The sign-flip test against SciPy's permutation test, by hand, and where it cannot say anything."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from assay.statistics.sign_flip import sign_flip


def test_by_hand() -> None:
    # Sums of +-1 +-2 +-3: 6, 4, 2, 0 and their negatives, 0 twice. At least 4: four of eight.
    assert sign_flip([1, -2, -3]) == 4 / 8
    assert sign_flip([1, 2, 3]) == 2 / 8
    assert sign_flip([0.0, 0.0]) == 1.0
    assert sign_flip([1.0] * 5) == 1 / 16


def test_it_is_scipys_permutation_test() -> None:
    rng = np.random.default_rng(0)
    for n in (4, 7, 9):
        d = rng.normal(0.5, 1, n)
        peer = stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf)
        assert sign_flip(d) == pytest.approx(peer.pvalue)


def test_many_differences_are_drawn_alike_each_time() -> None:
    d = np.random.default_rng(1).normal(0.3, 1, 40)
    assert sign_flip(d) == sign_flip(d) == pytest.approx(stats.ttest_1samp(d, 0).pvalue, abs=0.02)


@pytest.mark.parametrize("bad", [[], [1.0, float("nan")], [[1.0]]])
def test_what_is_no_differences_is_refused(bad: list) -> None:
    with pytest.raises(ValueError, match="finite differences"):
        sign_flip(bad)
