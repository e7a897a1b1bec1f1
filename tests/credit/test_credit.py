"""Group-relative advantages, by hand and by their invariances."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.credit.base import Credit
from assay.credit.grpo import GRPO
from assay.registry import build


def advantages(make_batch, rewards, credit=None, **options):
    batch = make_batch(options.pop("lengths", [1] * len(rewards)), rewards=rewards, **options)
    return (credit or GRPO())(batch)


@pytest.mark.parametrize(
    ("rewards", "credit", "expected"),
    [
        ([1, 0, 0, 0], GRPO(), [1.5, -0.5, -0.5, -0.5]),
        ([1, 0, 0, 0], GRPO(ddof=0), [1.7320508, -0.5773503, -0.5773503, -0.5773503]),
        ([1, 0, 0, 0], GRPO(normalise=False), [0.75, -0.25, -0.25, -0.25]),
        ([1, 0, 0, 1], GRPO(), [0.8660254, -0.8660254, -0.8660254, 0.8660254]),
    ],
)
def test_by_hand(make_batch, rewards, credit, expected):
    got = advantages(make_batch, [float(r) for r in rewards], credit)[:, 0].tolist()
    assert got == pytest.approx(expected, abs=1e-5)  # the 1e-6 added to the deviation moves the sixth digit


def test_epsilon_is_added_to_the_deviation(make_batch):
    got = advantages(make_batch, [1.0, 0.0, 0.0, 0.0], GRPO(epsilon=0.5))[:, 0].tolist()
    assert got == pytest.approx([0.75, -0.25, -0.25, -0.25], abs=1e-12)  # the deviation is 0.5 too


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 0.7, -1 / 3])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 19])
def test_equal_rewards_give_exact_zeros(make_batch, size, value, dtype):
    batch = make_batch([2] * size, rewards=[value] * size)
    batch.rewards = batch.rewards.to(dtype)
    for credit in (GRPO(), GRPO(ddof=0), GRPO(normalise=False)):
        assert torch.count_nonzero(credit(batch)) == 0


def test_a_group_of_one_says_nothing(make_batch):
    assert advantages(make_batch, [0.3]).tolist() == [[0.0]]


def test_abstained_samples_leave_the_statistics(make_batch):
    got = advantages(make_batch, [1.0, 0.0, 0.0, 0.0, math.nan], valid=[True] * 4 + [False])
    assert got[:, 0].tolist() == pytest.approx([1.5, -0.5, -0.5, -0.5, 0.0], abs=1e-5)


def test_dropped_samples_leave_the_statistics(make_batch):
    weights = torch.tensor([1.0, 1, 1, 1, 0], dtype=torch.float64)
    got = advantages(make_batch, [1.0, 0.0, 0.0, 0.0, 1.0], weights=weights)
    assert got[:, 0].tolist() == pytest.approx([1.5, -0.5, -0.5, -0.5, 0.0], abs=1e-5)


def test_interleaved_groups_do_not_mix(make_batch):
    got = advantages(make_batch, [1.0, 5.0, 0.0, 5.0, 0.0, 9.0, 0.0, 9.0], groups=[0, 1, 0, 1, 0, 1, 0, 1])
    assert got[0::2, 0].tolist() == pytest.approx([1.5, -0.5, -0.5, -0.5], abs=1e-5)
    assert got[1::2, 0].tolist() == pytest.approx([-0.8660254, -0.8660254, 0.8660254, 0.8660254], abs=1e-5)


def test_every_token_of_a_response_gets_the_same_and_padding_none(make_batch):
    got = advantages(make_batch, [1.0, 0.0], GRPO(normalise=False), lengths=[1, 3])
    assert got.tolist() == [[0.5, 0.0, 0.0], [-0.5, -0.5, -0.5]]


def test_tokens_the_policy_did_not_write_get_none(make_batch):
    batch = make_batch([3, 3], rewards=[1.0, 0.0])
    batch.mask[0, 1] = False
    assert GRPO(normalise=False)(batch).tolist() == [[0.5, 0.0, 0.5], [-0.5, -0.5, -0.5]]


rewards = st.lists(st.integers(-50, 50).map(lambda i: i / 10), min_size=2, max_size=10)


@given(rewards, st.floats(0.1, 10), st.floats(-5, 5))
def test_a_change_of_unit_or_origin_changes_nothing(make_batch, values, scale, shift):
    assume(len(set(values)) > 1)
    credit = GRPO(epsilon=0.0)
    expected = advantages(make_batch, values, credit)
    got = advantages(make_batch, [scale * v + shift for v in values], credit)
    assert got[:, 0].tolist() == pytest.approx(expected[:, 0].tolist(), abs=1e-8)


@given(rewards)
def test_advantages_of_a_group_sum_to_zero_with_unit_variance(make_batch, values):
    assume(len(set(values)) > 1)
    got = advantages(make_batch, values, GRPO(epsilon=0.0))[:, 0]
    assert got.sum().item() == pytest.approx(0.0, abs=1e-9)
    assert got.var().item() == pytest.approx(1.0, abs=1e-9)


def test_it_is_built_by_name():
    made = build("credit", {"name": "grpo", "normalise": False})
    assert isinstance(made, Credit)
    assert made == GRPO(normalise=False)
    assert made.group_relative
