"""Tasks that are neither out of reach nor easy, and of their right trajectories the steps that were sound."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.registry import part
from assay.select.dynamic import accuracy
from assay.types import Episode

NEAR = 1e-6


@part("select", "difficulty")
@dataclass(frozen=True, slots=True)
class Difficulty:
    """Weight 1 for the right trajectories of tasks that a share of ``least`` to ``most`` of them solves; else 0.

    With four trajectories of a task, kept are those solved once or twice: at that share p the variance of rewards
    p (1 - p) is at least 3/16. A trajectory that says one of ``hacks`` in a call, or in a turn, is left out.

    Turns whose action was malformed, or led to an error, are masked where ``mask`` says so: they leave ``batch.mask``,
    are in no loss and no count of tokens, and later turns see them all the same.

    Args:
        least, most: of the share, 0 < least <= most <= 1.
        hacks: words, whatever their case and the blanks between them.
        mask: see above.

    Raises:
        UsageError: shares out of range.

    Source: daVinci-Env (arXiv 2603.13023).
    """

    least: float = 0.25
    most: float = 0.5
    hacks: Sequence[str] = ("git pull",)
    mask: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.least <= self.most <= 1:
            raise UsageError(f"select 'difficulty': needs 0 < least <= most <= 1, not {self.least:g} and {self.most:g}")

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        share, _ = accuracy(batch)
        right = torch.tensor([v.passed is True for v in batch.verdicts], dtype=torch.bool)
        fair = torch.tensor([not self.hacked(e) for e in batch.episodes], dtype=torch.bool)
        kept = (share >= self.least - NEAR) & (share <= self.most + NEAR) & right & fair
        if self.mask:
            for i in kept.nonzero()[:, 0].tolist():
                for turn in batch.episodes[i].turns:
                    if not turn.valid:
                        batch.mask[i, turn.start : turn.end] = False
        return kept.to(batch.rewards.dtype)

    def hacked(self, episode: Episode) -> bool:
        """Whether a call of the policy's says what a cheat says."""
        said = [json.dumps(call.arguments, ensure_ascii=False) for turn in episode.turns for call in turn.calls]
        wanted = [r"\s+".join(map(re.escape, one.split())) for one in self.hacks]
        return any(re.search(rf"(?<!\w){one}(?!\w)", "\n".join(said), re.IGNORECASE) for one in wanted)
