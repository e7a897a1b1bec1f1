"""The field's credits: by hand, at their limits, under permutation and padding, and without NaN."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.credit.base import Credit
from assay.credit.gae import GAE, generalised_advantages
from assay.credit.gpg import GPG
from assay.credit.grpo import GRPO
from assay.credit.opo import OPO
from assay.credit.reinforce import Reinforce
from assay.credit.reinforce_pp import ReinforcePlusPlus, ReinforcePlusPlusBaseline
from assay.credit.remax import ReMax
from assay.credit.rloo import RLOO
from assay.credit.standardised import Standardised
from assay.errors import UsageError
from assay.ops import whiten
from assay.registry import build
from assay.returns import discounted_sum, placed_rewards, returns_to_go

GROUP = [1.0, 0.0, 0.0, 0.0]
WITHOUT_CRITIC = [
    Reinforce(),
    Reinforce("batch"),
    RLOO(),
    ReinforcePlusPlus(),
    ReinforcePlusPlusBaseline(),
    GRPO(),
    GRPO(normalise=False),
    OPO(),
    GPG(),
    Standardised(),
]
RELATIVE = [c for c in WITHOUT_CRITIC if getattr(c, "group_relative", False)]


def first(credit, batch) -> list[float]:
    """The advantage of each sample's first token."""
    return credit(batch)[:, 0].tolist()


# By hand


@pytest.mark.parametrize(
    ("credit", "rewards", "lengths", "expected"),
    [
        (Reinforce(), GROUP, [1] * 4, GROUP),
        (Reinforce("constant", constant=0.5), GROUP, [1] * 4, [0.5, -0.5, -0.5, -0.5]),
        (Reinforce("batch"), GROUP, [1] * 4, [0.75, -0.25, -0.25, -0.25]),
        (RLOO(), GROUP, [1] * 4, [1.0, -1 / 3, -1 / 3, -1 / 3]),
        (RLOO(), [1.0, 0.0, 0.0, 1.0], [1] * 4, [2 / 3, -2 / 3, -2 / 3, 2 / 3]),
        (OPO(), GROUP, [10, 20, 30, 40], [0.9, -0.1, -0.1, -0.1]),
        (Standardised("group", "none"), GROUP, [1] * 4, [0.75, -0.25, -0.25, -0.25]),
        (Standardised("group", "group", epsilon=0.0), GROUP, [1] * 4, [1.5, -0.5, -0.5, -0.5]),
        (Standardised("none", "none"), GROUP, [1] * 4, GROUP),
    ],
)
def test_one_group_by_hand(make_batch, credit, rewards, lengths, expected):
    assert first(credit, make_batch(lengths, rewards=rewards)) == pytest.approx(expected, abs=1e-12)


def test_lite_ppo_by_hand(make_batch):
    batch = make_batch([1] * 8, rewards=[1.0, 0, 0, 0, 1, 1, 1, 0], groups=[0] * 4 + [1] * 4)
    assert batch.rewards.std().item() == pytest.approx(0.534522, abs=5e-7)
    high, low = 1.403122, 0.467707
    assert first(Standardised(), batch) == pytest.approx([high, -low, -low, -low, low, low, low, -high], abs=1e-6)


def test_a_nearly_solved_group_does_not_blow_up_under_the_batch_deviation(make_batch):
    batch = make_batch([1] * 16, rewards=[1.0] * 7 + [0.0] + [1.0, 0.0] * 4, groups=[0] * 8 + [1] * 8)
    assert GRPO()(batch)[7].item() == pytest.approx(-2.474874, abs=1e-4)
    assert -1.95 < Standardised()(batch)[7].item() < -1.6
    assert Standardised()(batch).abs().max().item() <= (1 - 1 / 8) / batch.rewards.std().item() + 1e-12


