"""Beside the sampled responses a greedy one, which is judged but not learned from: ReMax's baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.engines.base import Engine, Request, Sampling
from assay.registry import part
from assay.rollout.single_turn import SingleTurn, full_prompt
from assay.types import Ask, Group


@part("rollout", "greedy_baseline")
@dataclass(frozen=True, slots=True)
class GreedyBaseline:
    """``ask.n`` sampled responses, and one greedy response whose mask is false and whose ``meta["role"]`` is baseline.

    Source: ReMax (arXiv 2310.10505), algorithm 2: the baseline costs one more response per prompt.

    Args:
        sampling: how tokens of the sampled responses are drawn.
    """

    sampling: Sampling

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        groups = SingleTurn(self.sampling).collect(asks, engine, rng)
        greedy = replace(self.sampling, temperature=0.0, top_k=0, top_p=1.0)
        found = engine.generate([Request(full_prompt(a), 1, greedy, 0) for a in asks])
        out = []
        for group, (episode,) in zip(groups, found, strict=True):
            meta = {**episode.meta, "role": "baseline"}
            baseline = replace(episode, mask=np.zeros_like(episode.mask), meta=meta)
            out.append(replace(group, episodes=(*group.episodes, baseline)))
        return out
