"""TRL's own losses and advantages, run as shipped on the same random inputs: value and gradient agree.

TRL keeps them inside its trainers. The losses are called as methods of a stand-in that hands them log-probabilities
instead of a model; the advantages are statements of a long method, which are compiled from its source and run.
"""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from assay.credit.grpo import GRPO
from assay.credit.rloo import RLOO
from assay.credit.standardised import Standardised
from assay.objectives.cispo import CISPO
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.correction import mismatch_weights
from assay.objectives.gmpo import GMPO
from assay.objectives.gspo import GSPO
from assay.objectives.preference import DPO, IPO, sequence_log_ratio
from assay.objectives.sapo import SAPO
from assay.objectives.whole_response import WholeResponse
from assay.ops.outcome_losses import kto_loss

from .samples import Sample, agree, sample

trl = pytest.importorskip("trl", reason="trl is not installed: make peers")

SEEDS = range(3)
ALONE = SimpleNamespace(
    device="cpu",
    num_processes=1,
    reduce=lambda x, reduction="sum": x,
    gather=lambda x: x,
    gather_for_metrics=lambda x: x,
)


def stand_in(made: Sample, loss_type: str, **settings: Any) -> SimpleNamespace:
    """What ``_compute_loss`` of TRL's group trainers reads of its trainer."""
    options: dict[str, Any] = {
        "aux_loss_enabled": False,
        "top_entropy_quantile": 1.0,
        "off_policy_mask_threshold": None,
        "importance_sampling_level": "token",
        "beta": 0.0,
        "epsilon_low": 0.2,
        "epsilon_high": 0.2,
        "use_vllm": False,
        "vllm_importance_sampling_correction": False,
        "max_completion_length": 9,
        "_entropy_bonus_enabled": False,
        "current_gradient_accumulation_steps": 1,
    }
    arguments = {
        "delta": None,
        "use_bias_correction_kl": False,
        "sapo_temperature_pos": 1.0,
        "sapo_temperature_neg": 1.05,
    }
    for key, value in settings.items():
        (arguments if key in arguments else options)[key] = value
    return SimpleNamespace(
        loss_type=loss_type,
        args=SimpleNamespace(**arguments),
        accelerator=ALONE,
        model=SimpleNamespace(training=False),
        _metrics={"eval": defaultdict(list)},
        **options,
    )


def trl_loss(made: Sample, loss_type: str, trainer: type | None = None, **settings: Any):
    """TRL's loss as a function of log-probabilities."""
    entropies = made.batch.live["entropy"]
    inputs = {
        "prompt_ids": torch.zeros(len(made.batch), 1, dtype=torch.int64),
        "prompt_mask": torch.ones(len(made.batch), 1, dtype=torch.int64),
        "completion_ids": made.batch.tokens,
        "completion_mask": made.mask,
        "advantages": made.advantages.gather(1, made.batch.mask.int().argmax(1, keepdim=True))[:, 0],
        "old_per_token_logps": made.old,
        "old_logps": (made.old * made.mask).sum(1),
        "ref_per_token_logps": made.batch.signals["reference_logprobs"],
        "num_items_in_batch": made.mask.sum(),
    }

    def loss(logprobs):
        self = stand_in(made, loss_type, **settings)
        self._get_per_token_logps_and_entropies = lambda *_, **__: (logprobs, entropies, None)
        return (trainer or trl.GRPOTrainer)._compute_loss(self, None, inputs)

    return loss


def our_loss(objective, made: Sample):
    return lambda logprobs: objective(logprobs, made.batch).value


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("objective", "loss_type", "settings"),
    [
        (ClippedSurrogate(aggregation="sequence_mean"), "grpo", {}),
        (ClippedSurrogate(aggregation="sequence_mean", kl_weight=0.1), "grpo", {"beta": 0.1}),
        (
            ClippedSurrogate(aggregation="sequence_mean", kl_weight=0.1, kl_off_policy=True),
            "grpo",
            {"beta": 0.1, "use_bias_correction_kl": True},
        ),
        (ClippedSurrogate(clip_high=0.28), "dapo", {"epsilon_high": 0.28}),
        (ClippedSurrogate(dual_clip=1.5), "dapo", {"delta": 1.5}),
        (ClippedSurrogate(), "bnpo", {}),
        (ClippedSurrogate(aggregation="constant", max_length=9), "dr_grpo", {}),
        (
            GSPO(clip_low=0.05, clip_high=0.1),
            "grpo",
            {"importance_sampling_level": "sequence", "epsilon_low": 0.05, "epsilon_high": 0.1},
        ),
        (CISPO(clip_high=0.3), "cispo", {"epsilon_high": 1.3}),
        (SAPO(), "sapo", {}),
        (SAPO(tau_positive=2.0, tau_negative=3.0), "sapo", {"sapo_temperature_pos": 2.0, "sapo_temperature_neg": 3.0}),
    ],
    ids=lambda x: (
        x if isinstance(x, str) else "-".join(map(str, x.values())) if isinstance(x, dict) else type(x).__name__
    ),
)
def test_losses(objective, loss_type, settings, seed, holes):
    made = sample(seed, holes=holes)
    agree(our_loss(objective, made), trl_loss(made, loss_type, **settings), made, 1e-6)


