"""Rewards for length that several methods share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.length.overlong import response_lengths


def _passed(batch: Batch) -> tuple[Bool[Tensor, "N"], Bool[Tensor, "N"]]:
    """Who was judged right, and who was judged at all."""
    right = torch.tensor([bool(v.passed) for v in batch.verdicts], dtype=torch.bool)
    return right, torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)


@part("reward", "group_length")
@dataclass(frozen=True, slots=True)
class GroupLength:
    """R_i = 0.5 - (T_i - min T) / (max T - min T) for a right response, min(0, that) for a wrong one.

    min and max go over the judged samples of the prompt. The shortest right response gains 0.5, the longest of either
    kind loses 0.5, and no wrong response gains; all are 0 where all lengths are equal. A term to be added to another.

    Source: Kimi k1.5 (arXiv 2501.12599), section 2.3.3.
    """

    def __call__(self, batch: Batch) -> Reward:
        lengths = response_lengths(batch)
        right, judged = _passed(batch)
        size = int(batch.prompt_group.max()) + 1 if len(batch) else 0

        def extreme(fill: float, reduce: str) -> Float[Tensor, "N"]:
            start = torch.full((size,), fill, dtype=lengths.dtype)
            return start.scatter_reduce(0, batch.prompt_group, torch.where(judged, lengths, fill), reduce)[
                batch.prompt_group
            ]

        least, most = extreme(math.inf, "amin"), extreme(-math.inf, "amax")
        spread = torch.where(judged, most - least, 0)
        values = torch.where(spread > 0, 0.5 - (lengths - least) / torch.where(spread > 0, spread, 1), 0)
        values = torch.where(right, values, values.clamp(max=0))
        return Reward(values, valid=judged, terms={"length": values})


@part("reward", "cosine_length")
@dataclass(frozen=True, slots=True)
class CosineLength:
    """R_i falls or rises on half a cosine of the length: from ``right[0]`` (no tokens) to ``right[1]`` (max_length).

    For a wrong response likewise. R = end + (start - end) (1 + cos(pi T / max_length)) / 2; a response longer than
    max_length gets ``exceeded``. The defaults reward short right answers and long wrong ones. It takes the place of the
    verdict's score.

    Source: "Demystifying Long Chain-of-Thought Reasoning in LLMs" (arXiv 2502.03373), section 4.2.

    Args:
        max_length: tokens.
        right, wrong: rewards at length 0 and at max_length.
        exceeded: reward beyond max_length, and at it if truncated there.
    """

    max_length: int
    right: tuple[float, float] = (2.0, 1.0)
    wrong: tuple[float, float] = (-10.0, 0.0)
    exceeded: float = -10.0

    def __post_init__(self) -> None:
        if self.max_length < 1:
            raise UsageError(f"reward 'cosine_length': max_length {self.max_length} must be at least 1")

    def __call__(self, batch: Batch) -> Reward:
        lengths = response_lengths(batch)
        passed, judged = _passed(batch)
        start, end = (torch.where(passed, r, w).to(lengths.dtype) for r, w in zip(self.right, self.wrong, strict=True))
        share = (1 + torch.cos(math.pi * lengths / self.max_length)) / 2
        truncated = torch.tensor([e.truncated for e in batch.episodes], dtype=torch.bool)
        over = (lengths > self.max_length) | ((lengths == self.max_length) & truncated)
        values = torch.where(over, self.exceeded, end + (start - end) * share).to(lengths.dtype)
        return Reward(values, valid=judged, terms={"cosine_length": values})
