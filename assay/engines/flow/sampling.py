"""Which steps of a drawing are noisy."""

from __future__ import annotations

from dataclasses import dataclass

from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.types import Sampler


@dataclass(frozen=True, slots=True)
class FlowSampling(Sampling):
    """How a flow draws: ``max_tokens`` steps, of which those in a window are noisy, and decisions; the others are not.

    Attributes:
        begin, end: the window ``[begin, end)`` of steps; ``None`` is the last.
        trained: so many noisy steps in a row, from a place in the window that is drawn; ``None`` takes all of it.
        branch: so many of a request's responses share noise and place, and part ways at their first noisy step.
        noise, sampler: in place of the model's own.
        draft: a sample, as text, that is drawn over: the drawing begins with it, noised up to ``strength``, and a flow
            that edits sees it.
        strength: noise level that a draft is brought to, in (0, 1].
    """

    begin: int = 0
    end: int | None = None
    trained: int | None = None
    branch: int = 1
    noise: float | None = None
    sampler: Sampler | None = None
    draft: str = ""
    strength: float = 1.0

    def window(self) -> tuple[int, int]:
        """Return the window within the steps.

        Raises:
            UsageError: it is empty, or has no room for the noisy steps; ``strength`` is out of range.
        """
        if not 0 < self.strength <= 1:
            raise UsageError(f"strength {self.strength:g} of a draft's noise is above 0 and at most 1")
        begin, end = self.begin, self.max_tokens if self.end is None else min(self.end, self.max_tokens)
        if not 0 <= begin < end or not 1 <= (self.trained or 1) <= end - begin or self.branch < 1:
            raise UsageError(
                f"steps {begin} to {end} of {self.max_tokens} have no room for {self.trained or 1} noisy ones in a row"
                if self.branch >= 1
                else f"branch = {self.branch} responses cannot share their noise; it is at least 1"
            )
        return begin, end
