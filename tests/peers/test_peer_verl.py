"""verl's own advantage and loss functions, as shipped, on the same random inputs: value and gradient agree.

Where the two differ by definition, the test states the difference and checks that it is exactly that.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from assay.credit.gae import GAE, generalised_advantages
from assay.credit.gpg import GPG
from assay.credit.grpo import GRPO
from assay.credit.opo import OPO
from assay.credit.reinforce_pp import ReinforcePlusPlus, ReinforcePlusPlusBaseline
from assay.credit.remax import ReMax
from assay.credit.rloo import RLOO
from assay.objectives.cispo import CISPO
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.correction import mismatch_weights
from assay.objectives.covariance import ClipCov, KLCov
from assay.objectives.gmpo import GMPO
from assay.objectives.gspo import GSPO, GSPOToken
from assay.objectives.policy_gradient import PolicyGradient
from assay.objectives.sapo import SAPO
from assay.ops import aggregate, kl_estimate

from .samples import Sample, agree, sample

core = pytest.importorskip(
    "verl.trainer.ppo.core_algos", reason="verl is not installed: make peers", exc_type=ImportError
)

SEEDS = range(3)
AGGREGATIONS = {
    "token_mean": "token-mean",
    "sequence_mean": "seq-mean-token-mean",
    "sequence_sum": "seq-mean-token-sum",
    "constant": "seq-mean-token-sum-norm",
}


def config(low=0.2, high=0.2, factor=None, policy_loss=None, **options):
    """verl's own actor configuration."""
    from verl.workers.config import ActorConfig, PolicyLossConfig

    made = ActorConfig(
        strategy="fsdp",
        clip_ratio=0.2,
        clip_ratio_low=low,
        clip_ratio_high=high,
        rollout_n=1,
        ppo_micro_batch_size_per_gpu=1,
        policy_loss=PolicyLossConfig(**(policy_loss or {})),
        **options,
    )
    made.global_batch_info.update({"loss_scale_factor": factor} if factor else {})
    return made


def verl_loss(name: str, made: Sample, mode: str = "token-mean", settings=None, weights=None):
    """One of verl's registered losses as a function of log-probabilities."""

    def loss(logprobs):
        return core.get_policy_loss_fn(name)(
            old_log_prob=made.old,
            log_prob=logprobs,
            advantages=made.advantages,
            response_mask=made.mask,
            loss_agg_mode=mode,
            config=settings or config(),
            rollout_is_weights=weights,
        )[0]

    return loss


def our_loss(objective, made: Sample):
    return lambda logprobs: objective(logprobs, made.batch).value


# Advantages


def close(ours, theirs, made: Sample, tolerance=1e-9):
    assert torch.allclose(ours, torch.where(made.batch.mask, theirs.double(), 0), atol=tolerance)
    assert float(ours.abs().max()) > 0.1


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("credit", "name", "options"),
    [
        (GRPO(), "grpo", {"norm_adv_by_std_in_grpo": True}),
        (GRPO(normalise=False), "grpo", {"norm_adv_by_std_in_grpo": False}),
        (RLOO(), "rloo", {}),
        (RLOO(), "rloo_vectorized", {}),
        (OPO(), "opo", {}),
        (ReinforcePlusPlusBaseline(), "reinforce_plus_plus_baseline", {}),
    ],
)
def test_advantages_of_groups(credit, name, options, seed, holes):
    made = sample(seed, holes=holes)
    theirs, _ = core.get_adv_estimator_fn(name)(
        token_level_rewards=made.placed.clone(), response_mask=made.mask, index=made.index, **options
    )
    close(credit(made.batch), theirs, made)


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("discount", [1.0, 0.9])
@pytest.mark.parametrize("seed", SEEDS)
def test_reinforce_pp_with_the_divergence_in_the_reward(seed, discount, holes):
    made = sample(seed, holes=holes)
    reference = made.batch.signals["reference_logprobs"]
    penalised = core.compute_rewards(made.placed, made.old, reference, 0.1) * made.mask
    theirs, _ = core.get_adv_estimator_fn("reinforce_plus_plus")(
        token_level_rewards=penalised, response_mask=made.mask, config=SimpleNamespace(gamma=discount)
    )
    made.batch.token_rewards = torch.where(made.batch.mask, -0.1 * kl_estimate(made.old, reference, "k1"), 0)
    close(ReinforcePlusPlus(discount)(made.batch), theirs, made)


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_remax(seed, holes):
    made = sample(seed, holes=holes)
    baselines = torch.from_numpy(np.random.default_rng(seed).random(len(made.batch)))
    made.batch.token_rewards = torch.where(made.batch.mask, 0.1 * made.batch.signals["values"], 0)
    made.batch.signals["baseline_rewards"] = baselines
    theirs, _ = core.get_adv_estimator_fn("remax")(
        token_level_rewards=made.placed + made.batch.token_rewards, reward_baselines=baselines, response_mask=made.mask
    )
    close(ReMax()(made.batch), theirs, made)


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize(("discount", "decay"), [(1.0, 0.95), (0.9, 0.8), (1.0, 1.0), (0.9, 0.0)])
@pytest.mark.parametrize("seed", SEEDS)
def test_gae(seed, discount, decay, holes):
    made = sample(seed, holes=holes)
    values = made.batch.signals["values"]
    theirs, returns = core.compute_gae_advantage_return(made.placed, values, made.mask, discount, decay)
    close(GAE(discount, decay)(made.batch), theirs, made)
    _, ours = generalised_advantages(made.placed, values, made.batch.mask, discount, decay)
    assert torch.allclose(ours, torch.where(made.batch.mask, returns, 0))