@pytest.mark.parametrize("beta", [0.0, 0.1])
@pytest.mark.parametrize("seed", SEEDS)
def test_gmpo(seed, beta):
    trainers = pytest.importorskip("trl.experimental.gmpo")
    made = sample(seed)
    objective = GMPO(clip_low=0.1, clip_high=0.2, kl_weight=beta)
    settings = {"epsilon_low": 0.1, "epsilon_high": 0.2, "beta": beta}
    agree(our_loss(objective, made), trl_loss(made, "grpo", trainers.GMPOTrainer, **settings), made, 1e-9)


def test_the_entropy_bonus_with_the_token_mean():
    """TRL takes the mean entropy over tokens whatever the aggregation; ours follows the aggregation."""
    made = sample(0)
    settings = {"_entropy_bonus_enabled": True, "use_adaptive_entropy": False, "entropy_coef": 0.3}
    theirs = trl_loss(made, "dapo", **settings)
    agree(our_loss(ClippedSurrogate(entropy_weight=0.3), made), theirs, made)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_loss_of_rloo(seed):
    """TRL's RLOO clips the ratio of the whole response; its divergence is in the reward."""
    made = sample(seed)
    settings = {"epsilon_low": 0.3, "epsilon_high": 0.4}
    theirs = trl_loss(made, "", trl.RLOOTrainer, **settings)
    agree(our_loss(WholeResponse(clip_low=0.3, clip_high=0.4), made), theirs, made, 1e-6)


# Statements of long methods


def statements(function: Any, first: str, last: str, **names: Any) -> dict[str, Any]:
    """Run the statements of ``function`` from the one that starts with ``first`` to the one that starts with ``last``.

    Returns:
        The names they leave.
    """
    source = textwrap.dedent(inspect.getsource(function))
    [definition] = ast.parse(source).body
    for node in ast.walk(definition):
        for block in (getattr(node, field, None) for field in ("body", "orelse")):
            if not isinstance(block, list):
                continue
            starts = [ast.get_source_segment(source, s) or "" for s in block]
            begin = [i for i, s in enumerate(starts) if s.startswith(first)]
            end = [i for i, s in enumerate(starts) if s.startswith(last)]
            if begin and end:
                names = {**inspect.unwrap(function).__globals__, **names}
                exec(compile(ast.Module(block[begin[0] : end[-1] + 1], []), "trl", "exec"), names)
                return names
    raise AssertionError(f"TRL's {function.__qualname__} has no statements from {first!r} to {last!r}")


def trl_advantages(made: Sample, rewards: torch.Tensor, scale: str = "group") -> torch.Tensor:
    found = statements(
        trl.GRPOTrainer._generate_and_score_completions,
        "unscorable_mask =",
        "advantages = torch.nan_to_num",
        self=SimpleNamespace(
            multi_objective_aggregation="sum_then_normalize", reward_weights=torch.ones(1).double(), scale_rewards=scale
        ),
        rewards_per_func=rewards[:, None],
        num_generations=made.size,
        device="cpu",
    )
    return found["advantages"]


def with_abstentions(seed: int) -> tuple[Sample, torch.Tensor]:
    """A sample, the first of whose responses could not be judged, and its rewards in TRL's way."""
    made = sample(seed)
    rewards = made.batch.rewards.clone()
    made.batch.valid[0] = False
    rewards[0] = math.nan
    return made, rewards


