"""How like a picture is to the one that is wanted, pixel by pixel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.errors import UsageError
from assay.policies.flow.samples import frames
from assay.registry import part
from assay.types import Task, Verdict


@part("verify", "likeness")
@dataclass(frozen=True, slots=True)
class Likeness:
    """Scores intersection over union of what stands before the background, a pixel counting if its colour is right.

        |{pixels where both pictures have something, of one colour}| / |{pixels where one of them has something}|

    The background is the reference's first pixel. Colours are one, and something is none, within ``tolerance`` in each
    channel. A text that is no picture, or one of another size, is wrong; of a video every frame counts.

    Args:
        tolerance: of 255.
        within: the picture passes from this score on.

    Raises:
        UsageError: an option out of range; a task's reference is no picture.
    """

    tolerance: int = 80
    within: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance < 255 or not 0 < self.within <= 1:
            raise UsageError("verifier 'likeness': tolerance must be 0 to 254, and within above 0 and at most 1")

    def __call__(self, task: Task, response: str) -> Verdict:
        wanted = frames(str(task.reference))
        if wanted is None:
            raise UsageError(f"task {task.id}: verifier 'likeness' wants a picture as reference, by data: URL")
        found = frames(response)
        if found is None:
            return Verdict.wrong("no picture")
        if found.shape != wanted.shape:
            return Verdict.wrong(f"{list(found.shape)} pixels, not {list(wanted.shape)}")
        there = self.apart(wanted, wanted[0, 0, 0])
        drawn = self.apart(found, wanted[0, 0, 0])
        right = there & drawn & ~self.apart(found, wanted)
        either = int((there | drawn).sum())
        score = float(right.sum()) / either if either else 1.0
        return Verdict(score, score >= self.within, {}, f"{score:.0%} of what is there or should be")

    def apart(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return where two pictures' colours are apart."""
        apart = np.abs(one.astype(np.int16) - other.astype(np.int16)) > self.tolerance
        return np.asarray(apart.any(-1))
