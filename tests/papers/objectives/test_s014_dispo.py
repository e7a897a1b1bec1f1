"""DISPO: weights and gradients by hand-computed numbers, its limits, and what its bounds do over several updates."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from assay.batch import Batch
from assay.errors import UsageError
from assay.method import make_method
from assay.objectives.cispo import CISPO
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.policy_gradient import PolicyGradient
from assay.papers.objectives.s014_dispo import FourWayClip
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Ask, Group, Task, Verdict

RHO = [0.5, 1.0, 3.0]


def gradient(objective, batch, logprobs):
    here = logprobs.clone().requires_grad_()
    loss = objective(here, batch)
    (found,) = torch.autograd.grad(loss.value, here)
    return found, loss


def two_responses(make_batch):
    """The same three ratios in a response of advantage 1 and in one of advantage -1."""
    batch = make_batch([3, 3])
    batch.advantages = torch.tensor([[1.0] * 3, [-1.0] * 3], dtype=torch.float64)
    return batch, torch.tensor([RHO, RHO], dtype=torch.float64).log()


def test_the_worked_example(make_batch):
    batch, logprobs = two_responses(make_batch)
    found, loss = gradient(FourWayClip(right_low=0.2, right_high=0.5, wrong_low=0.9, wrong_high=4), batch, logprobs)
    assert found[0].tolist() == pytest.approx([-0.133333, -0.166667, -0.25], abs=1e-6)
    assert found[1].tolist() == pytest.approx([0.083333, 0.166667, 0.5], abs=1e-6)
    assert loss.metrics["dispo/right/up"] == loss.metrics["dispo/wrong/down"] == pytest.approx(1 / 6)
    weights = {k: v for k, v in loss.metrics.items() if k.endswith("weight")}
    want = {"right/up": 1.5, "right/down": 0.8, "wrong/up": 3.0, "wrong/down": 0.5}
    assert weights == pytest.approx({f"dispo/{k}/weight": v for k, v in want.items()})
    assert loss.metrics["clip_fraction"] == pytest.approx(2 / 6)


def test_the_four_bounds_that_a_method_starts_with(make_batch):
    """Ratios of 0.1 and 10: weights 0.8 and 1.5 where right, 0.1 (no floor) and 5 where wrong; divided by 4 tokens."""
    batch = make_batch([2, 2])
    batch.advantages = torch.tensor([[1.0] * 2, [-1.0] * 2], dtype=torch.float64)
    logprobs = torch.tensor([[0.1, 10.0]] * 2, dtype=torch.float64).log()
    for objective in (FourWayClip(), make_method("S014").objective):
        found, _ = gradient(objective, batch, logprobs)
        assert found.flatten().tolist() == pytest.approx([-0.2, -0.375, 0.025, 1.25])
        assert objective.words() == (
            "token, constant",
            "weight in [0.8, 1.5] where A > 0, [0, 5] where A < 0, gradient kept",
        )


def test_each_regime_has_its_share_and_its_mean_weight(make_batch):
    """Ten tokens of ratios 0.7, 1, 1.5, 3 with A = 1, 0.5, 0.7, 10 with A = -1, and 10, 0.1 with A = 0."""
    batch = make_batch([4, 3, 3])
    batch.advantages = torch.tensor([[1.0] * 4, [-1.0] * 3 + [0], [0.0] * 4], dtype=torch.float64)
    ratios = [[0.7, 1.0, 1.5, 3.0], [0.5, 0.7, 10.0, 1.0], [10.0, 0.1, 1.0, 1.0]]
    _, loss = gradient(FourWayClip(), batch, torch.tensor(ratios, dtype=torch.float64).log())
    found = {k.removeprefix("dispo/"): float(v) for k, v in loss.metrics.items() if k.startswith("dispo/")}
    shares = {"right/up": 0.2, "right/down": 0.1, "wrong/up": 0.1, "wrong/down": 0.2}
    means = {"right/up": 1.5, "right/down": 0.8, "wrong/up": 5.0, "wrong/down": 0.6}
    assert found == pytest.approx({**shares, **{f"{k}/weight": v for k, v in means.items()}})
    # Clipped are 0.7 and 3 of the right response and 10 of the wrong one; without an advantage nothing is.
    assert float(loss.metrics["clip_fraction"]) == pytest.approx(0.3)


def test_prompts_that_are_all_right_or_all_wrong_are_left_out(make_batch):
    rewards = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    batch = make_batch([2] * 6, rewards, [0, 0, 1, 1, 2, 2], [r > 0 for r in rewards])
    batch.prompt_group = batch.group.clone()
    found = make_method("S014").value(batch)
    assert found.active.tolist() == [False, False, True, True, False, False]
    # Of one right and one wrong the unbiased deviation is 0.7071: advantages of 0.7071 and -0.7071.
    assert found.advantages[2:4, 0].tolist() == pytest.approx([0.707107, -0.707107], abs=1e-5)
    assert found.totals.tokens == 4


def test_equal_bounds_are_cispo(make_batch):
    batch, logprobs = two_responses(make_batch)
    ours = FourWayClip(right_low=0.3, right_high=0.7, wrong_low=0.3, wrong_high=0.7)
    theirs = CISPO(clip_low=0.3, clip_high=0.7)
    for a, b in zip(gradient(ours, batch, logprobs)[0], gradient(theirs, batch, logprobs)[0], strict=True):
        assert torch.equal(a, b)


def test_without_movement_it_is_reinforce_and_beyond_the_bounds_no_gradient_vanishes(make_batch):
    batch, _ = two_responses(make_batch)
    still = torch.zeros(2, 3, dtype=torch.float64)
    assert torch.equal(gradient(FourWayClip(), batch, still)[0], gradient(PolicyGradient(), batch, still)[0])
    far = torch.tensor([[-15.0, 15, 0]] * 2, dtype=torch.float64)
    assert (gradient(FourWayClip(wrong_low=0.9), batch, far)[0] != 0).all()


def probability_after(objective, advantage: float, steps: int = 10) -> float:
    """Of arm 0 of two, after ``steps`` updates at rate 1 on one sample of it, drawn at one half."""
    policy = TabularPolicy(Tree.bandit(2))
    (episode,) = policy.leaf_episodes(torch.tensor([0]))
    batch = Batch.from_groups([Group(Ask(Task("t", ""), 1), (episode,), (Verdict.right(),))], torch.float64)
    batch.advantages[:] = advantage
    for _ in range(steps):
        (slope,) = torch.autograd.grad(objective(policy.forward(batch).logprobs, batch).value, policy.logits)
        with torch.no_grad():
            policy.logits -= slope
    return float(policy.leaf_logprobs().detach().exp()[0])


def test_many_updates_on_one_sample():
    ppo, ours = ClippedSurrogate(clip_high=0.28), FourWayClip(right_low=0.2, right_high=0.5)
    assert probability_after(ppo, 1.0) == pytest.approx(0.7311, abs=5e-5)
    assert probability_after(ours, 1.0) == pytest.approx(0.9685, abs=5e-5)
    assert probability_after(ppo, -1.0) == pytest.approx(0.2689, abs=5e-5)
    assert probability_after(replace(ours, wrong_low=0.9), -1.0) == pytest.approx(0.0209, abs=5e-5)
    collapsed = probability_after(replace(ours, wrong_low=0.2), -1.0)
    assert collapsed == pytest.approx(3.9e-7, rel=0.02)


def test_a_falling_weight_is_what_keeps_a_suppressed_token_alive():
    ends = [probability_after(FourWayClip(wrong_low=low), -1.0) for low in (0.2, 0.5, 0.9, 1.0)]
    assert ends == sorted(ends) and ends[-1] > 1e4 * ends[0]


def test_advantages_of_zero_are_idle(make_batch):
    batch, logprobs = two_responses(make_batch)
    batch.advantages[1] = 0
    found, loss = gradient(FourWayClip(), batch, logprobs)
    assert not found[1].any()
    assert "dispo/wrong/up/weight" not in loss.metrics


def test_options():
    method = make_method("S014", objective={"right_high": 0.28})
    assert method.objective.right_high == 0.28 and method.objective.wrong_high == 4.0
    for bad in ({"right_low": 1.5}, {"wrong_high": -0.1}, {"wrong_low": -1.0}):
        with pytest.raises(UsageError, match="S014"):
            make_method("S014", objective=bad)
    assert math.isclose(FourWayClip().correction_cap, 2.0)
    edge = FourWayClip(right_low=0.0, right_high=0.0, wrong_low=1.0, wrong_high=0.0)
    assert edge.words()[1].startswith("weight in [1, 1] where A > 0, [0, 1] where A < 0")
