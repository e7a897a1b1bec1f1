"""The field's surrogates: by hand, by finite differences, at their limits, split, moved and padded, and without NaN."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.objectives.base import Objective
from assay.objectives.cispo import CISPO
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.correction import mismatch_weights
from assay.objectives.covariance import ClipCov, KLCov, covariance, drawn
from assay.objectives.gmpo import GMPO
from assay.objectives.gspo import GSPO, GSPOToken
from assay.objectives.kl import kl_estimate
from assay.objectives.policy_gradient import PolicyGradient
from assay.objectives.sapo import SAPO
from assay.objectives.sft import SFT
from assay.objectives.whole_response import WholeResponse
from assay.registry import build

SURROGATES = [
    ClippedSurrogate(clip_high=0.28),
    ClippedSurrogate(dual_clip=3.0),
    GSPO(clip_low=0.05, clip_high=0.05),
    GSPOToken(clip_low=0.05, clip_high=0.05),
    WholeResponse(),
    CISPO(clip_high=0.28),
    SAPO(),
    GMPO(),
    PolicyGradient(),
    KLCov(ratio_of_tokens=0.3),
    ClipCov(ratio_of_tokens=0.3, low=0.0),
]
NAMES = [repr(s).split("(", maxsplit=1)[0] + str(i) for i, s in enumerate(SURROGATES)]
FREE = [s for s in SURROGATES if not isinstance(s, (KLCov, ClipCov))]


def tensor(rows, grad=False):
    return torch.tensor(rows, dtype=torch.float64, requires_grad=grad)


def gradient_of(objective, logprobs, batch):
    logprobs = logprobs.detach().requires_grad_(True)
    loss = objective(logprobs, batch)
    loss.value.backward()
    assert logprobs.grad is not None
    return loss, logprobs.grad


def one_token(make_batch, ratio, advantage):
    batch = make_batch([1], advantages=tensor([[advantage]]), logprobs=tensor([[-2.0]]))
    return tensor([[-2.0 + math.log(ratio)]]), batch


# By hand: ratio, advantage, loss (None where it is not a function of the ratio), gradient


@pytest.mark.parametrize(
    ("objective", "ratio", "advantage", "loss", "gradient"),
    [
        (ClippedSurrogate(clip_high=0.28, dual_clip=3.0), 5.0, -1.0, 3.0, 0.0),
        (ClippedSurrogate(clip_high=0.28, dual_clip=3.0), 2.0, -1.0, 2.0, 2.0),
        (ClippedSurrogate(clip_high=0.28, dual_clip=3.0), 5.0, 1.0, -1.28, 0.0),
        (ClippedSurrogate(clip_high=0.28, dual_clip=3.0), 0.5, -1.0, 0.8, 0.0),
        (CISPO(clip_high=0.28), 3.0, 1.0, None, -1.28),
        (CISPO(clip_high=0.28), 3.0, -1.0, None, 1.28),
        (CISPO(clip_high=0.28), 0.1, 1.0, None, -0.1),
        (CISPO(clip_low=0.2, clip_high=0.28), 0.1, 1.0, None, -0.8),
        (SAPO(), 1.5, 1.0, -2.489837, -1.410022),
        (SAPO(), 0.5, 1.0, -1.510163, -0.470007),
        (SAPO(), 3.0, -1.0, 3.393917, 1.166337),
        (SAPO(), 1.0, 1.0, -2.0, -1.0),
        (GMPO(), math.exp(0.5), 1.0, -math.exp(0.4), 0.0),
        (GMPO(), math.exp(0.5), -1.0, math.exp(0.5), math.exp(0.5)),
        (GMPO(), math.exp(-0.5), -1.0, math.exp(-0.4), 0.0),
        (GMPO(), math.exp(-0.5), 1.0, -math.exp(-0.5), -math.exp(-0.5)),
        (PolicyGradient(), 1.0, 0.5, 1.0, -0.5),
    ],
)
def test_one_token_by_hand(make_batch, objective, ratio, advantage, loss, gradient):
    got, grad = gradient_of(objective, *one_token(make_batch, ratio, advantage))
    assert grad.item() == pytest.approx(gradient, abs=1e-6)
    if loss is not None:
        assert got.value.item() == pytest.approx(loss, abs=1e-6)


@pytest.mark.parametrize("objective", [GSPO(), GSPOToken()])
@pytest.mark.parametrize(("advantage", "loss", "gradient"), [(1.0, -1.0004, 0.0), (-1.0, 1.105171, 0.276293)])
def test_gspo_by_hand(make_batch, objective, advantage, loss, gradient):
    batch = make_batch([4], advantages=tensor([[advantage] * 4]), logprobs=tensor([[-1.0] * 4]))
    got, grad = gradient_of(objective, tensor([[-0.9, -1.3, -0.8, -0.6]]), batch)
    assert got.value.item() == pytest.approx(loss, abs=1e-6)
    assert grad[0].tolist() == pytest.approx([gradient] * 4, abs=1e-6)
    assert got.metrics["clip_fraction"] == float(advantage > 0)


@pytest.mark.parametrize(("advantage", "loss", "gradient"), [(1.0, -1.2, 0.0), (-1.0, 1.491825, 1.491825)])
def test_the_ratio_of_a_whole_response_by_hand(make_batch, advantage, loss, gradient):
    """The same response as above: its tokens' log-ratios add up to 0.4."""
    batch = make_batch([4], advantages=tensor([[advantage] * 4]), logprobs=tensor([[-1.0] * 4]))
    got, grad = gradient_of(WholeResponse(), tensor([[-0.9, -1.3, -0.8, -0.6]]), batch)
    assert got.value.item() == pytest.approx(loss, abs=1e-6)
    assert grad[0].tolist() == pytest.approx([gradient] * 4, abs=1e-6)
    assert got.metrics["clip_fraction"] == float(advantage > 0)


