"""Losses of scores of steps: by hand, against PyTorch's own cross entropy, and what a trainer makes of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.rewards.step_models.examples import StepExample, StepPair, truth_of
from assay.rewards.step_models.losses import labelled_loss, pair_loss
from assay.rewards.step_models.training import StepTraining
from assay.types import Task

T = Task("t", "q")


def z(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_losses_by_hand() -> None:
    # Where wrong steps weigh 3: 3 softplus(z) of a wrong step, softplus(-z) of a right one.
    assert float(labelled_loss(z(0.5), [0.0], wrong_weight=3.0)) == pytest.approx(2.922231, abs=1e-6)
    assert float(labelled_loss(z(-0.5), [1.0], wrong_weight=3.0)) == pytest.approx(0.974077, abs=1e-6)
    assert float(labelled_loss(z(-0.5), [0.0], wrong_weight=3.0)) == pytest.approx(1.422231, abs=1e-6)
    # p = 1/4 at z = 0 costs log 2, and with z = log 1/3 its entropy.
    assert float(labelled_loss(z(0.0), [0.25])) == pytest.approx(math.log(2))
    assert float(labelled_loss(z(math.log(1 / 3)), [0.25])) == pytest.approx(0.5623351, abs=1e-6)
    assert float(labelled_loss(z(0.0), [0.25], "mse")) == pytest.approx(0.0625)
    # Hard: right as soon as one completion is.
    assert float(labelled_loss(z(2.0), [0.125], "hard")) == pytest.approx(0.126928, abs=1e-6)
    # Siblings' gaps of .5 and 1 from the fork on.
    assert float(pair_loss(z(9, 0.5, 1.0), z(-9, 0.0, 0.0), 1)) == pytest.approx(0.7873387, abs=1e-6)
    assert float(pair_loss(z(9, 0.5, 1.0), z(-9, 0.0, 0.0), 1, "fork")) == pytest.approx(0.4740770, abs=1e-6)
    assert float(pair_loss(z(9, 0.5, 1.0), z(-9, 0.0, 0.0), 1, "last")) == pytest.approx(0.3132617, abs=1e-6)
    # Of unequal lengths the last steps are compared with each other.
    assert float(pair_loss(z(0.5, 7.0, 1.0), z(0.0, 0.0), 0)) == pytest.approx(0.7873387, abs=1e-6)


def test_a_ranking_by_hand() -> None:
    """Right steps of scores 1 and 2, a wrong one of 0, the question 0, margin 1."""
    e = math.e
    wanted = [
        math.log((1 + e) / 1),
        math.log((1 + e + e) / e),
        math.log((1 + e + e**2 + e) / e**2),
    ]
    found = float(labelled_loss(z(1, 2, 0), [1.0, 0.5, 0.0], "ranking", margin=1.0))
    assert found == pytest.approx(3 * sum(wanted) / 3)
    # Without wrong steps there is still their order: the question, then each.
    assert float(labelled_loss(z(0, 0), [1.0, 1.0], "ranking")) == pytest.approx(
        2 * (0 + math.log(2) + math.log(3)) / 3
    )
    # Shifting all scores up separates them from the question and lowers the loss, shifting a wrong one up raises it.
    base = labelled_loss(z(1, 2, 0), [1.0, 1.0, 0.0], "ranking")
    assert labelled_loss(z(1, 2, 0.5), [1.0, 1.0, 0.0], "ranking") > base
    assert labelled_loss(z(1.5, 2.5, 0), [1.0, 1.0, 0.0], "ranking") < base


@given(st.lists(st.tuples(st.floats(-5, 5), st.sampled_from([0.0, 0.5, 1.0, None])), min_size=1, max_size=6))
@settings(deadline=None)
def test_hard_labels_are_the_cross_entropy_of_a_token_classifier(rows: list[tuple[float, float | None]]) -> None:
    scores, labels = [a for a, _ in rows], [p for _, p in rows]
    logits = torch.tensor([[0.3 - s / 2, 0.3 + s / 2] for s in scores], dtype=torch.float64)
    targets = torch.tensor([-100 if p is None else int(p > 0) for p in labels])
    wanted = F.cross_entropy(logits, targets, ignore_index=-100, reduction="sum")
    assert float(labelled_loss(z(*scores), labels, "hard")) == pytest.approx(float(wanted), abs=1e-9)
    soft = [0.0 if p is None else p for p in labels]
    if None not in labels:
        wanted = F.binary_cross_entropy_with_logits(z(*scores), z(*soft), reduction="sum")
        assert float(labelled_loss(z(*scores), labels)) == pytest.approx(float(wanted), abs=1e-9)


class Table:
    """Scores of steps by their text, learned freely."""

    def __init__(self, words: str, budget: int = 99):
        self.at = {w: i for i, w in enumerate(words)}
        self.weights, self.budget = torch.zeros(len(words), requires_grad=True), budget
        self.learning: list[bool] = []

    def read(self, rows):
        return [(self.weights[[self.at[s] for s in row.steps]], torch.zeros(len(row.steps), 1)) for row in rows]

    def views(self, rows):
        return [[a for a, _ in self.read(rows)]]

    def train(self, learning):
        self.learning.append(learning)

    def groups(self, lr, trunk_lr):
        return [{"params": [self.weights], "lr": lr}]

    def save(self, folder):
        raise NotImplementedError

    def parts(self, rows):
        return [list(range(i, min(i + self.budget, len(rows)))) for i in range(0, len(rows), self.budget)]


def test_the_trainer_finds_shares_and_does_not_depend_on_the_size_of_a_pass() -> None:
    data = [StepExample(T, ("a", "b"), (1.0, None))] * 3 + [StepExample(T, ("a", "b"), (0.0, 0.25))]
    made = []
    for budget in (99, 1):
        model = Table("ab", budget)
        history = StepTraining(epochs=150, batch=4, lr=0.1, weight_decay=0.0).fit(model, data, np.random.default_rng(0))
        made.append(model.weights.detach().sigmoid().tolist())
        assert history[-1] < history[0] and model.learning == [True, False]
    assert made[0] == pytest.approx(made[1], abs=1e-5)
    # a is right three times in four; of b only one label is known.
    assert made[0] == pytest.approx([0.75, 0.25], abs=0.02)


def test_pairs_order_what_they_compare() -> None:
    better, worse = (StepExample(T, ("x", *s)) for s in ("ab", "cb"))
    for compared, apart in (("steps", True), ("fork", True), ("last", False)):
        model = Table("xabc")
        StepTraining(compared=compared, epochs=30, lr=0.1).fit(
            model, [StepPair(better, worse, 1)], np.random.default_rng(0)
        )
        weights = model.weights.tolist()
        assert (weights[1] > weights[3] + 0.1) is apart and weights[0] == 0


def test_nothing_to_learn_from_and_options_out_of_range() -> None:
    with pytest.raises(UsageError, match="nothing to learn"):
        StepTraining().fit(Table("a"), [StepExample(T, ("a",), (None,))], np.random.default_rng(0))
    for wrong in ({"lr": 0}, {"epochs": 0}, {"margin": -1}, {"warmup": 1}, {"wrong_weight": 0}):
        with pytest.raises(UsageError):
            StepTraining(**wrong)


@pytest.mark.parametrize(
    ("labels", "first"),
    [((1, 0.5, 0), 2), ((1, 1), -1), ((1, None, 0), None), ((0, None), 0), ((), -1), ((0.25, 0), 1)],
)
def test_the_first_wrong_step_of_labels(labels: tuple[float | None, ...], first: int | None) -> None:
    assert truth_of(labels) == first
    assert truth_of((0.25, 0.5), cut=0.25) == 0
