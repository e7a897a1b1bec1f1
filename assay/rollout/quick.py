"""Responses that begin after an empty thought."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.registry import part
from assay.rollout.single_turn import full_prompt
from assay.types import Ask, Group

SKIP = "<think>\nOkay, I have finished thinking.\n</think>\n"


@part("rollout", "quick")
@dataclass(frozen=True, slots=True)
class Quick:
    """Samples ``ask.n`` responses that go on from ``skip``, a thought that says nothing, which is not learned from.

    The quick mode of a model that thinks: ``skip`` stands behind the prompt, chat template included, as part of it.

    Source: FlexiVe, of Solve-Detect-Verify (arXiv 2505.11966), whose verifier is trained in this mode.

    Args:
        sampling: how tokens are drawn.
        skip: see above; the default is that of :class:`assay.inference.scoring.flex.Flex`.
    """

    sampling: Sampling
    skip: str = SKIP

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        seeds = rng.integers(2**63, size=len(asks))
        skip = tuple(int(t) for t in engine.encode_response(self.skip, False)) if self.skip else ()
        requests = [
            Request(full_prompt(a), a.n, self.sampling, int(seed), skip) for a, seed in zip(asks, seeds, strict=True)
        ]
        return [Group(a, tuple(e)) for a, e in zip(asks, engine.generate(requests), strict=True)]