def test_gspo_token_moves_every_token_by_its_own_advantage(make_batch):
    batch = make_batch([2], advantages=tensor([[1.0, -3.0]]), logprobs=tensor([[-1.0, -1.0]]))
    _, own = gradient_of(GSPOToken(), tensor([[-1.0, -1.0]]), batch)
    _, shared = gradient_of(GSPO(), tensor([[-1.0, -1.0]]), batch)
    assert own.tolist() == [[-0.5, 1.5]]
    assert shared.tolist() == [[0.5, 0.5]]


def test_covariance_by_numpy(make_batch):
    rng = np.random.default_rng(0)
    logprobs, advantages = -rng.random((3, 4)), rng.normal(size=(3, 4))
    mask = rng.random((3, 4)) < 0.7
    got = covariance(*(torch.from_numpy(x) for x in (logprobs, advantages, mask))).numpy()
    expected = (logprobs - logprobs[mask].mean()) * (advantages - advantages[mask].mean())
    np.testing.assert_allclose(got[mask], expected[mask])
    assert np.isneginf(got[~mask]).all()


def test_kl_cov_penalises_the_tokens_of_highest_covariance(make_batch):
    """Deviations of log pi: 0.5, -0.5, 0; of A: 1, 1, -2; the first token's covariance is the highest."""
    batch = make_batch([3], advantages=tensor([[2.0, 2.0, -1.0]]), logprobs=tensor([[-1.5, -2.5, -2.0]]))
    now = tensor([[-1.0, -2.0, -1.5]])
    loss, grad = gradient_of(KLCov(ratio_of_tokens=0.34, weight=10.0), now, batch)
    rho = math.exp(0.5)
    assert loss.value.item() == pytest.approx((-3 * rho + 10 * 0.5) / 3, abs=1e-12)
    assert grad[0].tolist() == pytest.approx([(-2 * rho + 10) / 3, -2 * rho / 3, rho / 3], abs=1e-12)


def test_clip_cov_holds_the_drawn_tokens_back(make_batch):
    batch = make_batch([3], advantages=tensor([[2.0, 2.0, -1.0]]), logprobs=tensor([[-1.0, -2.0, -1.5]]))
    loss, grad = gradient_of(ClipCov(ratio_of_tokens=1.0, low=0.1), tensor([[-1.0, -2.0, -1.5]]), batch)
    assert grad[0].tolist() == pytest.approx([0.0, -2 / 3, 1 / 3], abs=1e-12)
    assert loss.metrics["clip_fraction"] == pytest.approx(1 / 3)


