"""Which tokens of a batch somebody else than the policy wrote."""

from __future__ import annotations

import torch
from jaxtyping import Bool
from torch import Tensor

from assay.batch import Batch
from assay.types import Origin


def written_by(batch: Batch, origin: Origin) -> Bool[Tensor, "N T"]:
    """Tokens whose author is ``origin``, as the episodes say; an episode that says nothing is the policy's own."""
    mine = origin == Origin.OWN
    out = torch.zeros(batch.mask.shape, dtype=torch.bool)
    for row, episode in zip(out, batch.episodes, strict=True):
        if episode.origins is None:
            row[: len(episode.tokens)] = mine
        else:
            row[: len(episode.origins)] = torch.from_numpy(episode.origins == origin)
    return out.to(batch.mask.device)