@pytest.mark.parametrize(
    ("credit", "scale"),
    [
        (GRPO(epsilon=1e-4), "group"),
        (GRPO(normalise=False), "none"),
        (Standardised(epsilon=1e-4), "batch"),
    ],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_advantages_of_groups(credit, scale, seed):
    made, rewards = with_abstentions(seed)
    ours, theirs = credit(made.batch)[:, 0], trl_advantages(made, rewards, scale)
    assert torch.allclose(ours, theirs, atol=1e-9)
    assert float(ours.abs().max()) > 0.1


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_rloo(seed, alone):
    made, rewards = with_abstentions(seed)
    if alone:  # one response of the first group is left
        made.batch.valid[1:3] = False
        rewards[1:3] = math.nan
    found = statements(
        trl.RLOOTrainer._generate_and_score_completions,
        "grouped_rewards =",
        "advantages = torch.nan_to_num",
        self=SimpleNamespace(normalize_advantages=False),
        rewards=rewards,
        num_generations=made.size,
    )
    assert torch.allclose(RLOO()(made.batch)[:, 0], found["advantages"], atol=1e-9)


@pytest.mark.parametrize("mode", ["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"])
@pytest.mark.parametrize("seed", SEEDS)
def test_engine_mismatch_with_a_token_the_engine_kept_no_record_of(seed, mode):
    made = sample(seed)
    old = made.batch.signals["policy_logprobs"]
    made.batch.logprobs[0, 0] = math.nan
    found = statements(
        trl.GRPOTrainer._generate_and_score_completions,
        "per_token_logps_diff =",
        "if self.vllm_importance_sampling_mode in",
        self=SimpleNamespace(
            vllm_importance_sampling_mode=mode,
            vllm_importance_sampling_clip_min=0.8,
            vllm_importance_sampling_clip_max=1.2,
        ),
        mask=made.mask,
        old_per_token_logps=old,
        sampling_per_token_logps=made.batch.logprobs,
    )
    theirs = found["vllm_importance_sampling_ratio"].expand_as(old)
    ours = mismatch_weights(old, made.batch.logprobs, made.batch.mask, mode, 0.8, 1.2)
    assert torch.allclose(ours[made.batch.mask], theirs[made.batch.mask], atol=1e-9)


# Preferences


class Answers:
    """What TRL's fused head returns, for rows of one prompt token and a completion."""

    def __init__(self, logprobs: torch.Tensor):
        self.log_probs = logprobs
        self.entropy = self.mean_logits = torch.zeros_like(logprobs)
        self.is_top1 = torch.zeros_like(logprobs, dtype=torch.bool)


def preference_trainer(loss: str, rows: torch.Tensor, **options: Any) -> SimpleNamespace:
    return SimpleNamespace(
        model=SimpleNamespace(training=False),
        accelerator=ALONE,
        aux_loss_enabled=False,
        precompute_ref_logps=True,
        loss_types=[loss],
        loss_type=loss,
        loss_weights=[1.0],
        use_weighting=False,
        ld_alpha=None,
        f_divergence_type="reverse_kl",
        _metrics={"eval": defaultdict(list)},
        _total_train_tokens=0,
        **options,
    )


@pytest.mark.parametrize(
    ("objective", "name", "options"),
    [
        (DPO(beta=0.3), "sigmoid", {}),
        (IPO(beta=0.3), "ipo", {}),
    ],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_pairs(seed, objective, name, options):
    made = sample(seed, groups=4, size=2)
    made.batch.rewards = torch.tensor([1.0, 0.0] * 4, dtype=torch.float64)
    order = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])  # chosen, then rejected
    reference = torch.where(made.batch.mask, made.batch.signals["reference_logprobs"], 0).sum(-1)[order]
    prompt = torch.zeros(8, 1, dtype=torch.int64)
    inputs = {
        "input_ids": torch.cat([prompt, made.batch.tokens[order]], 1),
        "completion_mask": torch.cat([prompt, made.batch.mask[order].long()], 1),
        "ref_chosen_logps": reference[:4],
        "ref_rejected_logps": reference[4:],
    }

    def theirs(logprobs):
        answers = Answers(torch.where(made.batch.mask, logprobs, 0)[order])
        self = preference_trainer(name, order, beta=0.3, label_smoothing=0.0)
        return trl.DPOTrainer._compute_loss(self, lambda **_: answers, inputs, False)

    agree(our_loss(objective, made), theirs, made, 1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_kto_given_the_reference_point(seed):
    made = sample(seed)
    labels = torch.tensor([i % 3 == 0 for i in range(len(made.batch))])
    reference = torch.where(made.batch.mask, made.batch.signals["reference_logprobs"], 0).sum(-1)
    prompt = torch.zeros(len(made.batch), 1, dtype=torch.int64)
    inputs = {
        "input_ids": torch.cat([prompt, made.batch.tokens], 1),
        "completion_mask": torch.cat([prompt, made.batch.mask.long()], 1),
        "label": labels,
        "ref_logps": reference,
        "ref_KL_logps": torch.zeros(1),
    }

    def theirs(logprobs):
        answers = Answers(torch.where(made.batch.mask, logprobs, 0))
        self = preference_trainer(
            "kto", labels, beta=0.3, calculate_KL=True, desirable_weight=1.5, undesirable_weight=0.7
        )
        self._compute_kl_logps = lambda *_: torch.tensor([0.2])
        return trl.KTOTrainer._compute_loss(self, lambda **_: answers, inputs, False)

    def ours(logprobs):
        h = sequence_log_ratio(logprobs, made.batch.signals["reference_logprobs"], made.batch)
        return kto_loss(h, labels, torch.full_like(h, 0.2), 0.3, 1.5, 0.7).mean()

    agree(ours, theirs, made, 1e-6)
