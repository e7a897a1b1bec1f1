"""Masked means, group reductions and aggregation, against hand computation and plain NumPy."""

from __future__ import annotations

import jaxtyping
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.ops import aggregate, group_count, group_mean, group_std, group_sum, masked_mean

MODES = ["token_mean", "sequence_mean", "sequence_sum", "constant"]


def test_shapes_are_checked_while_testing():
    with pytest.raises(jaxtyping.TypeCheckError):
        group_mean(torch.ones(3), torch.zeros(4, dtype=torch.int64), torch.ones(3, dtype=torch.bool))


# Means and groups


def test_masked_mean_reads_the_mask_only():
    x = torch.tensor([[1.0, torch.nan], [2.0, 6.0]])
    assert masked_mean(x, torch.tensor([[True, False], [True, True]])).item() == 3.0


def test_masked_mean_of_nothing_is_zero():
    assert masked_mean(torch.tensor([[torch.nan]]), torch.tensor([[False]])).item() == 0.0


samples = st.lists(st.tuples(st.floats(-5, 5, width=32), st.integers(0, 3), st.booleans()), min_size=1, max_size=12)


@pytest.mark.slow
@given(samples)
def test_group_reductions_agree_with_numpy(rows):
    x, group, where = (np.array(c) for c in zip(*rows, strict=True))
    got = [torch.tensor(x, dtype=torch.float64), torch.tensor(group), torch.tensor(where)]
    for i in range(len(rows)):
        mine = x[(group == group[i]) & where].astype(np.float64)
        assert group_sum(*got)[i].item() == pytest.approx(mine.sum(), abs=1e-12)
        assert group_count(got[1], got[2], torch.float64)[i].item() == len(mine)
        assert group_mean(*got)[i].item() == pytest.approx(mine.mean() if len(mine) else 0.0, abs=1e-12)
        for ddof in (0, 1):
            expected = mine.std(ddof=ddof) if len(mine) > ddof else 0.0
            assert group_std(*got, ddof)[i].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(value=st.floats(-10, 10, width=32), size=st.integers(1, 40))
def test_group_mean_of_equal_values_is_that_value_exactly(dtype, value, size):
    x = torch.full((size,), value, dtype=dtype)
    group, where = torch.zeros(size, dtype=torch.int64), torch.ones(size, dtype=torch.bool)
    assert torch.equal(group_mean(x, group, where), x)
    assert torch.equal(group_std(x, group, where), torch.zeros(size, dtype=dtype))


def test_group_reductions_ignore_nan_outside():
    x, where = torch.tensor([1.0, torch.nan, 3.0]), torch.tensor([True, False, True])
    group = torch.zeros(3, dtype=torch.int64)
    assert group_mean(x, group, where).tolist() == [2.0, 2.0, 2.0]
    assert group_std(x, group, where, 0).tolist() == [1.0, 1.0, 1.0]


def test_group_reductions_accept_nothing():
    x, group, where = torch.zeros(0), torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.bool)
    assert group_mean(x, group, where).shape == group_std(x, group, where).shape == (0,)


# Aggregation

LOSS = [[1.0, 1.0, torch.nan, torch.nan], [2.0, 2.0, 2.0, 2.0]]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("token_mean", 10 / 6), ("sequence_mean", 1.5), ("sequence_sum", 5.0), ("constant", 0.625)],
)
def test_aggregation_by_hand(make_batch, mode, expected):
    batch = make_batch([2, 4])
    loss = torch.tensor(LOSS, dtype=torch.float64)
    assert aggregate(loss, batch, mode, max_length=8).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("mode", "expected"), [("token_mean", 3.0), ("sequence_mean", 3.0), ("sequence_sum", 6.0), ("constant", 0.75)]
)
def test_a_sample_without_weight_or_reward_leaves_numerator_and_denominator(make_batch, mode, expected):
    loss = torch.tensor([[3.0, 3.0], [5.0, torch.nan], [7.0, torch.nan]], dtype=torch.float64)
    batch = make_batch([2, 1, 2], weights=[1.0, 0.0, 1.0], valid=[True, True, False])
    assert aggregate(loss, batch, mode, max_length=8).item() == expected