@given(st.integers(0, 2**31), st.integers(1, 30))
def test_the_draw_has_the_right_size_and_does_not_see_the_order(seed, count):
    rng = np.random.default_rng(seed)
    values, among = torch.from_numpy(rng.normal(size=(5, 6))), torch.from_numpy(rng.random((5, 6)) < 0.8)
    chosen = drawn(values, among, count)
    assert int(chosen.sum()) == min(count, int(among.sum()))
    assert not bool((chosen & ~among).any())
    order = torch.from_numpy(rng.permutation(5))
    assert torch.equal(drawn(values[order], among[order], count), chosen[order])


def test_the_draw_is_fair():
    """Each of 40 cells has probability 1/4: chi-square over 1000 draws, false alarm 1e-4 for a fresh seed."""
    from scipy.stats import chisquare

    rng = np.random.default_rng(0)
    hits = sum(
        drawn(torch.from_numpy(rng.random((4, 10))), torch.ones(4, 10, dtype=torch.bool), 10) for _ in range(1000)
    )
    assert chisquare(hits.flatten().numpy()).pvalue > 1e-4
    # Nor does being large or small matter.
    ranks = [
        drawn(torch.from_numpy(np.sort(rng.random((1, 40)))), torch.ones(1, 40, dtype=torch.bool), 10)
        for _ in range(1000)
    ]
    assert chisquare(sum(ranks)[0].numpy()).pvalue > 1e-4


# Finite differences: detached pieces are held fixed by differentiating in a direction that moves only what has a
# gradient


