"""Uncertainty-aware advantages: the worked example, the clamp, GRPO as the limit, and where the signals come from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.batch import Batch
from assay.catalogue import make
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.learning.signals import compute_signals
from assay.learning.update import update
from assay.method import Method, make_method
from assay.papers.objectives.s078_ucas import UncertaintyShaped, unit_range
from assay.policies.tabular import TabularPolicy, Tree
from assay.signals.base import Models
from assay.types import Ask, Episode, Group, Task, Verdict


def batch_of(
    rewards: list[float], confidence: list[float], logits: list[list[float]], passed: list[bool | None] | None = None
) -> Batch:
    """One group; ``confidence`` is the self-certainty of every token of a response."""
    episodes = [
        Episode(np.zeros(0, np.int64), np.zeros(n, np.int64), np.ones(n, bool), np.zeros(n, np.float32), "", "eos")
        for n in map(len, logits)
    ]
    judged = passed or [r > 0 for r in rewards]
    verdicts = tuple(Verdict(r, p) for r, p in zip(rewards, judged, strict=True))
    batch = Batch.from_groups([Group(Ask(Task("t", "?"), len(rewards)), tuple(episodes), verdicts)], torch.float64)
    width = batch.mask.shape[1]
    padded = [row + [99.0] * (width - len(row)) for row in logits]
    batch.signals = {
        "policy_self_certainty": torch.tensor(confidence, dtype=torch.float64)[:, None].expand(-1, width).clone(),
        "policy_logit": torch.tensor(padded, dtype=torch.float64),
    }
    return batch


R, C = [1.0, 0.0, 1.0, 0.0], [10.0, 12.0, 14.0, 16.0]
LOGITS = [[5.0, 20.0, 35.0], [5.0, 5.0, 5.0], [5.0], [5.0, 5.0]]


def advantages(batch: Batch, **options: Any) -> torch.Tensor:
    return make("S078", **options).value(batch).advantages


def test_the_worked_example() -> None:
    shaped = advantages(batch_of(R, C, LOGITS), token=0.0)
    assert shaped[:, 0].tolist() == pytest.approx([1.1579, -0.7562, 0.7861, -1.3006], abs=5e-5)
    found = advantages(batch_of(R, C, LOGITS))
    assert found[0].tolist() == pytest.approx([1.1579, 1.1329, 1.1079], abs=5e-5)
    assert found[1:, 0].tolist() == pytest.approx([-0.7562, 0.7861, -1.3006], abs=5e-5)


def test_without_the_division_by_the_deviation() -> None:
    """Advantages of 0.5 and -0.5 times W = 1.3371, 0.8732, 0.9077, 1.5018."""
    found = advantages(batch_of(R, C, LOGITS), token=0.0, normalise=False)
    assert found[:, 0].tolist() == pytest.approx([0.66855, -0.4366, 0.45385, -0.7509], abs=5e-5)
    words = {
        normalise: make("S078", normalise=normalise).credit.summary["normalisation"] for normalise in (True, False)
    }
    assert words == {True: "group std", False: "none"}


def test_the_credit_by_itself_has_the_papers_weights() -> None:
    assert torch.equal(
        Method(credit=UncertaintyShaped()).value(batch_of(R, C, LOGITS)).advantages, advantages(batch_of(R, C, LOGITS))
    )
    assert UncertaintyShaped(0.0, 0.0, 0.0).needs == {"policy_self_certainty", "policy_logit"}
    for bad in ({"right": -0.1}, {"wrong": -0.1}, {"token": -0.1}):
        with pytest.raises(UsageError, match="negative"):
            UncertaintyShaped(**bad)


def test_confidences_that_hardly_differ_are_hardly_told_apart() -> None:
    """A deviation of 1e-6, as much as is added to it: c = -+0.353553 in place of -+0.707107."""
    found = advantages(batch_of([1.0, 0.0], [0.0, 2**0.5 * 1e-6], [[1.0], [1.0]]), token=0.0)[:, 0]
    assert found.tolist() == pytest.approx(
        [0.707107 * math.exp(0.25 * 0.353553), -0.707107 * math.exp(0.35 * 0.353553)], abs=5e-6
    )


def test_a_right_response_is_not_pushed_below_zero_and_a_wrong_one_is_pushed_further() -> None:
    batch = batch_of(R, C, LOGITS)
    found = advantages(batch, token=5.0)
    assert found[0].tolist() == pytest.approx([1.1579, 0.0, 0.0], abs=5e-5)
    batch.signals["policy_logit"][1] = torch.tensor([5.0, 35.0, 5.0])
    assert advantages(batch, token=5.0)[1].tolist() == pytest.approx([-0.7562, -5.7562, -0.7562], abs=5e-5)


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.floats(-5, 5), st.integers(0, 4)), min_size=2, max_size=6))
def test_without_its_weights_it_is_grpo(samples: list[tuple[float, float, int]]) -> None:
    batch = batch_of([s[0] for s in samples], [s[1] for s in samples], [[s[1]] * s[2] for s in samples])
    found = advantages(batch, right=0.0, wrong=0.0, token=0.0)
    assert torch.allclose(found, Method(credit=GRPO()).value(batch).advantages, atol=1e-12)


@pytest.mark.slow
@given(st.integers(0, 3), st.floats(-3, 3))
def test_signs_of_the_first_stage_are_those_of_grpo(which: int, shift: float) -> None:
    confidence = list(C)
    confidence[which] += shift
    found = advantages(batch_of(R, confidence, LOGITS), token=0.0)[:, 0]
    plain = Method(credit=GRPO()).value(batch_of(R, confidence, LOGITS)).advantages[:, 0]
    assert torch.equal(found.sign(), plain.sign())


def test_surer_wrong_responses_cost_more_and_surer_right_ones_earn_less() -> None:
    found = advantages(batch_of([1.0, 1.0, 0.0, 0.0], [1.0, 2.0, 1.0, 2.0], [[1.0]] * 4), token=0.0)[:, 0]
    assert found[0] > found[1] > 0 > found[2] > found[3]


def test_the_sum_of_confidences_counts_length_and_the_mean_does_not() -> None:
    logits = [[1.0], [1.0] * 4, [1.0] * 2, [1.0] * 3]
    even = advantages(batch_of(R, [2.0] * 4, logits), token=0.0)[:, 0]
    plain = Method(credit=GRPO()).value(batch_of(R, [2.0] * 4, logits)).advantages[:, 0]
    assert torch.allclose(even, plain, atol=1e-9)
    summed = advantages(batch_of(R, [2.0] * 4, logits), token=0.0, confidence="sum")[:, 0]
    assert summed[1] < plain[1] and summed[0] > plain[0]


def test_equal_logits_are_in_the_middle_and_padding_does_not_count() -> None:
    mask = torch.tensor([[True, True, False], [True, False, False]])
    x = torch.tensor([[1.0, 3.0, 99.0], [2.0, -99.0, 0.0]])
    assert torch.where(mask, unit_range(x, mask), 0).tolist() == [[0, 1, 0], [0.5, 0, 0]]
    assert unit_range(torch.full((2, 3), 7.0), mask).unique().tolist() == [0.5]
    assert not bool(unit_range(x, torch.zeros_like(mask)).any())


def test_a_group_of_equal_rewards_keeps_the_penalty_on_tokens_alone() -> None:
    found = advantages(batch_of([1.0, 1.0], [3.0, 9.0], [[0.0, 4.0], [2.0]]))
    assert found.flatten().tolist() == pytest.approx([0.0, -0.05, -0.025, 0.0])


def test_abstentions_and_empty_responses_are_not_compared_with() -> None:
    batch = batch_of([*R, 0.0, 1.0], [*C, 1e6, 1e6], [*LOGITS, [500.0], []], [True, False, True, False, None, True])
    found = advantages(batch, right=0.5)
    without = batch_of([*R, 1.0], [*C, 0.0], [*LOGITS, []])
    assert torch.allclose(found[:4], advantages(without, right=0.5)[:4], atol=1e-9)
    assert not bool(found[4:].any())


def test_a_lone_confident_response_is_no_nan() -> None:
    assert advantages(batch_of([1.0], [1e6], [[2.0]])).tolist() == [[-0.025]]


def test_self_certainty_by_hand_and_through_the_policy() -> None:
    z = torch.tensor([[2.0, 1.0, 0.0]], dtype=torch.float64)
    policy = TabularPolicy(Tree.bandit(3, [1, 0, 0]), z)
    verdicts = (Verdict.right(), Verdict.wrong(), Verdict.wrong())
    group = Group(Ask(Task("t", ""), 3), tuple(policy.leaf_episodes(torch.arange(3))), verdicts)
    batch = Batch.from_groups([group], torch.float64)
    method = make("S078")
    compute_signals(batch, method.needs, Models(policy, temperature=0.5))
    assert batch.signals["policy_self_certainty"].flatten().tolist() == pytest.approx([1.407606] * 3, abs=1e-6)
    assert 1.407606 - math.log(3) == pytest.approx(0.308994, abs=1e-6)
    assert batch.signals["policy_logit"].flatten().tolist() == [2, 1, 0]
    found = method.value(batch).advantages.flatten()
    plain = Method(credit=GRPO()).value(batch).advantages.flatten()
    assert (plain - found).tolist() == pytest.approx([0.05, 0.025, 0.0])


def test_it_does_not_fit_an_objective_of_whole_responses() -> None:
    assert make("S078").group_relative
    with pytest.raises(UsageError, match="gspo"):
        make_method("S078", objective="gspo")
    with pytest.raises(UsageError, match="negative"):
        make("S078", token=-0.1)


def test_an_update_moves_the_logits_by_the_shaped_advantages() -> None:
    """Logits 2, 1, 0, one response each, the first right: GRPO's 1.1547, -0.5774, -0.5774 less 0.05, 0.025, 0.

    With p = 0.665241, 0.244728, 0.090031 a step of size 1 on the mean of three tokens is (A - p sum A) / 3.
    """
    policy = TabularPolicy(Tree.bandit(3, [1, 0, 0]), torch.tensor([[2.0, 1.0, 0.0]], dtype=torch.float64))
    before = policy.logits.detach().clone()
    verdicts = (Verdict.right(), Verdict.wrong(), Verdict.wrong())
    group = Group(Ask(Task("t", ""), 3), tuple(policy.leaf_episodes(torch.arange(3))), verdicts)
    batch, method = Batch.from_groups([group], torch.float64), make("S078")
    compute_signals(batch, method.needs, Models(policy))
    method.value(batch)
    optimizer = torch.optim.SGD(policy.module.parameters(), lr=1.0)
    update(policy, method.objective, batch, optimizer, max_grad_norm=math.inf)
    moved = (policy.logits.detach() - before)[0].tolist()
    assert moved == pytest.approx([0.384865, -0.194665, -0.190199], abs=5e-6)
