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

    A part whose loss looks at a mini-batch as a whole says so: ``prepare(batch)`` is called on the mini-batch before it
    is split and may put what it finds there into ``batch.signals`` (first dimension N); ``whole_groups = True`` asks
    that no advantage group be split over micro-batches. ``zero_advantage_is_idle`` says that samples with advantages
    all zero add nothing. ``reads`` says what of the advantages matters: ``tokens`` (assumed), ``response`` (one for
    all tokens of a response) or ``nothing``; a credit that would be ignored is refused. Most surrogates need none of
    this: derive from :class:`assay.objectives.policy_loss.PolicyLoss`.
    """

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss: ...