@pytest.mark.parametrize("credit", [ReinforcePlusPlus(), ReinforcePlusPlusBaseline()])
def test_reinforce_pp_by_hand(make_batch, credit):
    got = credit(make_batch([2, 3], rewards=[1.0, 0.0]))
    expected = [[1.095445, 1.095445, 0.0], [-0.730297] * 3]
    assert torch.allclose(got, torch.tensor(expected, dtype=torch.float64), atol=1e-6)


def test_reinforce_pp_discounts_and_adds_token_rewards(make_batch):
    batch = make_batch([3, 1], rewards=[1.0, 0.0])
    batch.token_rewards = torch.tensor([[-0.1, -0.2, -0.3], [-0.5, 9.0, 9.0]], dtype=torch.float64)
    returns = returns_to_go(placed_rewards(batch), batch.mask, 0.5)
    expected = [[-0.1 + 0.5 * (-0.2 + 0.5 * 0.7), -0.2 + 0.5 * 0.7, 0.7], [-0.5, 0, 0]]
    assert torch.allclose(returns, torch.tensor(expected, dtype=torch.float64), atol=1e-12)
    flat = np.array([0.025 - 0.05, 0.15, 0.7, -0.5])
    white = (flat - flat.mean()) / math.sqrt(flat.var(ddof=1) + 1e-8)
    got = ReinforcePlusPlus(discount=0.5)(batch)
    assert got[batch.mask].tolist() == pytest.approx(white.tolist(), abs=1e-9)


def test_outcome_credits_count_rewards_on_tokens(make_batch):
    batch = make_batch([2, 2], rewards=[1.0, 0.0])
    batch.token_rewards = torch.tensor([[-0.25, -0.25], [0.0, 0.0]], dtype=torch.float64)
    assert first(Reinforce(), batch) == [0.5, 0.0]
    assert first(RLOO(), batch) == [0.5, -0.5]
    assert first(GRPO(normalise=False), batch) == [0.25, -0.25]


def test_gpg_scales_by_the_share_of_mixed_groups(make_batch):
    batch = make_batch([1] * 6, rewards=[1.0, 0.0, 1.0, 1.0, 0.0, 0.0], groups=[0, 0, 1, 1, 2, 2])
    assert first(GPG(), batch) == [1.5, -1.5, 0, 0, 0, 0]
    assert torch.count_nonzero(GPG()(make_batch([1, 1], rewards=[1.0, 1.0]))) == 0


# ReMax


def greedy(batch, *rows):
    """Mark rows as greedy responses, which have no learnable tokens."""
    for i, episode in enumerate(batch.episodes):
        if i in rows:
            object.__setattr__(episode, "meta", {"role": "baseline"})
            batch.mask[i] = False
    return batch


def test_remax_by_hand(make_batch):
    batch = make_batch([1] * 5, rewards=[1.0, 0.0, 0.0, 0.0, 1.0])
    batch.prompt_group = torch.zeros(5, dtype=torch.int64)
    assert first(ReMax(), greedy(batch, 4)) == [0.0, -1.0, -1.0, -1.0, 0.0]
    assert batch.count().sequences == 4


def test_remax_has_a_baseline_for_each_prompt_and_none_where_its_greedy_response_has_no_reward(make_batch):
    batch = make_batch([1] * 6, rewards=[1.0, 0.25, 1.0, math.nan, 1.0, 0.5], valid=[True] * 3 + [False] + [True] * 2)
    batch.prompt_group = torch.tensor([0, 0, 1, 1, 2, 2])
    assert first(ReMax(), greedy(batch, 1, 3, 5)) == [0.75, 0.0, 0.0, 0.0, 0.5, 0.0]


def test_remax_reads_a_signal(make_batch):
    batch = make_batch([2, 1], rewards=[1.0, 0.0])
    batch.signals["baseline_rewards"] = torch.tensor([0.25, math.nan], dtype=torch.float64)
    assert ReMax()(batch).tolist() == [[0.75, 0.75], [0.0, 0.0]]


