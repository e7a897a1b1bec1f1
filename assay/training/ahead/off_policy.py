"""Learning from what older weights wrote: what cannot be had then, what makes up for it, and how far apart they are."""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass, replace
from dataclasses import fields as fields_of
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Loss
from assay.config import OverlapConfig
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.correction import Correction
from assay.objectives.policy_loss import PolicyLoss
from assay.ops import kl_estimate, masked_mean
from assay.rollout.derived import Derived
from assay.rollout.surgery.base import Surgeon

CORRECTION: Correction = "token_truncate"


def check_overlap(
    settings: OverlapConfig, method: Method, rollout: Any, trainers: int = 1, curriculum: Any = None
) -> None:
    """Raise UsageError for a method that cannot be asked ahead, or in parts, as the settings want it.

    Args:
        trainers: processes that train together.
        curriculum: of the run; one that looks at its data before a step does so by the weights of that step.
    """
    if settings.staleness:
        if hasattr(curriculum, "survey"):
            raise UsageError(
                f"overlap.staleness asks ahead, and curriculum {type(curriculum).__name__} looks at the data first, by "
                "the weights of the moment; use staleness 0"
            )
        if method.partner is not None:
            raise UsageError("overlap.staleness asks ahead, and whose turn a step is changes what it asks; use 0")
        where = f"overlap.staleness = {settings.staleness} asks for a batch before the verdicts on the last one are in"
        for inner in _members(rollout):
            name = type(inner).__name__
            if _asks_on(inner):
                raise UsageError(
                    f"{where}, but rollout {name} asks for other prompts by its verdicts; give it rounds = 1, or use "
                    "staleness 0"
                )
            if isinstance(inner, Derived | Surgeon):
                raise UsageError(f"{where}, but rollout {name} asks on by its verdicts; use staleness 0")
            if any(hasattr(getattr(inner, f.name, None), "learn") for f in _fields(inner)):
                raise UsageError(f"{where}, but rollout {name} goes by what the step learns; use staleness 0")
            if trainers > 1 and "judge" in {f.name for f in _fields(inner)}:
                # Processes that judge in two threads at once would not know whose turn it is.
                raise UsageError(f"{where}, but rollout {name} judges by itself; use staleness 0 or scale.trainers 1")
        if getattr(method.select, "rounds", 1) > 1:
            raise UsageError(
                f"{where}, but select {type(method.select).__name__} replaces prompts by their rewards; give it "
                "rounds = 1, or use staleness 0"
            )
        if getattr(method.select, "speaks", False):
            raise UsageError(
                f"{where}, but select {type(method.select).__name__} samples between updates, when the engine is at "
                "work on that batch; use staleness 0"
            )
    if settings.verify_chunks > 1 and (
        hasattr(rollout, "metrics") or any(f.name in ("judge", "more") for f in _fields(rollout))
    ):
        raise UsageError(
            f"overlap.verify_chunks = {settings.verify_chunks} asks in parts, but rollout {type(rollout).__name__} "
            "looks at a step's prompts together; use verify_chunks 1"
        )


def _members(rollout: Any) -> list[Any]:
    """A rollout, and those it has its asks answered by."""
    inner = [getattr(rollout, f.name, None) for f in _fields(rollout)]
    return [rollout, *(m for r in inner if hasattr(r, "collect") for m in _members(r))]


def _asks_on(rollout: Any) -> bool:
    """Whether a rollout itself, not only one inside it, asks for more prompts than it is given."""
    names = {f.name for f in _fields(rollout)}
    if "more" not in names:
        return False
    if "rounds" in names:
        return bool(rollout.rounds > 1)
    return len(_members(rollout)) == 1


def _fields(thing: Any) -> tuple[Any, ...]:
    return fields_of(thing) if is_dataclass(thing) else ()


def off_policy(method: Method, staleness: int) -> tuple[Method, str | None]:
    """Return a method that makes up for ``staleness`` as far as it can, and a line on what was done about it.

    An objective with a ratio to the policy that sampled makes up by itself, since the episodes carry the
    log-probabilities they were sampled with. One without, or whose ratio is to the trainer's own recomputed ones, gets
    the weights of :mod:`assay.objectives.correction`. Others stay as they are.
    """
    if not staleness:
        return method, None
    objective, name = method.objective, type(method.objective).__name__
    found = _corrected(objective)
    if found is objective:
        return method, None
    if found is None:
        return method, (
            f"objective {name} has no weights for what older weights wrote; it learns from it as it is, up to "
            f"{staleness} updates late"
        )
    line = f'objective {name} does not look at who sampled; with overlap.staleness it gets correction = "{CORRECTION}"'
    return replace(method, objective=found), line


def _corrected(objective: Any) -> Any:
    """The objective itself if it is right off policy, one that is, or ``None`` if there is none.

    One that is no :class:`PolicyLoss` says by ``weighs_older`` that it has weights of its own.
    """
    if isinstance(objective, PolicyLoss):
        if objective.correction not in ("none", "recompute"):
            return objective
        ratio = objective.words()[0] != "none"
        return objective if ratio and objective.correction == "none" else replace(objective, correction=CORRECTION)
    if hasattr(objective, "objective"):  # confines another one
        inner = _corrected(objective.objective)
        if inner is None or inner is objective.objective:
            return inner and objective
        return replace(objective, objective=inner)
    return objective if getattr(objective, "weighs_older", False) else None


@dataclass(frozen=True, slots=True)
class Observed:
    """An objective that also reports ``behaviour/kl``, see :func:`behaviour_kl`, from the pass that is made anyway."""

    inner: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        loss: Loss = self.inner(logprobs, batch)
        found = behaviour_kl(logprobs, batch)
        return loss if found is None else Loss(loss.value, {**loss.metrics, "behaviour/kl": found})


@torch.no_grad()
def behaviour_kl(logprobs: Float[Tensor, "N T"], batch: Batch) -> float | None:
    """Mean over sampled tokens of exp(d) - d - 1, d = log pi - log mu: estimates KL(mu || pi), in nats per token.

    mu is the policy that sampled. Tokens of active samples count whose mu is known; ``None`` where there are none.
    """
    known = batch.mask & batch.active[:, None] & ~batch.logprobs.isnan()
    if not bool(known.any()):
        return None
    mu, pi = torch.where(known, batch.logprobs, 0), torch.where(known, logprobs, 0).to(batch.logprobs.dtype)
    return float(masked_mean(kl_estimate(mu, pi, "k3"), known))
