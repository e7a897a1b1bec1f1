"""The select seam: which samples do we learn from?"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch


@runtime_checkable
class Select(Protocol):
    """Gives each sample a weight ``(N,)``; 0 leaves it out of statistics and update.

    Runs after the reward and before the credit, so that advantages are computed over what was kept.
    """

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]: ...
