"""Learn nothing from prompts that were asked only to see how hard they are."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.registry import part


@part("select", "unprobed")
class Unprobed:
    """Weight 0 for the samples of tasks with ``meta["probe"]``, which curriculum ``paired`` sets, else 1."""

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        return torch.tensor([float(not task.meta.get("probe")) for task in batch.tasks]).to(batch.rewards)
