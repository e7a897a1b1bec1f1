"""S191: both orders by the same weights, their fusion by hand, and what only a later step shows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from assay import catalogue
from assay.errors import UsageError
from assay.inference.supervision.searches import Along
from assay.inference.supervision.train import fit_prm
from assay.rewards.step_models.both_ways import BothWays, Gate, fused
from assay.rewards.step_models.examples import StepExample
from assay.rewards.step_models.losses import labelled_loss
from assay.rewards.step_models.training import StepTraining
from assay.types import Task

T = Task("t", "q")


def z(*chances: float) -> torch.Tensor:
    return torch.tensor(chances, dtype=torch.float64).logit()


class Flags:
    """Scores a step .9, or .1 where the steps read so far contradict it, ``not x`` and ``x``; notes what it read."""

    def __init__(self):
        self.seen: list[tuple[str, ...]] = []
        self.shift = torch.zeros((), dtype=torch.float64, requires_grad=True)
        self.learning: list[bool] = []

    def read(self, rows):
        out = []
        for row in rows:
            self.seen.append(row.steps)
            p = [
                0.1 if any({a, b} == {f"not {a}", a} or {a, b} == {f"not {b}", b} for a in row.steps[:k]) else 0.9
                for k, b in enumerate(row.steps)
            ]
            out.append((z(*p) + self.shift, torch.arange(len(p), dtype=torch.float64)[:, None]))
        return out

    def views(self, rows):
        return [[a for a, _ in self.read(rows)]]

    def train(self, learning):
        self.learning.append(learning)

    def groups(self, lr, trunk_lr):
        return [{"params": [self.shift], "lr": lr}]

    def parts(self, rows):
        return [list(range(len(rows)))] if rows else []

    def save(self, folder):
        raise NotImplementedError


def test_scores_are_fused_in_the_order_of_steps() -> None:
    ahead, back = torch.tensor([[0.9, 0.6, 0.8], [0.8, 0.2, 0.7]], dtype=torch.float64)
    assert fused(ahead, back).tolist() == pytest.approx([0.85, 0.4, 0.75])
    gate = torch.tensor([0.0, 1.0, -1.0], dtype=torch.float64).sigmoid()
    assert fused(ahead, back, gate).tolist() == pytest.approx([0.85, 0.492423, 0.726894], abs=1e-6)

    class Places(Flags):
        """A step's score says where it was read."""

        def read(self, rows):
            found = [torch.arange(1.0, len(row.steps) + 1, dtype=torch.float64) / 10 for row in rows]
            return [(p, p[:, None]) for p in found]

    [row] = BothWays(Places()).scores([(T, ["a", "b", "c", "d"])])
    # Read first forwards and last backwards, and so on: .1 and .4, .2 and .3.
    assert row == pytest.approx([2 / (1 + math.exp(-0.25)) - 1] * 4)


def test_the_same_weights_read_both_ways() -> None:
    flags = Flags()
    made = BothWays(flags)
    one = made.scores([(T, ["a"])])
    assert flags.seen == [("a",), ("a",)] and one[0] == pytest.approx(flags_alone(["a"]))
    flags.seen.clear()
    turned = made.scores([(T, ["a", "b", "not a"])])[0]
    assert flags.seen == [("a", "b", "not a"), ("not a", "b", "a")]
    # Reversing the steps reverses the scores.
    assert made.scores([(T, ["not a", "b", "a"])])[0] == pytest.approx(turned[::-1])


def flags_alone(steps: list[str]) -> list[float]:
    [(found, _)] = Flags().read([StepExample(T, tuple(steps))])
    return (2 * found.detach().sigmoid() - 1).tolist()


def test_what_only_a_later_step_shows() -> None:
    steps = ["a", "b", "not a"]
    assert flags_alone(steps) == pytest.approx([0.8, 0.8, -0.8])
    # Read in order the first step is fine; read both ways its chance drops from .9 to the mean of .9 and .1.
    found = [(1 + x) / 2 for x in BothWays(Flags()).scores([(T, steps)])[0]]
    assert found == pytest.approx([0.5, 0.9, 0.5])


def test_a_gate_weighs_what_it_reads() -> None:
    gate = Gate(1).double()
    made = BothWays(Flags(), gate)
    mean = BothWays(Flags()).scores([(T, ["a", "b", "not a"])])[0]
    assert made.scores([(T, ["a", "b", "not a"])])[0] == pytest.approx(mean)  # it begins at one half
    with torch.no_grad():
        gate.inner.weight.copy_(torch.tensor([[-1.0, 1.0]]))
        gate.inner.bias.zero_()
        gate.outer.weight.fill_(-1.0)
    found = torch.tensor([(1 + x) / 2 for x in made.scores([(T, ["a", "b", "not a"])])[0]], dtype=torch.float64)
    # Backwards the states are 2, 1 and 0 for the steps 0, 1 and 2: what is above 0 of 2, 0 and -2 lowers the weight.
    weight = [1 / (1 + math.exp(h)) for h in (2, 0, 0)]
    ahead, back = z(0.9, 0.9, 0.1).tolist(), z(0.1, 0.9, 0.9).tolist()
    assert found.logit().tolist() == pytest.approx(
        [w * a + (1 - w) * b for w, a, b in zip(weight, ahead, back, strict=True)], abs=1e-6
    )
    # It learns to trust the order that is right.
    row = StepExample(T, ("a", "b", "not a"), (0.0, 1.0, None))
    history = StepTraining("hard", epochs=40, lr=0.1).fit(made, [row], np.random.default_rng(0))
    assert history[-1] < history[0] and made.scores([(T, list(row.steps))])[0][0] < -0.2


