"""What a response says of itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assay.engines.base import Engine
from assay.inference.scoring.base import Score
from assay.registry import part
from assay.types import Episode, Task
from assay.verify.proofs.analysis import divided, score_of


@part("scorer", "self_score")
class SelfScore:
    """The score that a solution's own self-evaluation ends with, with that evaluation as feedback; 0 without one.

    With strategy ``refine`` a solution is written anew until it finds nothing to object to in itself: sequential
    refinement. It costs no tokens.

    Source: DeepSeekMath-V2.
    """

    def score(self, pairs: Sequence[tuple[Task, Episode]], engine: Engine, rng: np.random.Generator) -> list[Score]:
        out = []
        for _, episode in pairs:
            parts = divided(episode.text)
            analysis = "" if parts is None else parts[1]
            out.append(Score(score_of(analysis) or 0.0, 0, analysis))
        return out

    def most(self, task: Task, response: Episode | int, engine: Engine) -> int:
        return 0
