"""The objective seam: what do we minimise?"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Loss


@runtime_checkable
class Objective(Protocol):
    """The loss of a micro-batch, a function of the current policy's log-probabilities.

    Losses of the micro-batches of one mini-batch add up to the mini-batch's loss: reduce with
    :func:`assay.ops.aggregate`, which divides by ``batch.totals``. A part may set ``needs`` (detached signals, computed
    once per step) and ``live`` (quantities with a gradient, from the same pass as ``logprobs``, e.g. ``entropy``).
    """

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss: ...
