"""DPO, IPO, NCA, KTO and a classifier: by hand, by finite differences, and as sums over micro-batches."""

from __future__ import annotations

import math

import pytest
import torch

from assay.errors import UsageError
from assay.objectives.outcome_classifier import OutcomeClassifier
from assay.objectives.preference import DPO, IPO, KTO, NCA, SimPO, pairs
from assay.ops.outcome_losses import kto_loss
from assay.registry import build


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def tensor(rows):
    return torch.tensor(rows, dtype=torch.float64)


@pytest.fixture
def judged(make_batch):
    """Two groups; h is 0.3, -0.2, 0.5 and 0.4, 0.1 as sums over tokens."""
    batch = make_batch(
        [2, 1, 2, 1, 2],
        rewards=[1.0, 0.0, 0.5, 0.0, 1.0],
        groups=[0, 0, 0, 1, 1],
        passed=[True, False, False, False, True],
    )
    batch.signals["reference_logprobs"] = torch.full((2, 5), -1.0, dtype=torch.float64).T.contiguous()
    now = tensor([[-0.9, -0.8], [-1.2, 9.0], [-1.0, -0.5], [-0.6, 9.0], [-0.95, -0.95]])
    batch.signals["policy_logprobs"] = now
    return batch, now


H = [0.3, -0.2, 0.5, 0.4, 0.1]


def test_pairs_are_within_a_group_and_by_reward(judged):
    batch, _ = judged
    assert pairs(batch.rewards, batch).nonzero().tolist() == [[0, 1], [0, 2], [2, 1], [4, 3]]
    batch.valid[0] = False
    assert pairs(batch.rewards, batch).nonzero().tolist() == [[2, 1], [4, 3]]


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_dpo_by_hand(judged, smoothing):
    batch, now = judged

    def pair(w, v):
        m = 2.0 * (H[w] - H[v])
        return -(1 - smoothing) * math.log(sigmoid(m)) - smoothing * math.log(sigmoid(-m))

    loss = DPO(beta=2.0, label_smoothing=smoothing)(now, batch)
    expected = ((pair(0, 1) + pair(0, 2) + pair(2, 1)) / 3 + pair(4, 3)) / 2
    assert loss.value.item() == pytest.approx(expected, abs=1e-12)
    assert loss.metrics["pairs"] == 4
    assert loss.metrics["preference/accuracy"] == 0.5


def test_dpo_by_verdict_forms_other_pairs(judged):
    batch, now = judged
    expected = sum(-math.log(sigmoid(0.1 * (H[w] - H[v]))) / n for w, v, n in ((0, 1, 2), (0, 2, 2), (4, 3, 1))) / 2
    assert DPO(by="verdict")(now, batch).value.item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("mean", [True, False])
def test_ipo_by_hand(judged, mean):
    batch, now = judged
    h = [x / (n if mean else 1) for x, n in zip(H, [2, 1, 2, 1, 2], strict=True)]
    terms = [(h[w] - h[v] - 1.0) ** 2 / n for w, v, n in ((0, 1, 3), (0, 2, 3), (2, 1, 3), (4, 3, 1))]
    loss = IPO(beta=0.5, mean_over_tokens=mean)(now, batch)
    assert loss.value.item() == pytest.approx(sum(terms) / 2, abs=1e-12)


def test_kto_by_hand(judged):
    batch, now = judged
    z = sum(H) / 5
    good = [True, False, False, False, True]
    terms = [2.0 * sigmoid(-0.5 * (h - z)) if g else sigmoid(0.5 * (h - z)) for h, g in zip(H, good, strict=True)]
    objective = KTO(beta=0.5, desirable_weight=2.0)
    loss = objective(now, batch)
    assert loss.value.item() == pytest.approx(sum(terms) / 5, abs=1e-12)
    assert loss.metrics["kto/reference_point"] == pytest.approx(z)
    assert KTO(beta=0.5, desirable_weight=2.0, by="verdict")(now, batch).value.item() == loss.value.item()


def test_the_reference_point_of_kto_is_never_negative():
    h, point = tensor([-1.0, -1.0]), tensor([0.0, 0.0])
    assert kto_loss(h, torch.tensor([True, False]), point, 1.0).tolist() == pytest.approx([sigmoid(1), sigmoid(-1)])


def test_nca_by_hand(judged):
    batch, now = judged

    def pair(w, v):
        a, b = 2.0 * H[w], 2.0 * H[v]
        return -math.log(sigmoid(a)) - math.log(sigmoid(-a)) / 2 - math.log(sigmoid(-b)) / 2

    expected = ((pair(0, 1) + pair(0, 2)) / 2 + pair(4, 3)) / 2
    assert NCA(beta=2.0, by="verdict")(now, batch).value.item() == pytest.approx(expected, abs=1e-12)