def random_batch(make_batch, lengths=(3, 1, 4, 2), seed=0, spread=0.3):
    generator = torch.Generator().manual_seed(seed)
    batch = make_batch(list(lengths), groups=[i // 2 for i in range(len(lengths))])

    def noise():
        return torch.randn(batch.mask.shape, generator=generator, dtype=torch.float64)

    batch.logprobs = torch.where(batch.mask, -1 + 0.3 * noise(), 0)
    batch.advantages = torch.where(batch.mask, noise(), 0)
    batch.signals["reference_logprobs"] = batch.logprobs + 0.2 * noise()
    batch.signals["policy_logprobs"] = batch.logprobs + 0.1 * noise()
    batch.live["entropy"] = noise().abs()
    return batch, batch.logprobs + spread * noise()


SMOOTH = [
    ClippedSurrogate(kl_weight=0.3, aggregation="sequence_mean"),
    ClippedSurrogate(kl_weight=0.3, kl_estimator="k2", kl_off_policy=True, correction="token_truncate"),
    ClippedSurrogate(dual_clip=1.5, aggregation="constant", max_length=9, correction="sequence_mask"),
    GSPO(clip_low=0.05, clip_high=0.05, kl_weight=0.1),
    SAPO(kl_weight=0.1, kl_estimator="k1"),
    GMPO(clip_low=0.1, clip_high=0.1, aggregation="sequence_sum"),
    KLCov(ratio_of_tokens=0.3),
    PolicyGradient(kl_weight=0.1),
]


@pytest.mark.parametrize("objective", SMOOTH, ids=lambda o: type(o).__name__)
@pytest.mark.parametrize("seed", range(5))
def test_gradients_by_finite_differences(make_batch, objective, seed):
    """Points within 1e-4 of a kink would disagree; none of these seeds has one."""
    batch, logprobs = random_batch(make_batch, seed=seed)
    if isinstance(objective, KLCov):
        objective.prepare(batch)
    _, grad = gradient_of(objective, logprobs, batch)
    step = 1e-6
    for cell in batch.mask.nonzero().tolist():
        up, down = logprobs.clone(), logprobs.clone()
        up[tuple(cell)] += step
        down[tuple(cell)] -= step
        slope = (objective(up, batch).value.item() - objective(down, batch).value.item()) / (2 * step)
        assert grad[tuple(cell)].item() == pytest.approx(slope, abs=1e-7)
    assert torch.count_nonzero(grad[~batch.mask]) == 0


@pytest.mark.parametrize("seed", range(3))
def test_constant_weights_are_constant(make_batch, seed):
    """CISPO's gradient is its weight times -A; that of GSPO-token is its ratio times -A / T where not clipped."""
    batch, logprobs = random_batch(make_batch, seed=seed)
    weight = (logprobs - batch.logprobs).exp().clamp(max=1.28)
    _, grad = gradient_of(CISPO(clip_high=0.28, aggregation="sequence_sum"), logprobs, batch)
    assert torch.allclose(grad, torch.where(batch.mask, -weight * batch.advantages / 4, 0), atol=1e-12)
    _, grad = gradient_of(GSPOToken(clip_low=9.0, clip_high=9.0), logprobs, batch)
    gaps = torch.where(batch.mask, logprobs - batch.logprobs, 0).sum(-1) / batch.lengths
    expected = -gaps.exp()[:, None] * batch.advantages / (4 * batch.lengths[:, None])
    assert torch.allclose(grad, torch.where(batch.mask, expected, 0), atol=1e-12)


# Limits


def same(make_batch, one, other, logprobs_of=lambda batch, moved: moved, flat_advantages=False):
    batch, moved = random_batch(make_batch)
    if flat_advantages:
        batch.advantages = torch.where(batch.mask, batch.advantages[:, :1], 0)
    logprobs = logprobs_of(batch, moved)
    (a, ga), (b, gb) = (gradient_of(o, logprobs, batch) for o in (one, other))
    assert torch.allclose(ga, gb, atol=1e-12)
    assert float(ga.abs().max()) > 1e-3
    return a.value.item(), b.value.item()


@pytest.mark.parametrize("objective", [*FREE, KLCov(weight=0.0)], ids=lambda o: type(o).__name__)
def test_at_the_sampling_policy_all_have_the_gradient_of_reinforce(make_batch, objective):
    """At rho = 1 surrogates differ only in value: the first update of a batch is the policy gradient."""
    own = {"aggregation": "sequence_mean"}
    # The tokens of a response share the one ratio of which each has the whole gradient.
    shared = {"aggregation": "sequence_sum"} if isinstance(objective, WholeResponse) else own
    made = build("objective", {"name": "reinforce", **shared})
    one = type(objective)(**own) if not isinstance(objective, KLCov) else KLCov(weight=0.0, **own)
    same(make_batch, one, made, lambda batch, moved: batch.logprobs, flat_advantages=True)


def test_gspo_token_is_gspo_where_the_advantage_is_the_same_on_every_token(make_batch):
    for clip in (0.05, 5.0):
        one, other = (k(clip_low=clip, clip_high=clip) for k in (GSPO, GSPOToken))
        a, b = same(make_batch, one, other, flat_advantages=True)
        assert a == pytest.approx(b, abs=1e-12)


def test_with_one_token_per_response_the_ratios_of_sequences_are_those_of_clip(make_batch):
    batch, logprobs = random_batch(make_batch, lengths=[1] * 6)
    expected, grad = gradient_of(ClippedSurrogate(), logprobs, batch)
    for sequence in (GSPO(clip_low=0.2, clip_high=0.2), WholeResponse()):
        got, other = gradient_of(sequence, logprobs, batch)
        assert got.value.item() == pytest.approx(expected.value.item(), abs=1e-12)
        assert torch.allclose(grad, other, atol=1e-12)
    log = GMPO(clip_low=-math.log(0.8), clip_high=math.log(1.2))
    got, other = gradient_of(log, logprobs, batch)
    assert got.value.item() == pytest.approx(expected.value.item(), abs=1e-12)
    assert torch.allclose(grad, other, atol=1e-12)


def test_a_wide_range_is_no_clip(make_batch):
    a, b = same(make_batch, ClippedSurrogate(clip_low=1.0, clip_high=1e9), KLCov(weight=0.0))
    assert a == pytest.approx(b, abs=1e-12)


def test_clip_cov_without_candidates_is_clip(make_batch):
    a, b = same(make_batch, ClipCov(low=100.0, high=101.0), ClippedSurrogate())
    assert a == pytest.approx(b, abs=1e-12)


def test_sapo_is_the_plain_surrogate_near_one(make_batch):
    """To second order in rho - 1, less its value 2 A at rho = 1 against A."""
    batch, moved = random_batch(make_batch, spread=1e-4)
    _, smooth = gradient_of(SAPO(), moved, batch)
    _, plain = gradient_of(ClippedSurrogate(clip_low=1.0, clip_high=9.0, aggregation="sequence_mean"), moved, batch)
    assert torch.allclose(smooth, plain, atol=1e-6)


def test_sft_is_reinforce_with_advantage_one(make_batch):
    batch, moved = random_batch(make_batch)
    batch.advantages = torch.ones_like(batch.advantages)
    (a, ga), (b, gb) = (gradient_of(o, moved, batch) for o in (SFT(), PolicyGradient()))
    assert a.value.item() == pytest.approx(b.value.item(), abs=1e-12)
    assert torch.allclose(ga, gb)


# Divergences


def test_k3_plus_has_the_value_of_k3_and_the_gradient_of_k2():
    logprobs, reference = tensor([[-1.0, -2.0]], grad=True), tensor([[-1.5, -0.5]])
    values = {e: kl_estimate(logprobs, reference, e) for e in ("k2", "k3", "k3+")}
    assert torch.equal(values["k3+"], values["k3"])
    grads = {e: torch.autograd.grad(v.sum(), logprobs, retain_graph=True)[0] for e, v in values.items()}
    assert torch.equal(grads["k3+"], grads["k2"])


P, REFERENCE = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])


