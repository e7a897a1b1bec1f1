"""The select seam: which samples do we learn from?"""

from __future__ import annotations

from collections.abc import Sequence
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


class PromptFilter(Select, Protocol):
    """A selection that goes by one number of each prompt, on a step's prompts or on those of all the data.

    Curriculum ``sifted`` does the latter.
    """

    def of_prompts(self, batch: Batch) -> list[float]:
        """Return the number of each prompt of the batch, in the order of their groups; NaN where it is not known."""
        ...

    def kept(self, values: Sequence[float]) -> list[bool]:
        """Return which of prompts with these numbers are kept."""
        ...
