"""Items are learned from where what is seen differs, or what is made of it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.registry import part
from assay.rollout.reread.perceived import told_of


@part("select", "either_branch")
@dataclass(frozen=True, slots=True)
class EitherBranch:
    """Weight 1 for the samples of both branches of an item of which one has a mean score strictly between 0 and 1.

    Reads rollout :class:`~assay.rollout.reread.perceived.PerceivedFirst`.

    Raises:
        UsageError: episodes of another rollout.

    Source: the soft filter of PEARL (arXiv 2511.18437).
    """

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        told = [told_of(episode, "select 'either_branch'") for episode in batch.episodes]
        scores: dict[tuple[str, bool], list[float]] = {}
        for one, verdict in zip(told, batch.verdicts, strict=True):
            if verdict.passed is not None:
                scores.setdefault((one.item, one.perception), []).append(verdict.score)
        kept = {item for (item, _), found in scores.items() if 0 < sum(found) / len(found) < 1}
        return torch.tensor([one.item in kept for one in told]).to(batch.rewards)