def test_the_gate_leaves_the_states_alone() -> None:
    """Of z = 2 x and h = x the gradient is that of z alone, 2, whatever the gate says of h; the gate itself learns."""

    class Stated(Flags):
        def read(self, rows):
            x = self.shift + 1.0
            return [((2 * x).expand(len(row.steps)), x.expand(len(row.steps), 1)) for row in rows]

    model, gate = Stated(), Gate(1).double()
    with torch.no_grad():
        gate.outer.weight.fill_(3.0)
        gate.inner.weight.fill_(1.0)
        gate.inner.bias.zero_()
    [(found, _)] = BothWays(model, gate).read([StepExample(T, ("a",))])
    assert torch.autograd.grad(found.sum(), model.shift)[0].item() == pytest.approx(2)
    # Where the orders differ, the one that should count more gets more weight.
    ahead, back = z(0.9), z(0.1)
    weight = gate(torch.ones(1, 1).double(), torch.ones(1, 1).double())
    assert weight.item() == pytest.approx(1 / (1 + math.exp(-6)))
    slope = torch.autograd.grad(fused(ahead, back, weight).sum(), gate.outer.bias)[0]
    assert slope.item() == pytest.approx((ahead - back).item() * (weight * (1 - weight)).item())


def test_both_orders_learn_the_same_labels() -> None:
    row = StepExample(T, ("a", "b", "not a"), (0.0, 1.0, None))
    flags = Flags()
    [piece] = StepTraining("soft").pieces(BothWays(flags), [row])
    ahead = labelled_loss(z(0.9, 0.9, 0.1), [0.0, 1.0, None])
    back = labelled_loss(z(0.1, 0.9, 0.9), [0.0, 1.0, None])
    assert float(piece) == pytest.approx(float(ahead + back) / 2 / 2)
    assert float(piece) == pytest.approx(0.6546667, abs=1e-6)
    # With a gate it is the fused score that learns: .5 and .9.
    [piece] = StepTraining("soft").pieces(BothWays(Flags(), Gate(1).double()), [row])
    assert float(piece) == pytest.approx(-(math.log(0.5) + math.log(0.9)) / 2)
    assert row.reversed.labels == (None, 1.0, 0.0)


def test_three_objectives() -> None:
    assert catalogue.make("S191").training.loss == "hard"
    for loss in ("hard", "soft", "mse", "ranking"):
        made = catalogue.make("S191", loss=loss)
        assert made.training.loss == loss and made.search == Along(4, 8)
        [piece] = made.training.pieces(BothWays(Flags()), [StepExample(T, ("a", "not a"), (0.0, 1.0))])
        assert math.isfinite(float(piece)) and float(piece) > 0
    head = catalogue.make("S191", kind="head", fuse="average")
    assert (head.settings.both_ways, head.settings.kind, head.training.trunk_lr) == ("average", "head", 0.0)
    assert head.training.lr == 0.01 and catalogue.make("S191", training={"lr": 0.5}).training.trunk_lr == 0.5
    assert catalogue.make("S191").training.trunk_lr == 1e-3
    with pytest.raises(UsageError, match="kind"):
        catalogue.make("S191", kind="both")


def test_it_is_fitted_and_measured_like_any_other() -> None:
    """On rows of eight tasks, two of which are kept back; reading both ways is better on what a later step shows."""
    rows: list[Any] = []
    for i in range(8):
        steps, labels = (("a", "b", "not a"), (0.0, 1.0, 1.0)) if i % 2 else (("a", "b", "c"), (1.0, 1.0, 1.0))
        rows.append(StepExample(Task(str(i), "q"), steps, labels))
    rows.append(StepExample(Task("0", "q"), ("b", "not b"), (0.0, 1.0)))
    method = catalogue.make("S191", kind="head", fuse="average", training={"epochs": 1, "lr": 1e-6})
    both, alone = (fit_prm(method, model, rows) for model in (BothWays(Flags()), Flags2()))
    assert both.quality is not None and alone.quality is not None and both.tasks == 6
    assert both.quality.pr_auc is not None and alone.quality.pr_auc is not None
    assert both.quality.pr_auc.value > alone.quality.pr_auc.value


class Flags2(Flags):
    """The same, as a scorer of its own."""

    def scores(self, responses):
        return [flags_alone(steps) for _, steps in responses]