@pytest.mark.parametrize("seed", SEEDS)
def test_gpg_differs_in_what_it_counts(seed):
    """verl divides by the number of rewards other than zero; the paper, and we, by that of samples in mixed groups."""
    made = sample(seed)
    theirs, _ = core.get_adv_estimator_fn("gpg")(
        token_level_rewards=made.placed.clone(), response_mask=made.mask, index=made.index
    )
    mixed = made.size * (made.groups - 1)  # one group has equal rewards
    nonzero = int((made.batch.rewards != 0).sum())
    close(GPG()(made.batch), theirs * nonzero / mixed, made)


def test_a_group_of_one_differs():
    """verl's loops leave a lone reward as it is; we, TRL and verl's vectorised RLOO have nothing to compare it with."""
    made = sample(0, groups=2, size=1)
    for credit, name in ((RLOO(), "rloo"), (OPO(), "opo"), (GRPO(normalise=False), "grpo")):
        options = {"norm_adv_by_std_in_grpo": False} if name == "grpo" else {}
        theirs, _ = core.get_adv_estimator_fn(name)(
            token_level_rewards=made.placed.clone(), response_mask=made.mask, index=made.index, **options
        )
        assert torch.equal(theirs, made.batch.rewards[:, None] * made.mask)
        assert torch.count_nonzero(credit(made.batch)) == 0


