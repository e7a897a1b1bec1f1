"""What scorers of steps are worth: by hand, and against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import RunError
from assay.inference.supervision.quality import first_below, over_tasks, quality
from assay.rewards.process.step_scores import FunctionScorer
from assay.rewards.step_models.examples import StepExample, StepPair
from assay.statistics.judging import average_precision, located
from assay.types import Task


def test_first_errors_by_hand() -> None:
    # Three wrong solutions, two of them found where they are wrong; two right ones, one of them let through.
    found = located([1, 0, -1, -1, 2], [1, 2, 0, -1, -1])
    assert (found.wrong, found.right) == (pytest.approx(1 / 3), 0.5)
    assert found.f1 == pytest.approx(0.4)
    # The card's: .6 of wrong ones and .9 of right ones.
    assert located([0] * 6 + [1] * 4 + [-1] * 9 + [0], [0] * 10 + [-1] * 10).f1 == pytest.approx(0.72)
    assert located([0], [-1]).f1 != located([-1], [-1]).f1 and math.isnan(located([], []).f1)
    assert located([1, 0], [0, -1]).f1 == 0, "of two shares of 0"
    assert first_below([0.9, 0.5, 0.2], 0.5) == 2 and first_below([0.9], 0.5) == -1


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=30))
@settings(deadline=None)
def test_average_precision_is_scikit_learns(rows: list[tuple[int, bool]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    scores, positive = [float(s) for s, _ in rows], [p for _, p in rows]
    found = average_precision(scores, positive)
    if not any(positive):
        assert math.isnan(found)
    else:
        assert found == pytest.approx(metrics.average_precision_score(positive, scores), abs=1e-12)
    with pytest.raises(ValueError, match="finite"):
        average_precision([1.0, math.nan], [False, True])


@pytest.mark.slow
def test_a_scorer_on_labelled_solutions() -> None:
    rows = [
        StepExample(Task("a", ""), ("r", "w", "r"), (1.0, 0.0, None)),
        StepExample(Task("b", ""), ("r", "r"), (0.5, 1.0)),
        StepExample(Task("c", ""), ("r", "w"), (1.0, 0.0)),
        StepExample(Task("d", ""), ("x",), (1.0,)),
    ]
    pair = StepPair(StepExample(Task("a", ""), ("r", "r")), StepExample(Task("a", ""), ("r", "w")), 1)
    sure = {"r": 0.8, "w": -0.6}
    judge = FunctionScorer(lambda task, steps: None if "x" in steps else [sure[s] for s in steps])
    found = quality(judge, [*rows, pair])
    assert (found.solutions, found.steps, found.unscored) == (3, 6, 1) and found.share == pytest.approx(1 / 3)
    assert found.pr_auc is not None and found.f1 is not None and found.ranked is not None
    assert (found.pr_auc.value, found.f1.value, found.ranked.value) == (1, 1, 1)
    # One that knows nothing has the share of wrong steps, and calls nothing wrong.
    blind = quality(FunctionScorer(lambda task, steps: [0.5] * len(steps)), rows)
    assert blind.pr_auc is not None and blind.pr_auc.value == pytest.approx(2 / 7)
    assert blind.wrong is not None and blind.right is not None and (blind.wrong.value, blind.right.value) == (0, 1)
    # With a higher threshold every step is wrong; with a cut, so is a step that is right half of the time.
    strict = quality(judge, rows[:3], threshold=0.95)
    assert strict.right is not None and strict.right.value == 0
    assert quality(judge, rows[:3], cut=0.5).share == pytest.approx(0.5)
    with pytest.raises(RunError, match="none of the labelled"):
        quality(FunctionScorer(lambda task, steps: None), rows)


def test_an_interval_is_of_tasks() -> None:
    rng = np.random.default_rng(0)
    values = np.repeat(rng.random(40), 10)
    tasks = np.repeat(np.arange(40), 10).tolist()
    found = over_tasks(lambda i: float(values[list(i)].mean()), tasks)
    assert found is not None
    # As wide as of 40 values, not of 400.
    assert found.high - found.low == pytest.approx(2 * 1.96 * values[::10].std() / math.sqrt(40), rel=0.15)
    assert over_tasks(lambda i: 1.0, []) is None
