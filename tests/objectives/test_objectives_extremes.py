"""Every registered objective where all ratios are clipped, and where tokens are impossible: all numbers are finite."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from assay.batch import Batch, Loss
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.policy_loss import PolicyLoss
from assay.registry import build, find, names

NAMES = [name for name in names("objective") if name not in ("soft_bins", "group_ranking", "newton")]
"""All but those of values of bins and of drawings, which their own tests have."""
SHARED = {"kl_weight": 0.1, "kl_off_policy": True, "entropy_weight": 0.1, "correction": "token_truncate"}


def objective_of(name: str, **options: Any) -> Any:
    # The second term of ``reference`` is one of other texts; those of the papers that take it are tested with it.
    given = {"weight": 0.0} if name == "reference" else {}
    return build("objective", {"name": name, **given, **options})


def shares(name: str) -> bool:
    """Whether an objective has the options that all policy-gradient losses share."""
    return isinstance(find("objective", name), type) and isinstance(objective_of(name), PolicyLoss)


def batch_like(make_batch: Callable[..., Batch], dtype: torch.dtype = torch.float64) -> Batch:
    generator = torch.Generator().manual_seed(0)
    right = [True, False, True, False, False]
    batch = make_batch([3, 1, 4, 2, 1], [float(r) for r in right], [0, 0, 1, 1, 1], right)

    def noise() -> torch.Tensor:
        return torch.where(batch.mask, torch.randn(batch.mask.shape, generator=generator, dtype=torch.float64), 0)

    batch.logprobs = torch.where(batch.mask, -1 + 0.1 * noise(), 0)
    batch.advantages = noise()
    batch.signals = {k: batch.logprobs + 0.1 * noise() for k in ("reference_logprobs", "policy_logprobs")}
    batch.live = {"entropy": noise().abs(), "logit": noise()}
    for name in ("logprobs", "advantages", "rewards", "weights"):
        setattr(batch, name, getattr(batch, name).to(dtype))
    batch.signals, batch.live = ({k: v.to(dtype) for k, v in x.items()} for x in (batch.signals, batch.live))
    batch.totals = batch.count()
    return batch


def gradient_of(objective: Any, logprobs: torch.Tensor, batch: Batch) -> tuple[Loss, torch.Tensor]:
    logprobs = logprobs.clone().requires_grad_(True)
    batch.live = {k: v.clone().requires_grad_(True) for k, v in batch.live.items()}
    getattr(objective, "prepare", lambda _: None)(batch)
    loss = objective(logprobs, batch)
    loss.value.backward()
    gradient = torch.zeros_like(logprobs) if logprobs.grad is None else logprobs.grad
    assert math.isfinite(loss.value.item()) and all(map(math.isfinite, loss.metrics.values()))
    assert bool(gradient.isfinite().all())
    assert all(v.grad is None or bool(v.grad.isfinite().all()) for v in batch.live.values())
    return loss, gradient


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("gap", [1.0, 5.0, 500.0])
@pytest.mark.parametrize("name", NAMES)
def test_everything_is_clipped(make_batch: Callable[..., Batch], name: str, gap: float, dtype: torch.dtype) -> None:
    """Ratios of exp(gap) where A > 0 and exp(-gap) where A < 0; a surrogate that clips by token has no gradient."""
    batch, objective = batch_like(make_batch, dtype), objective_of(name)
    now = batch.logprobs + gap * batch.advantages.sign()
    _, gradient = gradient_of(objective, now, batch)
    if type(objective) is ClippedSurrogate:
        assert not bool(gradient.any())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("whose", ["now", "then", "reference", "start", "all"])
@pytest.mark.parametrize("name", NAMES)
def test_impossible_tokens(make_batch: Callable[..., Batch], name: str, whose: str, dtype: torch.dtype) -> None:
    """Some log-probabilities are -inf: one of a response's, all of it; with divergence, entropy and correction too."""
    for options in [{}, *([SHARED] if shares(name) else [])]:
        batch, objective = batch_like(make_batch, dtype), objective_of(name, **options)
        cells = torch.zeros_like(batch.mask)
        cells[0, 1] = cells[2, 0] = cells[3] = cells[4] = True
        now = batch.logprobs + 0.05
        places = {
            "now": now,
            "then": batch.logprobs,
            "reference": batch.signals["reference_logprobs"],
            "start": batch.signals["policy_logprobs"],
        }
        for who, logprobs in places.items():
            if whose in (who, "all"):
                logprobs[cells & batch.mask] = -math.inf
        if whose in ("now", "all"):
            batch.live["logit"][cells & batch.mask] = -math.inf
        gradient_of(objective, now, batch)
