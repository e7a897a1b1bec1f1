"""Levels and noise that a step's demonstrations are looked at with, the same for policy and reference."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.registry import part
from assay.signals.base import Models


@part("signal", "noised")
class Noised:
    """Signal ``noised`` ``(N, 1 + D)``: a noise level, drawn for a group, and noise, drawn for each of its samples.

    A flow reads its demonstrations with these (:class:`assay.policies.flow.policy.FlowPolicy`). The errors that the
    reference policy makes with them stand in ``batch.signals["reference_logprobs"]``, less than zero.

    Raises:
        UsageError: the policy is no flow, or drew the samples itself: then they are no demonstrations.
    """

    name = "noised"
    models = ("reference",)
    whole = True

    def check(self, policy: object) -> None:
        """Raise UsageError for a policy that is no flow."""
        if getattr(policy, "engine", "") != "flow":
            raise UsageError("the method learns from errors of a flow; set model.source=flow")

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N W"]:
        if any(episode.drawing is not None for episode in batch.episodes):
            raise UsageError("the method learns from drawings on record, not from its own; set method.rollout=recorded")
        size: int = models.policy.size  # type: ignore[attr-defined]
        groups = int(batch.group.max()) + 1 if len(batch) else 0
        level = models.rng.random(groups, dtype=np.float32)[batch.group.numpy()]
        noise = models.rng.standard_normal((len(batch), size), dtype=np.float32)
        found = torch.cat([torch.from_numpy(level)[:, None], torch.from_numpy(noise)], 1).to(batch.logprobs.device)
        batch.signals["noised"] = found
        batch.signals["reference_logprobs"] = models.quantities(batch, {"logprobs"}, "reference")["logprobs"]
        return found