def test_weights_multiply_losses_but_not_denominators(make_batch):
    batch = make_batch([2, 4], weights=[3.0, 1.0])
    loss = torch.tensor(LOSS, dtype=torch.float64)
    assert aggregate(loss, batch, "token_mean").item() == pytest.approx((3 * 2 + 8) / 6)
    assert aggregate(loss, batch, "sequence_mean").item() == pytest.approx((3 * 1 + 2) / 2)


def test_constant_aggregation_needs_a_length(make_batch):
    with pytest.raises(ValueError, match="max_length"):
        aggregate(torch.zeros(1, 1, dtype=torch.float64), make_batch([1]), "constant")


def test_an_empty_batch_costs_nothing(make_batch):
    batch = make_batch([0, 0])
    for mode in MODES:
        assert aggregate(torch.zeros(2, 0, dtype=torch.float64), batch, mode, 8).item() == 0.0


@st.composite
def partitions(draw):
    lengths = draw(st.lists(st.integers(0, 5), min_size=1, max_size=8))
    parts = draw(st.lists(st.integers(0, 2), min_size=len(lengths), max_size=len(lengths)))
    weights = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=len(lengths), max_size=len(lengths)))
    valid = draw(st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths)))
    return lengths, parts, weights, valid, draw(st.permutations(range(len(lengths))))


def random_loss(batch) -> torch.Tensor:
    noise = torch.randn(batch.mask.shape, generator=torch.Generator().manual_seed(len(batch)), dtype=torch.float64)
    return torch.where(batch.mask, noise, torch.nan)


@pytest.mark.parametrize("mode", MODES)
@given(case=partitions())
def test_losses_of_micro_batches_add_up(make_batch, mode, case):
    lengths, parts, weights, valid, _ = case
    batch = make_batch(lengths, weights=torch.tensor(weights, dtype=torch.float64), valid=valid)
    batch.totals = batch.count()
    loss, total = random_loss(batch), 0.0
    for part in set(parts):
        index = torch.tensor([i for i, p in enumerate(parts) if p == part])
        micro = batch.rows(index)
        total += aggregate(loss[index][:, : micro.mask.shape[1]], micro, mode, 8).item()
    assert total == pytest.approx(aggregate(loss, batch, mode, 8).item(), abs=1e-12)


@pytest.mark.parametrize("mode", MODES)
@given(case=partitions())
def test_neither_order_nor_padding_matters(make_batch, mode, case):
    lengths, _, weights, valid, order = case
    batch = make_batch(lengths, weights=torch.tensor(weights, dtype=torch.float64), valid=valid)
    loss = random_loss(batch)
    expected = aggregate(loss, batch, mode, 8).item()
    index = torch.tensor(order)
    moved = batch.rows(index)
    assert aggregate(loss[index], moved, mode, 8).item() == pytest.approx(expected, abs=1e-12)
    batch.mask = torch.nn.functional.pad(batch.mask, (0, 3))
    batch.tokens = torch.nn.functional.pad(batch.tokens, (0, 3))
    padded = torch.nn.functional.pad(loss, (0, 3), value=torch.nan)
    assert aggregate(padded, batch, mode, 8).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_nothing_outside_the_mask_gets_a_gradient(make_batch, mode):
    batch = make_batch([1, 2], valid=[True, True])
    loss = torch.tensor([[1.0, torch.nan], [2.0, 3.0]], dtype=torch.float64, requires_grad=True)
    aggregate(loss, batch, mode, 8).backward()
    assert loss.grad is not None
    assert loss.grad[0, 1] == 0
    assert bool((loss.grad[batch.mask] > 0).all())
