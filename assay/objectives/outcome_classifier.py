"""The policy as a classifier of responses, by its log-ratio to the reference: an outcome reward model."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from assay.batch import Batch, Loss
from assay.errors import UsageError
from assay.objectives.labels import counted, labels
from assay.objectives.preference import By, sequence_log_ratio
from assay.ops.outcome_losses import class_weights
from assay.registry import part

BALANCE = "outcome_classifier_balance"


@part("objective", "outcome_classifier")
@dataclass(frozen=True, slots=True)
class OutcomeClassifier:
    """Mean over samples of -log sigmoid(beta h_i) of a right response, -log sigmoid(-beta h_i) of a wrong one.

    h_i = sum over learnable tokens of log pi - log pi_ref. No pairs are needed, and advantages are not used.

    Args:
        beta: above 0.
        by: what is right: a ``reward`` above ``threshold``, or a ``verdict`` of right.
        threshold: see above.
        balanced: right and wrong responses of a mini-batch weigh the same in all.

    Source: "Free process rewards without process labels" (arXiv 2412.01981), equation 5.

    Raises:
        UsageError: ``beta`` not above 0.
    """

    beta: float = 0.05
    by: By = "verdict"
    threshold: float = 0.5
    balanced: bool = False

    needs = frozenset({"reference_logprobs"})
    reads = "nothing"

    def __post_init__(self) -> None:
        if self.beta <= 0:
            raise UsageError(f"objective 'outcome_classifier': beta {self.beta:g} must be above 0")

    def prepare(self, batch: Batch) -> None:
        """Weigh the labels of a mini-batch before it is split, into ``batch.signals`` ``(N,)``."""
        use = counted(batch)
        weights = torch.ones_like(batch.rewards)
        if self.balanced:
            weights[use] = class_weights(labels(batch, self.by, self.threshold)[use]).to(weights)
        batch.signals[BALANCE] = weights

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        if BALANCE not in batch.signals:
            self.prepare(batch)
        h = sequence_log_ratio(logprobs, batch.signals["reference_logprobs"], batch)
        right = labels(batch, self.by, self.threshold)
        each = binary_cross_entropy_with_logits(self.beta * h, right.to(h.dtype), reduction="none")
        use = counted(batch)
        weights = batch.weights * batch.signals[BALANCE]
        total = torch.where(use, weights.to(h.dtype) * each, 0).sum()
        found = ((h > 0) == right)[use].to(h.dtype)
        metrics = {"outcome/accuracy": found.mean().item()} if len(found) else {}
        return Loss(total / max((batch.totals or batch.count()).sequences, 1.0), metrics)
