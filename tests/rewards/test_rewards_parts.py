"""Punishments and bonuses for length, and the divergence as a reward, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import entropy

from assay.credit.reinforce_pp import ReinforcePlusPlus
from assay.errors import UsageError
from assay.registry import build
from assay.rewards.base import RewardPart
from assay.rewards.length.overlong import SoftOverlong
from assay.rewards.length.relative import CosineLength, GroupLength
from assay.rewards.shaping.kl import KLReward


@pytest.mark.parametrize(
    ("length", "expected"), [(0, 0.0), (16384, 0.0), (18432, -0.5), (20480, -1.0), (24576, -1.0), (16385, -1 / 4096)]
)
def test_overlong_by_hand(make_batch, length, expected):
    got = SoftOverlong(20480, 4096)(make_batch([length])).values.tolist()
    assert got == pytest.approx([expected], abs=1e-12)
    assert SoftOverlong(20480, 4096, factor=0.5)(make_batch([length])).values.item() == pytest.approx(expected / 2)


def test_overlong_refuses_an_impossible_buffer():
    for buffer in (0, 5):
        with pytest.raises(UsageError, match="buffer"):
            SoftOverlong(4, buffer)


def test_group_length_by_hand(make_batch):
    batch = make_batch([10, 20, 30, 20, 5], passed=[True, True, True, False, None])
    batch.prompt_group = torch.zeros(5, dtype=torch.int64)
    reward = GroupLength()(batch)
    assert reward.values[:4].tolist() == pytest.approx([0.5, 0.0, -0.5, 0.0])
    assert reward.valid.tolist() == [True] * 4 + [False]
    wrong = make_batch([10, 30], passed=[False, False])
    wrong.prompt_group = torch.zeros(2, dtype=torch.int64)
    assert GroupLength()(wrong).values.tolist() == [0.0, -0.5]


@pytest.mark.parametrize("lengths", [[], [3], [3, 3]])
def test_group_length_of_equal_lengths_is_zero(make_batch, lengths):
    assert torch.count_nonzero(GroupLength()(make_batch(lengths)).values) == 0


@pytest.mark.parametrize(
    ("length", "passed", "expected"),
    [(0, True, 2.0), (50, True, 1.5), (100, True, 1.0), (0, False, -10.0), (50, False, -5.0), (101, True, -10.0)],
)
def test_cosine_length_by_hand(make_batch, length, passed, expected):
    assert CosineLength(100)(make_batch([length], passed=[passed])).values.item() == pytest.approx(expected, abs=1e-12)


def test_kl_reward_by_hand_and_in_a_weighted_sum(make_batch):
    batch = make_batch([2, 1], rewards=[1.0, 0.0])
    batch.signals["policy_logprobs"] = torch.tensor([[-1.0, -2.0], [-1.0, math.nan]], dtype=torch.float64)
    batch.signals["reference_logprobs"] = torch.tensor([[-1.5, -1.0], [-1.0, math.nan]], dtype=torch.float64)
    reward = build("reward", {"name": "weighted", "terms": {"verdict": "verdict", "kl": "kl"}, "weights": {"kl": 0.1}})
    assert reward.needs == KLReward().needs
    got = reward(batch)
    assert got.values.tolist() == [1.0, 0.0]
    assert torch.allclose(got.tokens, torch.tensor([[-0.05, 0.1], [0.0, 0.0]], dtype=torch.float64))
    batch.rewards, batch.token_rewards = got.values, got.tokens
    flat = np.array([1.05, 1.1, 0.0])
    white = (flat - flat.mean()) / math.sqrt(flat.var(ddof=1) + 1e-8)
    assert ReinforcePlusPlus()(batch)[batch.mask].tolist() == pytest.approx(white.tolist(), abs=1e-9)


def test_as_a_reward_k1_has_the_gradient_of_the_divergence(make_batch):
    """The trap's other side: as a loss k1 has none. One sample of each token, weighted by its probability."""
    p, reference = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    logits = torch.tensor(np.log(p), requires_grad=True)
    logprobs = logits.log_softmax(-1)[:, None]
    batch = make_batch([1] * 3, logprobs=logprobs.detach(), weights=torch.tensor(3 * p))
    batch.signals["policy_logprobs"] = logprobs.detach()
    batch.signals["reference_logprobs"] = torch.tensor(np.log(reference))[:, None]
    batch.token_rewards = KLReward()(batch).tokens
    batch.advantages = build("credit", "reinforce")(batch)
    objective = build("objective", {"name": "reinforce", "aggregation": "sequence_sum"})
    (gradient,) = torch.autograd.grad(objective(logprobs, batch).value, logits)
    exact = torch.autograd.grad(
        (logits.softmax(-1) * (logits.log_softmax(-1) - torch.tensor(np.log(reference)))).sum(), logits
    )
    assert torch.allclose(gradient, exact[0], atol=1e-12)
    assert float(p @ batch.token_rewards[:, 0].numpy()) == pytest.approx(-entropy(p, reference))


@pytest.mark.parametrize(
    "spec",
    [
        "group_length",
        "kl",
        {"name": "overlong", "max_length": 4, "buffer": 2},
        {"name": "cosine_length", "max_length": 4},
    ],
)
def test_they_are_built_by_name(spec):
    assert isinstance(build("reward", spec), RewardPart)
