"""What all policy-gradient losses share: ratio, aggregation, divergence from a reference, entropy, engine mismatch."""

# Annotations are evaluated here, not kept as strings: a subclass in another module inherits these fields, and its
# options are checked against types that its own module need not import.

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch, Loss
from assay.errors import UsageError
from assay.objectives.correction import Correction, mismatch_weights
from assay.ops import IMPOSSIBLE, Aggregation, Estimator, aggregate, kl_estimate, log_ratio, masked_mean


@dataclass(slots=True)
class Ratios:
    """What a surrogate is a function of. Everything is zero outside ``mask``, but for ``ratio``, which is one.

    Attributes:
        logprobs: ``(N, T)`` log pi, with a gradient.
        log_ratio: ``(N, T)`` log pi - log pi_old in [-20, 20], with a gradient.
        ratio: ``(N, T)`` its exponential.
        advantages: ``(N, T)`` constants.
        mask: ``(N, T)`` learnable tokens of active samples.
        batch: everything else.
    """

    logprobs: Float[Tensor, "N T"]
    log_ratio: Float[Tensor, "N T"]
    ratio: Float[Tensor, "N T"]
    advantages: Float[Tensor, "N T"]
    mask: Bool[Tensor, "N T"]
    batch: Batch


@dataclass(frozen=True, slots=True)
class PolicyLoss(ABC):
    """L = Agg(w_it l_it + kl_weight KL_it - entropy_weight H_it), where a subclass says what l_it is.

    pi_old are the log-probabilities recorded while sampling (``batch.logprobs``) with ``correction="none"``; else the
    trainer's own before the step's first update (signal ``policy_logprobs``), and w_it corrects for the difference
    between the two, see :func:`assay.objectives.correction.mismatch_weights`. Where pi_old is not known (NaN), the
    ratio is 1 with the gradient of log pi. Advantages, pi_old and w are constants.

    Args:
        aggregation: how token losses become one number, see :func:`assay.ops.aggregate`.
        max_length: denominator of the ``constant`` aggregation.
        kl_weight: weight of the divergence from the reference policy; 0 computes no reference pass.
        kl_estimator: ``k1``, ``k2``, ``k3`` or ``k3+``, see :func:`assay.objectives.kl.kl_estimate`.
        kl_off_policy: multiply the divergence by the ratio, which makes up for tokens sampled by pi_old.
        entropy_weight: weight of the entropy bonus, nats per token.
        correction: for the mismatch of engine and trainer.
        correction_floor, correction_cap: bounds of its weights.

    Raises:
        UsageError: ``constant`` without ``max_length``, or bounds that exclude 1.
    """

    aggregation: Aggregation = "token_mean"
    max_length: int | None = None
    kl_weight: float = 0.0
    kl_estimator: Estimator = "k3"
    kl_off_policy: bool = False
    entropy_weight: float = 0.0
    correction: Correction = "none"
    correction_floor: float = 0.0
    correction_cap: float = 2.0

    def __post_init__(self) -> None:
        if self.aggregation == "constant" and (self.max_length is None or self.max_length < 1):
            raise UsageError('objective: aggregation = "constant" needs max_length, the longest response in tokens')
        if not 0 <= self.correction_floor <= 1 <= self.correction_cap:
            raise UsageError(
                f"objective: correction_floor {self.correction_floor:g} and correction_cap {self.correction_cap:g} "
                "must satisfy 0 <= floor <= 1 <= cap"
            )

    @abstractmethod
    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        """Return l_it, whose values outside the mask do not matter, and detached metrics (numbers or 0-d tensors)."""

    def _surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        """Return what :meth:`surrogate` gave.

        Raises:
            UsageError: it is not of that form: a loss of another shape would be spread over all tokens.
        """
        found, wanted = self.surrogate(r), f"(losses {tuple(r.ratio.shape)}, metrics)"
        if not isinstance(found, tuple) or len(found) != 2 or not isinstance(found[1], dict):
            raise UsageError(f"{type(self).__name__}.surrogate returned a {type(found).__name__}; return {wanted}")
        if not isinstance(found[0], Tensor) or found[0].shape != r.ratio.shape:
            what = tuple(found[0].shape) if isinstance(found[0], Tensor) else type(found[0]).__name__
            raise UsageError(f"{type(self).__name__}.surrogate returned losses {what}; return {wanted}")
        return found

    def __init_subclass__(cls, **more: Any) -> None:
        """Signals that a subclass lists in ``needs`` come beside those that the options here want."""
        # Not super(): with slots the class is made twice, and the one that this function knows is the first.
        if isinstance(own := cls.__dict__.get("needs"), frozenset | set):
            inherited = next(base.__dict__["needs"] for base in cls.__mro__[1:] if "needs" in base.__dict__)
            cls.needs = property(lambda self: frozenset(own) | inherited.fget(self))  # type: ignore[assignment]

    @property
    def needs(self) -> frozenset[str]:
        own = {"policy_logprobs"} if self.correction != "none" else set()
        return frozenset(own | ({"reference_logprobs"} if self.kl_weight else set()))

    @property
    def live(self) -> frozenset[str]:
        return frozenset({"entropy"} if self.entropy_weight else ())

    @property
    def zero_advantage_is_idle(self) -> bool:
        """Whether a sample with advantages all zero adds nothing to value and gradient: its pass can be skipped."""
        return not self.kl_weight and not self.entropy_weight

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        mask = batch.mask & batch.active[:, None]
        # What is not learned from is replaced before, not after: the gradient of exp at a NaN would survive a mask.
        here = torch.where(mask, logprobs, 0).clamp(min=IMPOSSIBLE)
        old = batch.logprobs if self.correction == "none" else batch.signals["policy_logprobs"]
        gap = log_ratio(here, old, mask)
        ratio = gap.exp()
        advantages = torch.where(mask, batch.advantages, 0).to(here.dtype)
        loss, metrics = self._surrogate(Ratios(here, gap, ratio, advantages, mask, batch))
        with torch.no_grad():
            name = "kl/behaviour" if self.correction == "none" else "kl/old"
            metrics[name] = masked_mean(ratio - gap - 1, mask)
            if self.correction not in ("none", "recompute"):
                weights = mismatch_weights(
                    old, batch.logprobs, mask, self.correction, self.correction_floor, self.correction_cap
                ).to(here.dtype)
                metrics["mismatch/weight"] = masked_mean(weights, mask)
                known = mask & ~batch.logprobs.isnan()
                engine, own = (torch.where(known, x, 0).clamp(min=IMPOSSIBLE) for x in (batch.logprobs, old))
                metrics["mismatch/kl"] = masked_mean(kl_estimate(engine, own, "k3"), mask)
        if self.correction not in ("none", "recompute"):
            loss = weights * loss
        if self.kl_weight:
            reference = torch.where(mask, batch.signals["reference_logprobs"], 0).clamp(min=IMPOSSIBLE)
            divergence = kl_estimate(here, reference, self.kl_estimator)
            metrics["kl/reference"] = masked_mean(divergence.detach(), mask)
            loss = loss + self.kl_weight * (ratio * divergence if self.kl_off_policy else divergence)
        if self.entropy_weight:
            loss = loss - self.entropy_weight * batch.live["entropy"]
        value = aggregate(loss, batch, self.aggregation, self.max_length)
        return Loss(value, {k: float(v) for k, v in metrics.items()})

    def words(self) -> tuple[str, str]:
        """The ratio and how it is bounded, in words, for the table of methods."""
        return "token", "none"

    @property
    def summary(self) -> dict[str, str]:
        """What the table of methods says of it."""
        ratio, clip = self.words()
        words = {"token_mean": "token mean", "sequence_mean": "sequence mean", "sequence_sum": "sequence sum"}
        kl = f"{self.kl_weight:g} {self.kl_estimator}" if self.kl_weight else "none"
        aggregation = words.get(self.aggregation, "constant length")
        return {"ratio": ratio, "clip": clip, "aggregation": aggregation, "KL": kl}
