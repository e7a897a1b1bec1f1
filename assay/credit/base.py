"""The credit seam: which tokens earned the reward?"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch


@runtime_checkable
class Credit(Protocol):
    """Maps rewards to advantages ``(N, T)``, detached, zero outside ``batch.mask`` and for samples that are not active.

    A credit of whole responses takes :func:`assay.ops.outcome`, one of tokens :mod:`assay.returns`, so that
    rewards placed on tokens count in either.

    A part may set ``needs`` (signals), ``group_relative = True`` (refused with a group size of 1), ``level = "token"``
    (advantages differ within a response; refused with an objective that reads one per response) and ``rollout`` (the
    name of the rollout it wants where none is named).
    """

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]: ...