def test_a_classifier_by_hand(judged):
    """-log sigmoid of beta h for the right, of -beta h for the others; balanced, each kind weighs one half."""
    batch, now = judged
    right = [True, False, False, False, True]
    losses = [-math.log(sigmoid((2.0 if r else -2.0) * h)) for h, r in zip(H, right, strict=True)]
    loss = OutcomeClassifier(beta=2.0)(now, batch)
    assert loss.value.item() == pytest.approx(sum(losses) / 5, abs=1e-12)
    # Only that with h = -0.2 is a wrong one told from the right ones.
    assert loss.metrics["outcome/accuracy"] == pytest.approx(3 / 5)
    del batch.signals["outcome_classifier_balance"]
    balanced = OutcomeClassifier(beta=2.0, balanced=True)(now, batch).value.item()
    kinds = [[x for x, r in zip(losses, right, strict=True) if r is kind] for kind in (True, False)]
    assert balanced == pytest.approx(sum(sum(k) / len(k) for k in kinds) / 2, abs=1e-12)
    del batch.signals["outcome_classifier_balance"]
    by_reward = OutcomeClassifier(beta=2.0, by="reward", threshold=0.4)(now, batch).value.item()
    assert by_reward == pytest.approx((sum(losses) - losses[2] - math.log(sigmoid(2.0 * H[2]))) / 5, abs=1e-12)
    with pytest.raises(UsageError, match="beta"):
        OutcomeClassifier(beta=0.0)


@pytest.mark.parametrize(
    "objective",
    [DPO(label_smoothing=0.1), SimPO(), IPO(), NCA(), KTO(), OutcomeClassifier(balanced=True)],
    ids=lambda o: type(o).__name__,
)
def test_gradients_by_finite_differences(judged, objective):
    batch, now = judged
    getattr(objective, "prepare", lambda _: None)(batch)
    logprobs = now.clone().requires_grad_(True)
    objective(logprobs, batch).value.backward()
    for i, t in batch.mask.nonzero().tolist():
        up, down = now.clone(), now.clone()
        up[i, t] += 1e-6
        down[i, t] -= 1e-6
        slope = (objective(up, batch).value.item() - objective(down, batch).value.item()) / 2e-6
        assert logprobs.grad[i, t].item() == pytest.approx(slope, abs=1e-8)
    assert torch.count_nonzero(logprobs.grad[~batch.mask]) == 0


@pytest.mark.parametrize("objective", [DPO(), IPO(), KTO()], ids=lambda o: type(o).__name__)
@pytest.mark.parametrize("parts", [[[0, 1, 2], [3, 4]], [[4, 3], [1, 0, 2]]])
def test_micro_batches_of_whole_groups_add_up(judged, objective, parts):
    batch, now = judged
    batch.totals = batch.count()
    if isinstance(objective, KTO):
        objective.prepare(batch)
    index = [torch.tensor(p) for p in parts]
    total = sum(objective(now[i], batch.rows(i)).value.item() for i in index)
    assert total == pytest.approx(objective(now, batch).value.item(), abs=1e-12)


@pytest.mark.parametrize("objective", [DPO(), IPO(), KTO()], ids=lambda o: type(o).__name__)
@pytest.mark.parametrize("lengths", [[], [0, 0], [0, 1], [2, 2]])
def test_without_a_pair_it_is_finite_and_has_a_gradient(make_batch, objective, lengths):
    batch = make_batch(lengths, rewards=[1.0] * len(lengths))
    for name in ("reference_logprobs", "policy_logprobs"):
        batch.signals[name] = torch.full(batch.mask.shape, math.nan, dtype=torch.float64).masked_fill(batch.mask, -1.0)
    logprobs = torch.zeros(batch.mask.shape, dtype=torch.float64, requires_grad=True)
    loss = objective(logprobs, batch)
    loss.value.backward()
    assert math.isfinite(loss.value.item())
    assert bool(logprobs.grad.isfinite().all())
    if not isinstance(objective, KTO):
        assert loss.value.item() == 0


def test_large_margins_stay_finite(make_batch):
    batch = make_batch([1, 1], rewards=[1.0, 0.0])
    batch.signals["reference_logprobs"] = tensor([[-1.0], [-1.0]])
    for better, worse, expected in ((-5000.0, -1.0, 4999.0), (-1.0, -5000.0, 0.0)):
        value = DPO(beta=1.0)(tensor([[better], [worse]]), batch).value.item()
        assert value == pytest.approx(expected)


def test_options():
    assert build("objective", {"name": "dpo", "beta": 0.3}) == DPO(beta=0.3)
    for spec in ({"name": "dpo", "beta": 0}, {"name": "kto", "beta": -1}, {"name": "dpo", "label_smoothing": 0.5}):
        with pytest.raises(UsageError):
            build("objective", spec)
    assert DPO().whole_groups and IPO().needs == {"reference_logprobs"}
