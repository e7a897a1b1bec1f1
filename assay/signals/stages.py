"""Which stage of its work each token of a response belongs to, by the tags that open stages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.registry import part
from assay.signals.base import Models
from assay.signals.steps import Decode, decoder, token_ends
from assay.types import Episode

SCAFFOLD = (("structured_plan",), ("call_tool", "state_evaluation", "search", "tool_call"), ("review",), ("answer",))
"""Plan, research, review, answer: the tags that open each."""
REFLECTION = "reflection"
"""Kind of tasks that ask for a reflection, and role of the episodes that are one: a single stage, judged already."""


@part("signal", "stages")
@dataclass(frozen=True, slots=True)
class Stages:
    """Signal ``stages`` ``(N, T)`` int64: the stage a token is in, -1 for what is none of the policy's own.

    A stage goes on until the tag of another one opens, over turns too; what stands before the first tag is of the first
    stage. A token is of the stage whose tag it begins or is in. A reflection is of the first stage as a whole.

    Args:
        tags: of each stage those that open it.

    Raises:
        UsageError: no stages, one without tags, or a tag of two.
    """

    tags: Sequence[Sequence[str]] = SCAFFOLD

    name = "stages"

    def __post_init__(self) -> None:
        every = [tag for names in self.tags for tag in names]
        if not self.tags or not all(self.tags) or len(set(every)) < len(every):
            raise UsageError(f"signal 'stages': every stage needs tags of its own, not {self.tags}")
        object.__setattr__(self, "tags", tuple(map(tuple, self.tags)))

    def __call__(self, batch: Batch, models: Models) -> Int[Tensor, "N T"]:
        decode = decoder(models)
        out = torch.full(batch.mask.shape, -1, dtype=torch.int64)
        for i, episode in enumerate(batch.episodes):
            out[i, : len(episode.tokens)] = torch.from_numpy(self.of(episode, decode))
        return out

    def of(self, episode: Episode, decode: Decode) -> np.ndarray:
        """Return the stage of each token ``(T,)``."""
        number = {tag: k for k, names in enumerate(self.tags) for tag in names}
        opening = re.compile(rf"<({'|'.join(map(re.escape, number))})>")
        out, now = np.full(len(episode.tokens), -1, dtype=np.int64), 0
        if episode.meta.get("role") == REFLECTION:
            out[episode.mask] = 0
            return out
        for a, b in own_runs(episode.mask):
            tokens = episode.tokens[a:b].tolist()
            ends, at = token_ends(tokens, decode), 0
            for found in opening.finditer(decode(tokens)):
                while at < len(tokens) and ends(at) <= found.start():
                    out[a + at], at = now, at + 1
                now = number[found[1]]
            out[a + at : b] = now
        return out

    def texts(self, episode: Episode, decode: Decode) -> list[str]:
        """Return what was said in each stage, empty for one that there is none of."""
        stages = self.of(episode, decode)
        said = ["" for _ in self.tags]
        for a, b in own_runs(episode.mask):
            cuts = [a, *(a + 1 + np.flatnonzero(np.diff(stages[a:b]))).tolist(), b]
            for start, end in pairwise(cuts):
                said[stages[start]] += decode(episode.tokens[start:end].tolist())
        return said


def own_runs(mask: np.ndarray) -> list[tuple[int, int]]:
    """Return where the policy's own tokens stand, as ``[start, end)`` of each run."""
    borders = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]))).tolist()
    return list(zip(borders[::2], borders[1::2], strict=True))