def test_remax_without_a_greedy_response_says_what_to_do(make_batch):
    with pytest.raises(UsageError, match="greedy response"):
        ReMax()(make_batch([1], rewards=[1.0]))


# Baselines that move


def test_the_moving_average_is_older_than_the_batch_and_survives_a_checkpoint(make_batch):
    credit = Reinforce("moving", decay=0.5)
    batches = [make_batch([1, 1], rewards=[float(r), float(r)]) for r in (1, 3, 5)]
    assert first(credit, batches[0]) == [1.0, 1.0]  # nothing is known yet
    assert first(credit, batches[1]) == [2.0, 2.0]  # the one mean seen is 1
    state = credit.state_dict()
    resumed = Reinforce("moving", decay=0.5)
    resumed.load_state_dict(state)
    mean = (0.25 * 1 + 0.5 * 3) / 0.75
    for one in (credit, resumed):
        assert first(one, batches[2]) == pytest.approx([5 - mean] * 2)
    assert resumed.state_dict() == credit.state_dict() != state


def test_a_batch_of_abstentions_leaves_the_moving_average(make_batch):
    credit = Reinforce("moving")
    credit(make_batch([1], rewards=[math.nan], valid=[False]))
    assert credit.state_dict()["batches"] == 0


# GAE


def test_gae_by_hand(make_batch):
    rewards, values = (torch.tensor([x], dtype=torch.float64) for x in ([0, 0, 1.0], [0.5, 0.6, 0.7]))
    mask = torch.ones(1, 3, dtype=torch.bool)
    advantages, returns = generalised_advantages(rewards, values, mask, 1.0, 0.95)
    assert advantages[0].tolist() == pytest.approx([0.46575, 0.385, 0.3], abs=1e-12)
    assert returns[0].tolist() == pytest.approx([0.96575, 0.985, 1.0], abs=1e-12)
    batch = make_batch([3], rewards=[1.0])
    batch.signals["values"] = values
    assert GAE()(batch)[0].tolist() == pytest.approx([0.991344, 0.017092, -1.008436], abs=1e-6)
    assert torch.equal(batch.signals["returns"], returns)


def slow_gae(rewards, values, mask, discount, decay):
    """One row by the recursion itself, over learnable tokens only."""
    out = np.zeros(len(rewards))
    after, value = 0.0, 0.0
    for t in reversed(np.flatnonzero(mask)):
        after = rewards[t] + discount * value - values[t] + discount * decay * after
        value, out[t] = values[t], after
    return out


@given(st.integers(0, 2**31), st.integers(0, 40), st.floats(0, 1), st.floats(0, 1))
def test_gae_is_the_recursion_over_learnable_tokens(seed, width, discount, decay):
    rng = np.random.default_rng(seed)
    rewards, values = rng.normal(size=(2, 3, width))
    mask = rng.random((3, width)) < 0.6
    values[~mask] = np.nan
    expected = [slow_gae(*rows, discount, decay) for rows in zip(rewards, values, mask, strict=True)]
    got, _ = generalised_advantages(*(torch.from_numpy(x) for x in (rewards, values, mask)), discount, decay)
    np.testing.assert_allclose(got.numpy(), np.array(expected).reshape(3, width), atol=1e-9)


def test_gae_with_a_perfect_critic_sees_no_advantage():
    """V is the reward to come: every temporal difference is zero, whatever the two factors' product does."""
    rewards = torch.tensor([[0.0, 0.0, 1.0]])
    values = torch.tensor([[0.81, 0.9, 1.0]])
    advantages, returns = generalised_advantages(rewards, values, torch.ones(1, 3, dtype=torch.bool), 0.9, 0.3)
    assert advantages.abs().max() < 1e-6
    assert torch.allclose(returns, values)