@pytest.mark.parametrize("old", [P, np.array([0.2, 0.2, 0.6])])
@pytest.mark.parametrize("estimator", ["k1", "k2", "k3", "k3+"])
def test_off_policy_the_ratio_carries_the_divergence_over(make_batch, old, estimator):
    """Tokens drawn from ``old``, enumerated with their probability as weight.

    The loss is the mean of the estimate under pi; for k1 and k3, whose mean is the divergence whatever pi is, the
    gradient through ratio and estimate is the divergence's own.
    """
    logits = torch.tensor(np.log(P), requires_grad=True)
    logprobs = logits.log_softmax(-1)[:, None]
    batch = make_batch([1] * 3, logprobs=tensor(np.log(old)[:, None].tolist()), weights=torch.tensor(3 * old))
    batch.signals["reference_logprobs"] = tensor(np.log(REFERENCE)[:, None].tolist())
    objective = ClippedSurrogate(kl_weight=1.0, kl_estimator=estimator, kl_off_policy=True, aggregation="sequence_sum")
    value = objective(logprobs, batch).value
    d = torch.tensor(np.log(REFERENCE)) - logits.log_softmax(-1)
    estimate = {"k1": -d, "k2": d**2 / 2}.get(estimator, d.exp() - d - 1)
    expected = (logits.softmax(-1) * estimate).sum()
    assert value.item() == pytest.approx(expected.item(), abs=1e-12)
    if estimator in ("k1", "k3"):
        exact = (logits.softmax(-1) * -d).sum()
        assert value.item() == pytest.approx(exact.item(), abs=1e-12)
        ours, truth = (torch.autograd.grad(v, logits, retain_graph=True)[0] for v in (value, exact))
        assert torch.allclose(ours, truth, atol=1e-12)


# Engine mismatch


def test_mismatch_weights_by_hand():
    """Ratios of the trainer to the engine: 4, 0.25, 1.5 and one unknown."""
    behaviour = tensor([[-2.0, -2.0, -2.0, math.nan]])
    old = tensor([[-2 + math.log(4), -2 + math.log(0.25), -2 + math.log(1.5), -1.0]])
    mask = torch.ones(1, 4, dtype=torch.bool)

    def weights(kind, **bounds):
        return mismatch_weights(old, behaviour, mask, kind, **bounds)[0].tolist()

    assert weights("none") == weights("recompute") == [1, 1, 1, 1]
    assert weights("token_truncate") == pytest.approx([2, 0.25, 1.5, 1])
    assert weights("token_truncate", floor=0.5) == pytest.approx([2, 0.5, 1.5, 1])
    assert weights("token_mask", floor=0.5) == pytest.approx([0, 0, 1.5, 1])
    assert weights("sequence_truncate", cap=1.2) == pytest.approx([1.2] * 4)
    assert weights("sequence_mask") == pytest.approx([1.5] * 4)
    assert weights("sequence_mask", cap=1.4) == [0] * 4
    mean = 1.5**0.25
    assert weights("geometric_mask", cap=mean + 1e-6) == [1] * 4
    assert weights("geometric_mask", cap=mean - 1e-6) == [0] * 4


