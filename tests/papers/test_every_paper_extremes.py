"""Every paper's method where all its ratios are clipped, and where tokens are impossible: all numbers are finite."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from anything import FIRST, METHODS, batch_of, gradient, method_of, policy, signalled, valued

from assay.objectives.clip import ClippedSurrogate
from assay.policies.causal_lm import CausalLM

__all__ = ["policy"]  # a fixture

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("key", [pytest.param(k, marks=() if k in FIRST else pytest.mark.slow) for k in METHODS])
def test_where_everything_is_clipped_nothing_breaks(key: str, policy: CausalLM) -> None:
    """Every ratio far beyond a clip range on the side its advantage pushes to; the plain surrogate has no gradient."""
    method = method_of(key)
    batch = valued(method, policy, batch_of(policy, "mixed"))
    with torch.no_grad():
        now = policy.forward(batch).logprobs.to(batch.logprobs)
    batch.logprobs = torch.where(batch.mask, now - 5 * batch.advantages.sign(), 0)
    loss, gradients = gradient(policy, method, batch)
    assert math.isfinite(loss) and all(bool(g.isfinite().all()) for g in gradients)
    objective: Any = method.objective
    if type(objective) is ClippedSurrogate and objective.correction == "none" and objective.zero_advantage_is_idle:
        assert not any(bool(g.any()) for g in gradients)


@pytest.mark.parametrize(
    ("key", "whose"),
    [
        pytest.param(key, whose, marks=() if key in FIRST else pytest.mark.slow)
        for key in METHODS
        for whose in ("now", "then", "reference", "all")
    ],
)
def test_impossible_tokens_leave_everything_finite(key: str, whose: str, policy: CausalLM) -> None:
    """Log-probabilities of -inf: of the policy, of the one that sampled, of the reference, in float64 and float32."""
    method = method_of(key)
    batch = signalled(method, policy, batch_of(policy, "mixed"))
    cells = torch.zeros_like(batch.mask)
    cells[0, 1] = cells[3, 0] = cells[4] = True
    cells &= batch.mask
    with torch.no_grad():
        out = policy.forward(batch, method.live)
    now, was = out.logprobs.clone(), batch.signals
    if whose in ("now", "all"):
        now[cells] = -math.inf
    for name, logprobs in {"then": batch.logprobs, **{k: v for k, v in was.items() if k.endswith("_logprobs")}}.items():
        if logprobs.shape == cells.shape and (whose == "all" or name.startswith(whose)):
            logprobs[cells] = -math.inf
    method.value(batch)
    assert bool(batch.advantages.isfinite().all()) and bool(batch.rewards.isfinite().all())
    for dtype in (torch.float64, torch.float32):
        batch.live = {k: v.clone().to(dtype).requires_grad_(True) for k, v in out.live.items()}
        getattr(method.objective, "prepare", lambda _: None)(batch)
        logprobs = now.clone().to(dtype).requires_grad_(True)
        loss = method.objective(logprobs, batch)
        loss.value.backward()
        assert math.isfinite(loss.value.item()) and all(map(math.isfinite, loss.metrics.values()))
        assert logprobs.grad is None or bool(logprobs.grad.isfinite().all())