# Aggregation


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize(("ours", "theirs"), AGGREGATIONS.items())
def test_aggregation(ours, theirs, holes):
    made = sample(1, holes=holes)
    loss = torch.randn(made.mask.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = core.agg_loss(loss, made.mask, theirs, loss_scale_factor=9)
    # verl adds 1e-8 to each length.
    assert aggregate(loss, made.batch, ours, 9).item() == pytest.approx(expected.item(), abs=1e-7)


# Losses


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize(("ours", "theirs"), AGGREGATIONS.items())
@pytest.mark.parametrize("seed", SEEDS)
def test_clip_higher_and_dual_clip(seed, ours, theirs, holes):
    made = sample(seed, holes=holes, spread=1.0)
    objective = ClippedSurrogate(clip_high=0.28, dual_clip=2.0, aggregation=ours, max_length=9)
    settings = config(0.2, 0.28, factor=9, clip_ratio_c=2.0)
    agree(our_loss(objective, made), verl_loss("vanilla", made, theirs, settings), made, 1e-7)


@pytest.mark.parametrize(
    ("objective", "name", "low", "high", "mode"),
    [
        (GSPO(clip_low=0.1, clip_high=0.2), "gspo", 0.1, 0.2, "seq-mean-token-mean"),
        (GSPOToken(clip_low=0.1, clip_high=0.2), "gspo", 0.1, 0.2, "seq-mean-token-mean"),
        (GSPOToken(clip_low=0.1, clip_high=0.2, aggregation="token_mean"), "gspo", 0.1, 0.2, "token-mean"),
        (CISPO(clip_low=0.2, clip_high=0.28), "cispo", 0.2, 0.28, "token-mean"),
        (SAPO(), "sapo", 0.2, 0.2, "seq-mean-token-mean"),
        (GMPO(clip_low=0.2, clip_high=0.3), "geo_mean", 0.2, 0.3, "token-mean"),
        (PolicyGradient(), "gpg", 0.2, 0.2, "token-mean"),
        (PolicyGradient(aggregation="sequence_sum"), "gpg", 0.2, 0.2, "seq-mean-token-sum"),
        (KLCov(ratio_of_tokens=0.2, weight=0.7), "kl_cov", 0.2, 0.2, "token-mean"),
        (ClipCov(clip_high=0.3, ratio_of_tokens=1.0, low=0.1), "clip_cov", 0.2, 0.3, "token-mean"),
    ],
    ids=lambda x: type(x).__name__ if not isinstance(x, (str, float)) else None,
)
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_losses(objective, name, low, high, mode, seed, holes):
    """Clip-Cov holds back every candidate here, since its draw among them is at random on either side."""
    made = sample(seed, holes=holes)
    share = {"clip_cov_ratio": 1.0, "clip_cov_lb": 0.1, "clip_cov_ub": 5.0, "kl_cov_ratio": 0.2, "ppo_kl_coef": 0.7}
    settings = config(low, high, policy_loss=share, tau_pos=1.0, tau_neg=1.05)
    agree(our_loss(objective, made), verl_loss(name, made, mode, settings), made, 1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_clip_cov_draws_as_many(seed):
    made = sample(seed, groups=8)
    chosen = ClipCov(ratio_of_tokens=0.1, low=0.0)
    chosen.prepare(made.batch)
    count = int(made.batch.signals["covariance_selected"].sum())
    made.logprobs = made.old.clone()
    settings = config(policy_loss={"clip_cov_ratio": 0.1, "clip_cov_lb": 0.0, "clip_cov_ub": 5.0})
    _, metrics = core.get_policy_loss_fn("clip_cov")(
        old_log_prob=made.old,
        log_prob=made.logprobs,
        advantages=made.advantages,
        response_mask=made.mask,
        config=settings,
    )
    assert count == round(metrics["actor/pg_clipfrac"] * int(made.mask.sum()))


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3", "k3+"])
def test_divergences(estimator):
    made = sample(0, spread=1.0)
    reference = made.batch.signals["reference_logprobs"]
    agree(
        lambda x: kl_estimate(x, reference, estimator)[made.batch.mask].sum(),
        lambda x: core.kl_penalty(x, reference, estimator)[made.batch.mask].sum(),
        made,
    )


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("floor", [None, 0.8])
@pytest.mark.parametrize("seed", SEEDS)
def test_engine_mismatch(seed, level, floor):
    """Truncated (one threshold) and masked (two) importance sampling."""
    from verl.trainer.ppo.rollout_corr_helper import compute_rollout_correction_weights

    made = sample(seed, holes=True)
    old = made.batch.signals["policy_logprobs"]
    threshold = 1.2 if floor is None else f"{floor}_1.2"
    theirs, _ = compute_rollout_correction_weights(
        torch.where(made.batch.mask, old - made.old, 0), made.mask, level, threshold
    )
    kind = f"{level}_{'truncate' if floor is None else 'mask'}"
    ours = mismatch_weights(old, made.old, made.batch.mask, kind, floor or 0.0, 1.2)
    assert torch.allclose(torch.where(made.batch.mask, ours, 0), theirs, atol=1e-12)
    # On a loss: verl's old policy is the trainer's own.
    behaviour = made.batch.logprobs
    objective = ClippedSurrogate(correction=kind, correction_floor=floor or 0.0, correction_cap=1.2)
    ours_loss = our_loss(objective, made)
    made.logprobs = old + 0.3
    value = ours_loss(made.logprobs).item()
    made.batch.logprobs = old
    expected = verl_loss("vanilla", made, weights=theirs)(made.logprobs).item()
    assert value == pytest.approx(expected, abs=1e-9)
    assert not torch.equal(behaviour, old)