@pytest.mark.parametrize("kind", ["token_truncate", "sequence_truncate"])
def test_without_truncation_the_weights_make_up_for_the_engine(make_batch, kind):
    """E under the engine of w x gradient is the trainer's own expected gradient, enumerated over three tokens."""
    engine, own = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    rewards = np.array([1.0, 0.0, -2.0])
    logits = torch.tensor(np.log(own), requires_grad=True)
    logprobs = logits.log_softmax(-1)[:, None]
    batch = make_batch([1] * 3, logprobs=tensor(np.log(engine)[:, None].tolist()), weights=torch.tensor(3 * engine))
    batch.advantages = tensor(rewards[:, None].tolist())
    batch.signals["policy_logprobs"] = logprobs.detach()
    objective = ClippedSurrogate(correction=kind, correction_cap=100.0, aggregation="sequence_sum")
    (grad,) = torch.autograd.grad(objective(logprobs, batch).value, logits)
    assert objective.needs == {"policy_logprobs"}
    assert grad.tolist() == pytest.approx((-own * (rewards - own @ rewards)).tolist(), abs=1e-12)


def test_the_correction_multiplies_the_surrogate_only(make_batch):
    batch, moved = random_batch(make_batch)
    plain, with_kl = (
        ClippedSurrogate(correction="token_truncate", correction_cap=1.0, kl_weight=w)(moved, batch) for w in (0.0, 0.5)
    )
    divergence = kl_estimate(moved, batch.signals["reference_logprobs"], "k3")[batch.mask].mean()
    assert with_kl.value.item() - plain.value.item() == pytest.approx(0.5 * divergence.item(), abs=1e-12)
    assert 0 < plain.metrics["mismatch/weight"] < 1
    assert "kl/old" in plain.metrics and "kl/behaviour" not in plain.metrics


def test_recompute_ignores_the_engine(make_batch):
    batch, moved = random_batch(make_batch)
    expected = ClippedSurrogate(correction="recompute")(moved, batch).value.item()
    batch.logprobs = batch.signals["policy_logprobs"]
    assert ClippedSurrogate()(moved, batch).value.item() == expected


# Unknown authors, impossible tokens, and what lies outside the mask


@pytest.mark.parametrize("objective", SURROGATES, ids=NAMES)
def test_where_the_author_is_unknown_the_ratio_is_one(make_batch, objective):
    """A behaviour log-probability NaN is the same as the policy's own, held constant."""
    batch, moved = random_batch(make_batch)
    batch.logprobs[0, 1] = moved[0, 1]
    expected, grad = gradient_of(objective, moved, batch)
    batch.logprobs[0, 1] = math.nan
    got, other = gradient_of(objective, moved, batch)
    assert got.value.item() == expected.value.item()
    assert torch.equal(grad, other)


@pytest.mark.parametrize("objective", SURROGATES, ids=NAMES)
@pytest.mark.parametrize("garbage", [math.nan, math.inf, -math.inf])
def test_nothing_outside_the_mask_matters(make_batch, objective, garbage):
    full = type(objective)(
        **{f: getattr(objective, f) for f in objective.__dataclass_fields__}
        | {"kl_weight": 0.1, "entropy_weight": 0.1, "correction": "token_truncate"}
    )
    results = []
    for filling in (0.0, garbage):
        batch, moved = random_batch(make_batch)
        for x in (batch.logprobs, moved, *batch.signals.values(), batch.live["entropy"]):
            x[~batch.mask] = filling
        loss, grad = gradient_of(full, moved, batch)
        results.append((loss.value.item(), loss.metrics, grad.tolist()))
    assert results[0] == results[1]
    assert all(math.isfinite(v) for v in results[0][1].values())


@pytest.mark.parametrize("objective", SURROGATES, ids=NAMES)
@pytest.mark.parametrize("now", [-math.inf, -200.0, 0.0])
@pytest.mark.parametrize("then", [-math.inf, -200.0, -1.0, math.nan])
@pytest.mark.parametrize("advantage", [-1.0, 0.0, 1.0])
def test_extreme_log_probabilities_stay_finite_in_float32(make_batch, objective, now, then, advantage):
    batch = make_batch([2])
    for name in ("logprobs", "advantages", "weights", "rewards"):
        setattr(batch, name, getattr(batch, name).float())
    batch.logprobs = torch.tensor([[then, -1.0]])
    batch.advantages = torch.full((1, 2), advantage)
    loss, grad = gradient_of(objective, torch.tensor([[now, -1.1]]), batch)
    assert math.isfinite(loss.value.item())
    assert bool(grad.isfinite().all())
    assert all(math.isfinite(v) for v in loss.metrics.values())


