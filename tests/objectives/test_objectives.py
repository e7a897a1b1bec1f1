"""The clipped surrogate and the divergence estimators, by hand, by enumeration and by finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from assay.objectives.base import Objective
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.kl import kl_estimate
from assay.registry import build

DAPO = ClippedSurrogate(clip_low=0.2, clip_high=0.28)


def column(*values: float, grad: bool = False) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)[:, None].requires_grad_(grad)


def batch_of_one(make_batch, advantage, **tensors):
    return make_batch([1], advantages=column(advantage), logprobs=column(-2.0), **tensors)


# The surrogate

CASES = [  # rho, advantage, loss, gradient with respect to the log-probability
    (1.5, 1.0, -1.28, 0.0),
    (0.5, 1.0, -0.5, -0.5),
    (1.1, -1.0, 1.1, 1.1),
    (0.5, -1.0, 0.8, 0.0),
    (5.0, -1.0, 5.0, 5.0),
    (1.0, 2.0, -2.0, -2.0),
]


@pytest.mark.parametrize(("ratio", "advantage", "loss", "gradient"), CASES)
def test_surrogate_by_hand(make_batch, ratio, advantage, loss, gradient):
    batch = batch_of_one(make_batch, advantage)
    logprobs = column(-2.0 + math.log(ratio), grad=True)
    value = DAPO(logprobs, batch).value
    value.backward()
    assert value.item() == pytest.approx(loss, abs=1e-12)
    assert logprobs.grad is not None
    assert logprobs.grad.item() == pytest.approx(gradient, abs=1e-12)
    step = 1e-6
    up, down = (DAPO(logprobs.detach() + s, batch).value.item() for s in (step, -step))
    assert (up - down) / (2 * step) == pytest.approx(gradient, abs=1e-8)


@given(st.floats(-3, 3), st.floats(-3, 3))
def test_surrogate_is_the_lesser_of_two(make_batch, log_ratio, advantage):
    ratio = math.exp(log_ratio)
    expected = -min(ratio * advantage, float(np.clip(ratio, 0.8, 1.28)) * advantage)
    loss = DAPO(column(-2.0 + log_ratio), batch_of_one(make_batch, advantage))
    assert loss.value.item() == pytest.approx(expected, abs=1e-9)
    cut = (advantage > 0 and ratio > 1.28) or (advantage < 0 and ratio < 0.8)
    assert loss.metrics["clip_fraction"] == float(cut)


@pytest.mark.parametrize("gap", [500.0, -500.0])
def test_the_exponent_is_bounded(make_batch, gap):
    logprobs = column(-2.0 + gap, grad=True)
    value = DAPO(logprobs, batch_of_one(make_batch, -1.0)).value
    value.backward()
    assert value.item() == pytest.approx(math.exp(20) if gap > 0 else 0.8)
    assert logprobs.grad is not None
    assert logprobs.grad.item() == 0.0


def test_neither_advantages_nor_behaviour_get_a_gradient(make_batch):
    batch = batch_of_one(make_batch, 1.0)
    logprobs = column(-2.0, grad=True)
    DAPO(logprobs, batch).value.backward()
    assert not batch.advantages.requires_grad
    assert not batch.logprobs.requires_grad


def test_the_behaviour_divergence_metric_is_unbiased(make_batch):
    old, new = np.array([0.5, 0.3, 0.2]), np.array([0.45, 0.33, 0.22])
    # 20 rows in exact proportion to the old policy, so that the mean over rows is the expectation.
    rows = np.repeat(np.arange(3), (old * 20).round().astype(int))
    batch = make_batch([1] * 20, logprobs=column(*np.log(old[rows])))
    metrics = DAPO(column(*np.log(new[rows])), batch).metrics
    assert metrics["kl/behaviour"] == pytest.approx(entropy(old, new), abs=1e-12)


# The divergence

P, REFERENCE = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])


@pytest.mark.parametrize(("estimator", "expected"), [("k1", 0.5), ("k2", 0.125), ("k3", 0.106531)])
def test_estimates_by_hand(estimator, expected):
    assert kl_estimate(column(-1.0), column(-1.5), estimator).item() == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(("estimator", "expected"), [("k1", 0.274887), ("k2", 0.293856), ("k3", 0.274887)])
def test_expected_estimates(estimator, expected):
    estimates = kl_estimate(column(*np.log(P)), column(*np.log(REFERENCE)), estimator)[:, 0].numpy()
    assert P @ estimates == pytest.approx(expected, abs=5e-7)
    if estimator != "k2":
        assert P @ estimates == pytest.approx(entropy(P, REFERENCE), abs=1e-12)


GRADIENTS = [("k1", [0.0, 0.0, 0.0]), ("k2", [0.320702, -0.082466, -0.238236]), ("k3", [0.3, 0.0, -0.3])]


@pytest.mark.parametrize(("estimator", "expected"), GRADIENTS)
def test_expected_gradient_of_the_divergence_as_a_loss(make_batch, estimator, expected):
    """One sample of each action, weighted by its probability, is the expectation; rho = 1 and no advantage."""
    logits = torch.tensor(np.log(P), requires_grad=True)
    logprobs = logits.log_softmax(-1)[:, None]
    batch = make_batch([1] * 3, logprobs=logprobs.detach(), weights=torch.tensor(3 * P))
    batch.signals["reference_logprobs"] = column(*np.log(REFERENCE))
    objective = ClippedSurrogate(kl_weight=1.0, kl_estimator=estimator, aggregation="sequence_sum")
    objective(logprobs, batch).value.backward()
    assert logits.grad is not None
    assert logits.grad.tolist() == pytest.approx(expected, abs=5e-7)


def test_gradients_of_k2_and_k3_are_those_of_the_two_divergences():
    """The oracle of the numbers above: autograd of KL(p || ref) and KL(ref || p) themselves."""
    reference = torch.tensor(REFERENCE)
    for expected, divergence in (
        (GRADIENTS[1][1], lambda p: (p * (p / reference).log()).sum()),
        (GRADIENTS[2][1], lambda p: (reference * (reference / p).log()).sum()),
    ):
        logits = torch.tensor(np.log(P), requires_grad=True)
        (gradient,) = torch.autograd.grad(divergence(logits.softmax(-1)), logits)
        assert gradient.tolist() == pytest.approx(expected, abs=5e-7)


@given(st.floats(-60, 0), st.floats(-60, 0))
def test_k3_is_never_negative_and_never_pushes_the_wrong_way(logprob, reference):
    logprobs = column(logprob, grad=True)
    estimate = kl_estimate(logprobs, column(reference), "k3")
    estimate.backward()
    assert estimate.item() >= 0
    assert logprobs.grad is not None
    assert logprobs.grad.item() * (logprob - reference) >= 0


def test_the_weight_of_the_divergence_and_its_metric(make_batch):
    batch = make_batch([1], logprobs=column(-1.0))
    batch.signals["reference_logprobs"] = column(-1.5)
    loss = ClippedSurrogate(kl_weight=0.1)(column(-1.0), batch)
    assert loss.value.item() == pytest.approx(0.0106531, abs=5e-8)
    assert loss.metrics["kl/reference"] == pytest.approx(0.106531, abs=5e-7)


# Entropy


def test_entropy_bonus_gradient(make_batch):
    """d(-H)/dlogit_a = p_a (log p_a + H)."""
    logits = torch.tensor(np.log(P), requires_grad=True)
    logp = logits.log_softmax(-1)
    batch = make_batch([1], logprobs=logp.detach()[:1, None])
    batch.live["entropy"] = -(logp.exp() * logp).sum()[None, None]
    value = ClippedSurrogate(entropy_weight=0.5)(logp[:1, None], batch).value
    value.backward()
    assert value.item() == pytest.approx(-0.5 * entropy(P), abs=1e-12)
    expected = 0.5 * P * (np.log(P) + entropy(P))
    assert logits.grad is not None
    assert logits.grad.tolist() == pytest.approx(expected.tolist(), abs=1e-12)


# What is asked of the trainer


def test_signals_are_needed_only_where_they_weigh():
    plain = ClippedSurrogate()
    assert not plain.needs
    assert not plain.live
    assert plain.zero_advantage_is_idle
    assert ClippedSurrogate(kl_weight=0.1).needs == {"reference_logprobs"}
    assert ClippedSurrogate(entropy_weight=0.1).live == {"entropy"}
    assert not ClippedSurrogate(kl_weight=0.1).zero_advantage_is_idle
    assert isinstance(build("objective", {"name": "clip", "clip_high": 0.28}), Objective)


# Nothing turns into NaN

FULL = ClippedSurrogate(kl_weight=0.1, entropy_weight=0.1)


def assert_finite(objective, logprobs, batch):
    loss = objective(logprobs, batch)
    loss.value.backward()
    assert math.isfinite(loss.value.item())
    assert all(math.isfinite(v) for v in loss.metrics.values())
    assert logprobs.grad is not None
    assert bool(logprobs.grad.isfinite().all())


@pytest.mark.parametrize("advantage", [1.0, 0.0, -1.0])
def test_a_token_that_became_impossible(make_batch, advantage):
    logits = torch.tensor([[0.0, -torch.inf]], dtype=torch.float64, requires_grad=True)
    logprobs = logits.log_softmax(-1)[:, 1:]
    batch = batch_of_one(make_batch, advantage)
    batch.signals["reference_logprobs"], batch.live["entropy"] = column(-1.0), column(0.0)
    logprobs.retain_grad()
    assert_finite(FULL, logprobs, batch)
    assert logits.grad is not None
    assert bool(logits.grad.isfinite().all())


@pytest.mark.parametrize("garbage", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_what_lies_outside_the_mask_is_ignored(make_batch, garbage, estimator):
    objective = ClippedSurrogate(kl_weight=0.1, kl_estimator=estimator, entropy_weight=0.1)
    results = []
    for filling in (0.0, garbage):
        batch = make_batch([1, 2], advantages=[[1.0, 0.0], [-1.0, -1.0]])
        logprobs = torch.tensor([[-1.0, filling], [-1.0, -3.0]], dtype=torch.float64, requires_grad=True)
        batch.logprobs = torch.tensor([[-1.1, filling], [-1.2, -2.0]], dtype=torch.float64)
        batch.signals["reference_logprobs"] = torch.tensor([[-2.0, filling], [-2.0, -1.0]], dtype=torch.float64)
        batch.live["entropy"] = torch.tensor([[0.5, filling], [0.6, 0.7]], dtype=torch.float64)
        loss = objective(logprobs, batch)
        loss.value.backward()
        assert logprobs.grad is not None
        results.append((loss.value.item(), loss.metrics, logprobs.grad.tolist()))
    assert results[0] == results[1]


def test_all_clipped_has_no_gradient(make_batch):
    batch = make_batch([1, 1], advantages=column(1.0, -1.0), logprobs=column(-2.0, -2.0))
    logprobs = column(-1.0, -4.0, grad=True)
    loss = DAPO(logprobs, batch)
    loss.value.backward()
    assert loss.metrics["clip_fraction"] == 1.0
    assert logprobs.grad is not None
    assert torch.count_nonzero(logprobs.grad) == 0


@pytest.mark.parametrize("aggregation", ["token_mean", "sequence_mean", "sequence_sum", "constant"])
@pytest.mark.parametrize("lengths", [[0, 0], [0, 2]])
def test_empty_responses(make_batch, lengths, aggregation):
    batch = make_batch(lengths, rewards=[1.0, 0.0])
    batch.signals["reference_logprobs"] = batch.live["entropy"] = torch.zeros(batch.mask.shape, dtype=torch.float64)
    objective = ClippedSurrogate(aggregation=aggregation, max_length=4, kl_weight=0.1, entropy_weight=0.1)
    assert_finite(objective, torch.zeros(batch.mask.shape, dtype=torch.float64, requires_grad=True), batch)


def test_equal_rewards_move_nothing(make_batch):
    from assay.method import Method

    batch = Method().value(make_batch([2, 3], rewards=[0.7, 0.7]))
    logprobs = torch.full(batch.mask.shape, -0.3, dtype=torch.float64, requires_grad=True)
    assert_finite(ClippedSurrogate(), logprobs, batch)
    assert logprobs.grad is not None
    assert torch.count_nonzero(logprobs.grad) == 0


def test_a_batch_of_abstentions_moves_nothing(make_batch):
    from assay.method import Method

    batch = Method().value(make_batch([2, 3], rewards=[0.0, 1.0], passed=[None, None]))
    logprobs = torch.full(batch.mask.shape, -0.3, dtype=torch.float64, requires_grad=True)
    assert_finite(ClippedSurrogate(), logprobs, batch)
    assert logprobs.grad is not None
    assert torch.count_nonzero(logprobs.grad) == 0


# Micro-batches


@pytest.mark.slow
@given(st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_losses_of_micro_batches_add_up(make_batch, parts):
    generator = torch.Generator().manual_seed(0)
    batch = make_batch([3, 1, 2, 4, 0, 2], weights=torch.tensor([1.0, 2.0, 0.0, 1.0, 1.0, 1.0], dtype=torch.float64))
    batch.logprobs, batch.advantages, reference, entropies, logprobs = (
        torch.randn(batch.mask.shape, generator=generator, dtype=torch.float64) for _ in range(5)
    )
    batch.signals["reference_logprobs"], batch.live["entropy"] = reference, entropies
    batch.totals = batch.count()
    total = 0.0
    for part in set(parts):
        index = torch.tensor([i for i, p in enumerate(parts) if p == part])
        micro = batch.rows(index)
        total += FULL(logprobs[index][:, : micro.mask.shape[1]], micro).value.item()
    assert total == pytest.approx(FULL(logprobs, batch).value.item(), abs=1e-12)
