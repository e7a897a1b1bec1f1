"""How far an engine's log-probabilities are from the trainer's, and what is done about it.

An engine that is not the trainer's own module (vLLM: other kernels, another precision) samples from a policy mu that
differs a little from the pi whose gradient is taken. The difference is measured on what the engine sampled, and beyond
a threshold the objective weighs its tokens by pi / mu (:mod:`assay.objectives.correction`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch
from assay.engines.base import Engine, Request, Sampling
from assay.method import Method
from assay.objectives.correction import Correction
from assay.objectives.policy_loss import PolicyLoss
from assay.ops import kl_estimate
from assay.signals.base import Models
from assay.types import Ask, Group, Task

FAR = 0.1
"""Nats by which a token's log-probabilities differ that is counted in :attr:`Mismatch.far`."""

ROWS = 32
"""Samples of a step's batch that are compared."""

PROBED = 32
"""Longest response of the probe before training, in tokens."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """What was measured over ``tokens`` tokens; all zero where there were none.

    Attributes:
        kl: mean over tokens of exp(d) - d - 1 with d = log pi - log mu: the k3 estimate of KL(mu || pi) in nats per
            token, unbiased for tokens that mu drew.
        largest: the largest |d|, infinite where only one of the two holds a token for possible.
        far: share of tokens with |d| above :data:`FAR`.
        tokens: how many were compared.
    """

    kl: float
    largest: float
    far: float
    tokens: int

    @property
    def metrics(self) -> dict[str, float]:
        """For the log; empty where nothing was compared."""
        if not self.tokens:
            return {}
        return {"mismatch/kl": self.kl, "mismatch/max": self.largest, "mismatch/far": self.far}

    def __str__(self) -> str:
        return f"KL {self.kl:.2g} nats per token, at most {self.largest:.2g} apart, over {self.tokens} tokens"


def measure(
    engine: Float[Tensor, "N T"], trainer: Float[Tensor, "N T"], mask: Bool[Tensor, "N T"], far: float = FAR
) -> Mismatch:
    """Compare log-probabilities of the same tokens, both after temperature.

    Args:
        engine: log mu; NaN where the engine kept no record, which is left out.
        trainer: log pi under the weights that the engine was given.
        mask: tokens that the engine drew.
        far: see :attr:`Mismatch.far`.
    """
    known = mask & ~engine.isnan()
    mu, pi = engine[known].double(), trainer.detach()[known].double()
    if not len(mu):
        return Mismatch(0.0, 0.0, 0.0, 0)
    apart = torch.where(mu == pi, 0, (pi - mu).abs())  # a token impossible under both is no difference
    kl = torch.where(mu == pi, 0, kl_estimate(mu[None], pi[None], "k3")[0])
    # NaN is what a diverged model says: it must not pass for agreement.
    apart, kl = (torch.where(x.isnan(), torch.inf, x) for x in (apart, kl))
    return Mismatch(float(kl.mean()), float(apart.max()), float((apart > far).double().mean()), len(mu))


def drawn(batch: Batch) -> Bool[Tensor, "N T"]:
    """Return which tokens of a batch an engine drew from the very distribution that the trainer computes.

    Tokens of another author are not, nor are those sampled under another prompt than they are trained under.
    """
    same = torch.tensor([e.sampled_prompt is None for e in batch.episodes], dtype=torch.bool)
    return batch.mask & same[:, None] & ~batch.logprobs.isnan()


def correction_for(kl: float, threshold: float, correction: Correction = "token_truncate") -> Correction:
    """Return the correction that a measured divergence asks for: ``correction`` above the threshold, else ``none``.

    A divergence that is no number is above any threshold.
    """
    return "none" if kl <= threshold else correction


def corrected(method: Method, correction: Correction) -> Method | None:
    """Return the method with its objective correcting for the engine; the same one where it does so already.

    ``None`` if the objective knows no correction. One that confines another keeps its state and corrects within.
    """
    objective = _corrected(method.objective, correction)
    if objective is None:
        return None
    return method if objective is method.objective else replace(method, objective=objective)


def _corrected(objective: Any, correction: Correction) -> Any:
    if isinstance(objective, PolicyLoss):
        on = objective.correction not in ("none", "recompute")
        return objective if on or correction == "none" else replace(objective, correction=correction)
    inner = _corrected(objective.objective, correction) if hasattr(objective, "objective") else None
    if inner is not None:
        objective.objective = inner
    return inner and objective


def compare(batch: Batch, models: Models, rows: int = ROWS) -> Mismatch:
    """Compare what an engine said of a batch with the policy, which has the weights that the engine was given.

    Args:
        batch: sampled; if a signal ``policy_logprobs`` is there, it saves the pass.
        models: what runs the policy, at the temperature of sampling.
        rows: as many samples are compared at most.
    """
    mask = drawn(batch)
    some = batch.rows(mask.any(-1).nonzero()[:rows, 0])
    own = some.signals.get("policy_logprobs")
    if own is None:
        own = models.quantities(some, {"logprobs"})["logprobs"]
    return measure(some.logprobs, own, drawn(some))


def probe(engine: Engine, tasks: Sequence[Task], sampling: Sampling) -> Batch:
    """Return a small batch of an engine's responses to compare: two to each task, always with the same seeds."""
    short = replace(sampling, max_tokens=min(sampling.max_tokens, PROBED))
    answers = engine.generate([Request(task.prompt, 2, short, seed) for seed, task in enumerate(tasks)])
    return Batch.from_groups([Group(Ask(t, 2), tuple(a)) for t, a in zip(tasks, answers, strict=True)])