@pytest.mark.parametrize("objective", SURROGATES, ids=NAMES)
@pytest.mark.parametrize("lengths", [[], [0], [0, 0], [0, 2], [1]])
def test_few_and_empty_responses(make_batch, objective, lengths):
    batch = make_batch(lengths)
    batch.advantages = torch.ones(batch.mask.shape, dtype=torch.float64)
    loss, grad = gradient_of(objective, torch.zeros(batch.mask.shape, dtype=torch.float64), batch)
    assert math.isfinite(loss.value.item())
    assert bool(grad.isfinite().all())


# The same loss however the batch is cut, ordered and padded


@pytest.mark.parametrize("objective", SURROGATES, ids=NAMES)
@given(
    parts=st.lists(st.integers(0, 2), min_size=6, max_size=6),
    order=st.permutations(range(6)),
    extra=st.integers(0, 3),
)
def test_splitting_ordering_and_padding_change_nothing(make_batch, objective, parts, order, extra):
    batch, moved = random_batch(make_batch, lengths=[3, 1, 2, 4, 0, 2])
    batch.weights = torch.tensor([1.0, 2.0, 0.0, 1.0, 1.0, 1.0], dtype=torch.float64)
    batch.totals = batch.count()
    if hasattr(objective, "prepare"):
        objective.prepare(batch)
    expected = objective(moved, batch).value.item()
    total = 0.0
    for part in sorted(set(parts)):
        index = torch.tensor([i for i in order if parts[i] == part])
        micro = batch.rows(index)
        width = micro.mask.shape[1]
        for name in ("mask", "tokens", "advantages", "logprobs"):
            setattr(micro, name, torch.nn.functional.pad(getattr(micro, name), (0, extra)))
        micro.signals = {k: torch.nn.functional.pad(v, (0, extra)) for k, v in micro.signals.items()}
        logprobs = torch.nn.functional.pad(moved[index][:, :width], (0, extra), value=math.nan)
        total += objective(logprobs, micro).value.item()
    assert total == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("objective", FREE, ids=NAMES[: len(FREE)])
def test_a_sample_without_advantage_can_be_skipped(make_batch, objective):
    """What ``zero_advantage_is_idle`` promises."""
    assert objective.zero_advantage_is_idle
    batch, moved = random_batch(make_batch)
    batch.advantages[1] = 0
    batch.totals = batch.count()
    expected, grad = gradient_of(objective, moved, batch)
    index = torch.tensor([0, 2, 3])
    got, rest = gradient_of(objective, moved[index], batch.rows(index))
    assert got.value.item() == pytest.approx(expected.value.item(), abs=1e-12)
    assert torch.allclose(rest, grad[index])
    assert torch.count_nonzero(grad[1]) == 0


def test_prepared_tokens_are_those_of_the_whole_mini_batch(make_batch):
    batch, _ = random_batch(make_batch)
    at_start = KLCov(ratio_of_tokens=0.3)
    free = at_start(batch.signals["policy_logprobs"], batch).value.item()
    at_start.prepare(batch)
    assert at_start(batch.signals["policy_logprobs"], batch).value.item() == free
    assert int(batch.signals["covariance_selected"].sum()) == 3


# Options


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({"name": "clip", "dual_clip": 0.5}, "dual_clip"),
        ({"name": "clip", "clip_low": -0.1}, "negative"),
        ({"name": "gspo", "aggregation": "constant"}, "max_length"),
        ({"name": "cispo", "correction_cap": 0.5}, "correction_cap"),
        ({"name": "sapo", "tau_positive": 0.0}, "tau"),
        ({"name": "kl_cov", "ratio_of_tokens": 0.0}, "ratio_of_tokens"),
        ({"name": "gmpo", "aggregation": "mean"}, "aggregation"),
        ({"name": "clip", "correction": "tis"}, "correction"),
    ],
)
def test_nonsense_is_refused(spec, word):
    with pytest.raises(UsageError, match=word):
        build("objective", spec)


@pytest.mark.parametrize(
    "name", ["clip", "gspo", "gspo_token", "response", "cispo", "sapo", "gmpo", "gpg", "clip_cov", "kl_cov"]
)
def test_they_are_built_by_name(name):
    assert isinstance(build("objective", {"name": name, "correction": "token_truncate", "kl_weight": 0.1}), Objective)