def test_gae_with_decay_one_and_no_values_is_the_return_to_go(make_batch):
    batch = make_batch([3, 2], rewards=[1.0, -1.0])
    batch.signals["values"] = torch.zeros(2, 3, dtype=torch.float64)
    assert GAE(decay=1.0, whitened=False)(batch).tolist() == [[1, 1, 1], [-1, -1, 0]]
    assert torch.allclose(GAE(decay=1.0)(batch), ReinforcePlusPlus()(batch))


@given(st.integers(0, 2**31), st.integers(1, 70), st.floats(0, 1))
def test_discounted_sum_is_the_recursion(seed, width, discount):
    x = np.random.default_rng(seed).normal(size=(2, width))
    expected, after = np.zeros_like(x), np.zeros(2)
    for t in reversed(range(width)):
        after = x[:, t] + discount * after
        expected[:, t] = after
    np.testing.assert_allclose(discounted_sum(torch.from_numpy(x), discount).numpy(), expected, atol=1e-9)


# Whitening


def test_whitening_by_numpy():
    x = np.random.default_rng(0).normal(3, 2, size=(4, 5))
    mask = np.random.default_rng(1).random((4, 5)) < 0.7
    expected = np.where(mask, (x - x[mask].mean()) / np.sqrt(x[mask].var(ddof=1) + 1e-8), 0)
    np.testing.assert_allclose(whiten(torch.from_numpy(x), torch.from_numpy(mask)).numpy(), expected, atol=1e-12)
    kept = whiten(torch.from_numpy(x), torch.from_numpy(mask), shift_mean=False).numpy()
    np.testing.assert_allclose(kept[mask], expected[mask] + x[mask].mean(), atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("value", [0.1, 1e6, -1 / 3])
@pytest.mark.parametrize("count", [0, 1, 2, 37])
def test_whitening_equal_values_gives_exact_zeros(dtype, value, count):
    x = torch.full((1, 40), value, dtype=dtype)
    mask = torch.arange(40)[None] < count
    assert torch.count_nonzero(whiten(x, mask)) == 0


# Limits


def test_standardised_over_the_group_is_grpo(make_batch):
    batch = make_batch([2, 1, 3, 1], rewards=[0.3, 1.0, 0.2, 0.9], groups=[0, 0, 1, 1])
    assert torch.equal(Standardised(scale="group", epsilon=1e-6)(batch), GRPO()(batch))
    assert torch.equal(Standardised(scale="none")(batch), GRPO(normalise=False)(batch))


def test_with_one_group_lite_ppo_is_grpo(make_batch):
    batch = make_batch([1] * 4, rewards=GROUP)
    assert torch.allclose(Standardised(epsilon=1e-6)(batch), GRPO()(batch), atol=1e-12)


def test_with_equal_lengths_opo_is_dr_grpo(make_batch):
    batch = make_batch([3] * 4, rewards=[0.3, 1.0, 0.2, 0.9])
    assert torch.allclose(OPO()(batch), GRPO(normalise=False)(batch), atol=1e-12)


def test_rloo_is_dr_grpo_scaled(make_batch):
    batch = make_batch([1] * 5, rewards=[0.3, 1.0, 0.2, 0.9, 0.0])
    assert torch.allclose(RLOO()(batch), 5 / 4 * GRPO(normalise=False)(batch), atol=1e-12)


def test_two_valued_relabelling_is_a_no_op_under_the_group_deviation_only(make_batch):
    """Any two values for right and wrong give the same advantages where they are standardised, not where centred."""
    for low, high in ((-1.0, 1.0), (-0.142857, 1.285714)):
        plain = make_batch([1] * 4, rewards=GROUP)
        other = make_batch([1] * 4, rewards=[high if r else low for r in GROUP])
        assert torch.allclose(GRPO(epsilon=0.0)(plain), GRPO(epsilon=0.0)(other), atol=1e-12)
        ratio = (RLOO()(other) / RLOO()(plain)).flatten()
        assert torch.allclose(ratio, torch.full_like(ratio, high - low), atol=1e-12)


# What holds for all of them


@pytest.mark.parametrize("credit", WITHOUT_CRITIC, ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equal_rewards_are_finite_and_zero_where_compared(make_batch, credit, dtype):
    batch = make_batch([2, 3, 1, 4, 2], rewards=[0.1] * 5)
    batch.rewards = batch.rewards.to(dtype)
    got = credit(batch)
    assert bool(got.isfinite().all())
    if credit != Reinforce():
        assert torch.count_nonzero(got) == 0


@pytest.mark.parametrize("credit", WITHOUT_CRITIC, ids=repr)
@pytest.mark.parametrize("lengths", [[], [0], [0, 0], [1], [0, 3], [1, 1]])
def test_few_and_empty_responses(make_batch, credit, lengths):
    batch = make_batch(lengths, rewards=[float(i % 2) for i in range(len(lengths))])
    got = credit(batch)
    assert got.shape == batch.mask.shape
    assert bool(got.isfinite().all())


@pytest.mark.parametrize("credit", RELATIVE, ids=repr)
def test_a_sample_without_siblings_gets_nothing(make_batch, credit):
    batch = make_batch([2, 2, 2], rewards=[0.7, 1.0, 0.0], groups=[0, 1, 1])
    if isinstance(credit, ReinforcePlusPlusBaseline):
        assert credit(batch)[0].abs().max() < 1e-9
    else:
        assert torch.count_nonzero(credit(batch)[0]) == 0


@pytest.mark.parametrize("credit", WITHOUT_CRITIC, ids=repr)
def test_samples_that_do_not_count_change_nothing(make_batch, credit):
    rewards = [1.0, 0.0, 0.0, 1.0, 0.25]
    expected = credit(make_batch([2, 1, 3, 2, 2], rewards=rewards, groups=[0, 0, 0, 1, 1]))
    batch = make_batch(
        [2, 1, 3, 2, 2, 4, 4],
        rewards=[*rewards, math.nan, 7.0],
        groups=[0, 0, 0, 1, 1, 0, 1],
        valid=[True] * 5 + [False, True],
        weights=torch.tensor([1.0, 1, 1, 1, 1, 1, 0], dtype=torch.float64),
    )
    got = credit(batch)
    assert torch.allclose(got[:5, :3], expected, atol=1e-12)
    assert torch.count_nonzero(got[5:]) == torch.count_nonzero(got[:, 3]) == 0


@pytest.mark.parametrize("credit", WITHOUT_CRITIC, ids=repr)
@given(order=st.permutations(range(6)), extra=st.integers(0, 3))
def test_neither_order_nor_padding_matters(make_batch, credit, order, extra):
    lengths, rewards, groups = [2, 1, 3, 2, 4, 1], [1.0, 0.0, 0.5, 1.0, 0.25, 0.0], [0, 0, 1, 1, 2, 2]
    expected = credit(make_batch(lengths, rewards=rewards, groups=groups))
    moved = make_batch(*([x[i] for i in order] for x in (lengths, rewards, groups)))
    for name in ("mask", "tokens", "advantages"):
        setattr(moved, name, torch.nn.functional.pad(getattr(moved, name), (0, extra)))
    got = credit(moved)[:, :4]
    assert torch.allclose(got, expected[torch.tensor(order)][:, : got.shape[1]], atol=1e-12)


@pytest.mark.parametrize("name", ["reinforce", "rloo", "remax", "reinforce++", "reinforce++-baseline", "grpo", "opo"])
def test_they_are_built_by_name(name):
    assert isinstance(build("credit", name), Credit)


def test_nonsense_is_refused():
    with pytest.raises(UsageError, match="decay"):
        Reinforce("moving", decay=1.0)
    with pytest.raises(UsageError, match="discount"):
        GAE(discount=1.5)
    with pytest.raises(UsageError, match="baseline"):
        build("credit", {"name": "reinforce", "baseline": "median"})
