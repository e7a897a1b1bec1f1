"""Clip and Delta: the worked scores, their returns, and that filler steps do not pay."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from claimed import learned
from hypothesis import given
from hypothesis import strategies as st
from running import metrics, run

from assay.errors import UsageError
from assay.method import make_method
from assay.returns import placed_rewards, returns_to_go
from assay.rewards.process.bounded_steps import BoundedSteps, bound_scores
from assay.signals.steps import Steps
from assay.types import Task

WORKED = (0.9, 0.7, 0.95, 0.4)


def bounded(scores, bound, eta=0.8):
    p = torch.tensor([list(scores)], dtype=torch.float64)
    return bound_scores(p, torch.ones_like(p, dtype=torch.bool), bound, eta)[0]


def solved(make_batch, rows, part, size=1, passed=None, mask=None):
    """A batch whose responses have these step scores p, ``size`` tokens a step; what the reward is."""
    tasks = [Task("t", "?", "4")] * len(rows)
    batch = make_batch([size * len(r) for r in rows], [1.0] * len(rows), passed=passed, tasks=tasks)
    if mask is not None:
        batch.mask &= torch.tensor(mask)
    steps, scores = torch.full(batch.tokens.shape, -1), torch.zeros_like(batch.logprobs)
    for i, row in enumerate(rows):
        for k, p in enumerate(row):
            steps[i, size * k : size * (k + 1)] = k
            scores[i, size * (k + 1) - 1] = 2 * p - 1
    batch.signals = {"steps": steps, "step_scores": scores}
    return batch, part(batch)


def test_the_worked_scores():
    wanted = {
        "clip": [0, -0.1, 0, -0.4],
        "delta": [0.2, -0.25, 0.95, 0],
        "clip_delta": [0.1, -0.1, 0, 0],
        "none": list(WORKED),
        "mean": [p / 4 for p in WORKED],
    }
    for bound, numbers in wanted.items():
        assert bounded(WORKED, bound).tolist() == pytest.approx(numbers, abs=1e-6)
    assert bounded(WORKED, "delta").flip(0).cumsum(0).flip(0).tolist() == pytest.approx([0.9, 0.7, 0.95, 0])
    assert bounded((0.9,), "delta").tolist() == [0.0]
    assert bounded((0.9,), "mean").tolist() == [0.9]
    # What is no step of the response has no reward, and is not counted.
    p, known = torch.tensor([[0.9, 0.2, 0.5]], dtype=torch.float64), torch.tensor([[True, False, True]])
    for bound, numbers in (("none", [0.9, 0, 0.5]), ("mean", [0.45, 0, 0.25]), ("delta", [0.9, 0, 0])):
        assert bound_scores(p, known, bound, 0.8)[0].tolist() == pytest.approx(numbers)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0, 1))
def test_returns_are_bounded(scores, eta):
    returns = bounded(scores, "delta").flip(0).cumsum(0).flip(0)
    assert returns.tolist() == pytest.approx([*scores[:-1], 0.0], abs=1e-9)
    assert bounded(scores, "clip", eta).max() <= 0
    clipped = [min(p - eta, 0) for p in scores]
    found = bounded(scores, "clip_delta", eta).flip(0).cumsum(0).flip(0)
    assert found.tolist() == pytest.approx([*clipped[:-1], 0.0], abs=1e-9)


@pytest.mark.parametrize(
    ("bound", "totals"),
    [("none", [2.55, 3.45, 7.05, 20.55]), ("clip", [-0.1] * 4), ("delta", [0.7, 0.9, 0.9, 0.9])],
)
def test_filler_steps(bound, totals):
    found = [bounded([0.9] * n + [0.7, 0.95, 0.9], bound).sum().item() for n in (0, 1, 5, 20)]
    assert found == pytest.approx(totals)


@pytest.mark.parametrize("size", [1, 3])
def test_where_rewards_stand(make_batch, size):
    part = BoundedSteps(bound="delta", alpha=0.1)
    batch, reward = solved(make_batch, [WORKED, (0.0, 1.0)], part, size)
    wanted = torch.zeros(2, 4 * size, dtype=torch.float64)
    wanted[0, size - 1 :: size] = torch.tensor([0.02, -0.025, 0.095, 0.0], dtype=torch.float64)
    assert torch.allclose(reward.tokens, wanted, atol=1e-6)
    assert reward.values.tolist() == [1.0, 1.0] and reward.valid.all()
    batch.rewards, batch.token_rewards = reward.values, reward.tokens
    returns = returns_to_go(placed_rewards(batch), batch.mask)
    assert returns[0, ::size].tolist() == pytest.approx([1.09, 1.07, 1.095, 1.0], abs=1e-6)


def test_weights_unless_told_otherwise(make_batch):
    """eta 1/2: clipped to (0, -0.3, -0.1), of which Delta is (0.3, -0.3, 0), of weight 0.02."""
    for part in (make_method("S115").reward, BoundedSteps()):
        _, reward = solved(make_batch, [(0.9, 0.2, 0.4)], part)
        assert reward.tokens[0].tolist() == pytest.approx([0.006, -0.006, 0])
        assert reward.values.tolist() == [1.0]


def test_the_last_step_counts_when_clipped(make_batch):
    _, reward = solved(make_batch, [(0.9, 0.3)], BoundedSteps(bound="clip", alpha=1.0))
    assert reward.tokens[0].tolist() == pytest.approx([0, -0.2])
    assert reward.terms["steps"].tolist() == pytest.approx([-0.2])


def test_a_step_without_learnable_tokens_is_stepped_over(make_batch):
    part = BoundedSteps(bound="delta", alpha=1.0)
    _, reward = solved(make_batch, [WORKED], part, mask=[[True, False, True, True]])
    assert reward.tokens[0].tolist() == pytest.approx([0.9 - 0.95, 0, 0.95, 0], abs=1e-6)


def test_failures_and_missing_references(make_batch):
    batch, _ = solved(make_batch, [WORKED] * 3, BoundedSteps(), passed=[True, None, None])
    batch.tasks[2] = Task("open", "?")
    batch.signals["step_scores"][0] = math.nan
    reward = BoundedSteps()(batch)
    assert reward.valid.tolist() == [False, False, True]
    assert reward.values.tolist() == [0 + 1.0, 0, 0] and not reward.tokens.isnan().any()


def test_without_weight_it_is_the_verdict(make_batch):
    _, reward = solved(make_batch, [WORKED], BoundedSteps(alpha=0.0))
    assert not reward.tokens.any() and reward.values.tolist() == [1.0]


def test_options():
    method = make_method("S115", reward={"bound": "clip", "eta": 0.3, "steps": Steps("fixed", 2)})
    assert method.reward.bound == "clip" and method.reward.eta == 0.3
    assert "signal" not in repr(BoundedSteps())
    assert BoundedSteps(eta=0.0).eta == 0 and BoundedSteps(eta=1.0).eta == 1
    for bad in ({"eta": 1.5}, {"eta": -0.1}, {"alpha": -1.0}):
        with pytest.raises(UsageError, match="bounded_steps"):
            BoundedSteps(**bad)


def halves(task: Task, steps: list[str]) -> list[float]:
    """A scorer that thinks well of the first step and badly of the others."""
    return [0.8 if k == 0 else -0.8 for k in range(len(steps))]


@pytest.mark.parametrize("credit", ["reinforce++", "gae"])
def test_a_run_is_paid_for_its_steps(tmp_path: Path, credit: str) -> None:
    """Hardly a response is right, but each is paid for steps of one token: 0.9, 0.1, ... bring 0.1 - eta = -0.4."""
    options = {"prm": f"{__file__}:halves", "steps": {"by": "fixed", "size": 1}, "alpha": 1.0, "bound": "clip"}
    folder = run(
        tmp_path / "run",
        method={"name": "S115", "reward": None, "credit": credit, "options": options},
        warmup={"steps": 0},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    for row in (row for row in metrics(folder) if row["stage"] == "rl"):
        assert row["reward/steps"] == pytest.approx(-0.4 * (row["length/mean"] - 1), abs=1e-5)
        assert row["grad_norm"] > 0


@pytest.mark.slow
def test_a_policy_learns_fewer_useless_steps_than_from_the_sum() -> None:
    bounded, summed = (learned("S115", arm, steps=20) for arm in ("clip_delta", "none"))
    assert bounded["useless"] < bounded["start/useless"] < summed["useless"]
    assert bounded["solved"] > bounded["start/solved"] + 0.2
