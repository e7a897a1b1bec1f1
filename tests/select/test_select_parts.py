"""Which samples are kept, by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.method import Method
from assay.registry import build
from assay.rewards.base import RewardPart
from assay.select.base import Select
from assay.select.chain import Chain
from assay.select.dynamic import AccuracyRange, DynamicSampling, accuracy
from assay.select.overlong import OverlongFilter
from assay.select.ranked import Ranked
from assay.select.verdicts import OfVerdict


def judged(make_batch, passed, groups, rewards=None, lengths=None):
    batch = make_batch(lengths or [1] * len(passed), rewards=rewards or [float(bool(p)) for p in passed], passed=passed)
    batch.prompt_group = batch.group = torch.tensor(groups)
    batch.valid = torch.tensor([p is not None for p in passed])
    return batch


def test_dynamic_sampling_keeps_the_prompts_of_both_kinds(make_batch):
    batch = judged(make_batch, [True, True, True, False, False, False], [0, 0, 1, 1, 2, 2])
    assert DynamicSampling()(batch).tolist() == [0, 0, 1, 1, 0, 0]


def test_dynamic_sampling_looks_at_the_verdict_not_at_the_reward(make_batch):
    """A length penalty tells apart two responses of a prompt that is solved; the prompt still teaches nothing."""
    batch = judged(make_batch, [True, True], [0, 0], rewards=[1.0, 0.5])
    assert DynamicSampling()(batch).tolist() == [0, 0]


def test_an_abstention_is_neither_right_nor_wrong(make_batch):
    batch = judged(make_batch, [True, None, True, None, False, None], [0, 0, 0, 1, 1, 1])
    share, count = accuracy(batch)
    assert share.tolist() == [1, 1, 1, 0, 0, 0]
    assert count.tolist() == [2, 2, 2, 1, 1, 1]
    assert DynamicSampling()(batch).tolist() == [0] * 6


def test_accuracy_range_is_inclusive(make_batch):
    passed = [True, False, False, False, False] * 2
    batch = judged(make_batch, passed, [0] * 5 + [1] * 5)
    batch.rewards = batch.rewards.float()
    assert AccuracyRange(0.2, 0.8)(batch).tolist() == [1] * 10
    assert AccuracyRange(0.3, 0.8)(batch).tolist() == [0] * 10
    assert AccuracyRange(0.0, 1.0)(judged(make_batch, [None, None], [0, 0])).tolist() == [0, 0]
    with pytest.raises(UsageError):
        AccuracyRange(0.8, 0.2)


def truncate(batch, *rows):
    for i in rows:
        object.__setattr__(batch.episodes[i], "stop", "length")
    return batch


def test_overlong_filtering_keeps_the_baseline(make_batch):
    batch = truncate(judged(make_batch, [True, False, False, False], [0] * 4, lengths=[1, 2, 3, 3]), 3)
    batch.weights = OverlongFilter()(batch)
    batch.advantages = GRPO(normalise=False)(batch)
    assert batch.advantages[:, 0].tolist() == [0.75, -0.25, -0.25, 0.0]  # the mean is of four
    assert (batch.count().sequences, batch.count().tokens) == (3, 6)


def test_overlong_filtering_can_leave_the_baseline_too(make_batch):
    batch = truncate(judged(make_batch, [True, False, False, False], [0] * 4), 3)
    batch.weights = OverlongFilter(in_statistics=False)(batch)
    assert GRPO(normalise=False)(batch)[:, 0].tolist() == pytest.approx([2 / 3, -1 / 3, -1 / 3, 0])


def test_by_verdict(make_batch):
    batch = judged(make_batch, [True, False, None, True, True], [0, 0, 0, 0, 1])
    assert OfVerdict()(batch).tolist() == [1, 0, 0, 1, 1]
    assert OfVerdict("wrong")(batch).tolist() == [0, 1, 0, 0, 0]
    assert OfVerdict(per_prompt=1)(batch).tolist() == [1, 0, 0, 0, 1]


def test_ranked_by_hand(make_batch):
    batch = judged(make_batch, [True] * 6, [0, 0, 0, 0, 1, 1], rewards=[0.1, 0.9, 0.5, 0.3, 0.2, 0.8])
    assert Ranked(highest=1, lowest=1)(batch).tolist() == [1, 1, 0, 0, 1, 1]
    assert Ranked(highest=0.5)(batch).tolist() == [0, 1, 1, 0, 0, 1]
    assert Ranked(highest=2, within="batch")(batch).tolist() == [0, 1, 0, 0, 0, 1]
    batch.valid[1] = False
    assert Ranked(highest=1)(batch).tolist() == [0, 0, 1, 0, 0, 1]
    with pytest.raises(UsageError):
        Ranked()


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(1, 12), st.booleans())
def test_ranked_keeps_the_right_number_and_none_below_one_left_out(make_batch, values, count, low):
    batch = make_batch([1] * len(values), rewards=[float(v) for v in values])
    part = Ranked(lowest=count) if low else Ranked(highest=count)
    kept = part(batch).bool().numpy()
    assert kept.sum() == min(count, len(values))
    kept_values, left = np.array(values)[kept], np.array(values)[~kept]
    if len(left):
        assert kept_values.max() <= left.min() if low else kept_values.min() >= left.max()


def test_ranked_by_length(make_batch):
    batch = judged(make_batch, [True] * 3, [0] * 3, lengths=[3, 1, 2])
    assert Ranked(lowest=2, by="length")(batch).tolist() == [0, 1, 1]


def test_a_chain_multiplies_and_hands_on(make_batch):
    """The second sees what the first has left: among the kept, the highest."""
    batch = judged(make_batch, [True, True, True, False], [0, 0, 1, 1], rewards=[5.0, 4.0, 1.0, 0.0])
    chain = build("select", {"name": "chain", "parts": ["dapo", {"name": "ranked", "highest": 1, "within": "batch"}]})
    assert isinstance(chain, Chain)
    assert chain(batch).tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("name", ["dapo", "accuracy", "overlong", "verdict", "all"])
def test_nothing_to_choose_from(make_batch, name):
    select = build("select", name)
    assert isinstance(select, Select)
    assert select(make_batch([])).tolist() == []


def test_rejection_fine_tuning_is_the_likelihood_of_what_passed(make_batch):
    method = Method(select=OfVerdict(), objective=build("objective", "sft"))
    batch = method.value(judged(make_batch, [True, False, True], [0, 0, 0], lengths=[1, 2, 2]))
    logprobs = torch.tensor([[-1.0, 9], [-5.0, -5.0], [-2.0, -3.0]], dtype=torch.float64)
    assert method.objective(logprobs, batch).value.item() == pytest.approx(2.0)


def test_dapo_as_a_method(make_batch):
    """All parts together on six samples of three prompts, one of them mixed, one of its responses cut off."""
    reward = build(
        "reward",
        {
            "name": "weighted",
            "terms": {"verdict": "verdict", "overlong": {"name": "overlong", "max_length": 4, "buffer": 2}},
        },
    )
    assert isinstance(reward, RewardPart)
    select = Chain(["dapo", "overlong"])
    batch = judged(make_batch, [True, True, True, False, False, False], [0, 0, 1, 1, 1, 2], lengths=[1, 2, 3, 1, 4, 1])
    batch = Method(reward=reward, select=select, credit=GRPO(normalise=False)).value(truncate(batch, 4))
    assert batch.rewards[2:5].tolist() == [0.5, 0.0, -1.0]
    mean = -0.5 / 3
    assert batch.advantages[:, 0].tolist() == pytest.approx([0, 0, 0.5 - mean, -mean, 0, 0])
    assert (batch.totals.groups, batch.totals.sequences, batch.totals.tokens) == (1, 2, 4)
