"""Learn from responses of which a teacher was shown more than the student."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import RunError
from assay.signals.base import Signal


class Shown:
    """Weight 0 for responses of which a second view had nothing to show, else 1.

    Args:
        view: a signal that leaves ``signals["shown"]``, see :class:`assay.signals.reread.second_view.SecondView`.
    """

    def __init__(self, view: Signal):
        self.needs = frozenset({view})
        self._share = 0.0

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        if "shown" not in batch.signals:
            raise RunError("no second view was taken of this batch")
        shown = torch.where(batch.signals["shown"] > 0, 1.0, 0.0).to(batch.rewards)
        self._share = float(shown.mean()) if len(shown) else 0.0
        return shown

    def metrics(self) -> dict[str, float]:
        """``reread/shown``: of the last step's responses, the share of which there was something to show."""
        return {"reread/shown": self._share}
