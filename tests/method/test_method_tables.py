"""The numbers of the tables of docs/objectives.md that no method of its own has, from their formulas."""

from __future__ import annotations

import math

import pytest

from assay.registry import build
from assay.tables.cells import RATIOS
from assay.tables.methods_rest import bonus, corrected, divergence, preferred, subtracted


def test_losses_without_a_ratio() -> None:
    sigmoid = 1 / (1 + math.exp(1))
    for margin, expected in ((10.0, 0.1 * sigmoid), (-10.0, 0.1 * (1 - sigmoid)), (0.0, 0.05)):
        assert preferred(build("objective", "dpo"), "all", margin) == pytest.approx([expected, -expected])
    # IPO is a square whose minimum is at a margin of 1 / (2 beta) = 5.
    assert preferred(build("objective", "ipo"), "all", 10.0) == pytest.approx([-10, 10])
    assert preferred(build("objective", "ipo"), "all", 5.0) == pytest.approx([0, 0])
    # KTO: beta s (1 - s) at h = 5 of either kind, over two samples.
    s = 1 / (1 + math.exp(0.5))
    assert preferred(build("objective", "kto"), "all", 10.0) == pytest.approx([0.05 * s * (1 - s), -0.05 * s * (1 - s)])
    assert preferred(build("objective", "sft"), "verdict", 0.0) == [1, 0]


def test_divergences() -> None:
    for name, value, slope in (
        ("k1", math.log, lambda r: -1),
        ("k2", lambda r: math.log(r) ** 2 / 2, lambda r: -math.log(r)),
        ("k3", lambda r: 1 / r - 1 + math.log(r), lambda r: 1 / r - 1),
        ("k3+", lambda r: 1 / r - 1 + math.log(r), lambda r: -math.log(r)),
    ):
        found = divergence(name)
        assert found[0] == pytest.approx([value(r) for r in RATIOS])
        assert found[1] == pytest.approx([slope(r) for r in RATIOS])


def test_entropy_corrections_and_baselines() -> None:
    assert bonus(0.2) == pytest.approx(0.2 * 0.8 * math.log(4))
    assert corrected("token_mask", (1.5, 2.0, 9.0)) == pytest.approx([1.5, 2, 0])
    assert corrected("sequence_truncate", (1.5, 2.0, 9.0)) == pytest.approx([2, 2, 2])
    assert corrected("geometric_mask", (1.5, 2.0, 9.0)) == [0, 0, 0] and corrected("geometric_mask", (0.5, 1.0, 3.0))[0]
    assert subtracted("moving")[1] == pytest.approx([0.75, 0.75, -0.25, -0.25]), "the first batch's mean is 1/4"
