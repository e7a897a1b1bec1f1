"""What a teacher that reads the same tokens thinks of every token of a label."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.engines.shifted import check_tokens
from assay.errors import UsageError
from assay.signals.base import Models
from assay.types import Origin


@dataclass(frozen=True)
class TeacherTokens:
    """Signal ``teacher_logprobs`` ``(N, T, k)``: log q(c | x, y_<t) of the teacher's k likeliest tokens c at every
    position of a response of his.

    The tokens are left in ``signals["candidates"]`` ``(N, T, k)``, where a live ``candidate_logprobs`` finds them. A
    response that has another author, or is longer than the teacher's context, has q = 1 for each of its own tokens, as
    if he had said no more than that. All is at the temperature of sampling.

    Args:
        teacher: a policy with the student's tokens.
        k: tokens; of a vocabulary that has fewer, all.

    Raises:
        UsageError: k below 1; before a run, tokens that are not the student's.
    """

    teacher: Any
    k: int = 20

    name = "teacher_logprobs"

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UsageError(f"soft labels: {self.k} tokens must be at least 1")

    def check(self, policy: Any) -> None:
        """Raise UsageError unless student and teacher have the same tokens."""
        if not hasattr(policy, "tokenizer"):
            raise UsageError(f"soft labels are of language models, not of a {type(policy).__name__}; set soft = 0")
        check_tokens(policy, self.teacher)

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N T k"]:
        room = getattr(self.teacher, "context", math.inf)
        his = [
            bool(len(e.tokens)) and e.origins is not None and bool((e.origins == Origin.TEACHER).all())
            and len(e.prompt) + len(e.tokens) <= room
            for e in batch.episodes
        ]  # fmt: skip
        index = torch.tensor(his).nonzero()[:, 0]
        there = replace(models, policy=self.teacher)
        work = batch.rows(index)
        work.signals = {}
        chosen = self._likeliest(work, models)
        work.signals["candidates"] = chosen
        k = chosen.shape[-1]
        candidates = batch.tokens[..., None].repeat(1, 1, k)
        out = torch.full(candidates.shape, -math.inf, dtype=batch.logprobs.dtype)
        out[..., 0] = 0.0
        if len(index):
            found = there.quantities(work, {"candidate_logprobs"})["candidate_logprobs"]
            candidates[index, : chosen.shape[1]], out[index, : chosen.shape[1]] = chosen, found.to(out)
        batch.signals["candidates"] = candidates
        return out

    def _likeliest(self, work: Batch, models: Models) -> Tensor:
        """Return the teacher's likeliest tokens ``(M, T, k)``."""
        out: Tensor | None = None
        for rows in self.teacher.micro_batches(work, models.token_budget) if len(work) else ():
            found = self.teacher.likeliest(work.rows(rows), self.k)
            if out is None:
                out = torch.zeros(*work.tokens.shape, found.shape[-1], dtype=torch.int64)
            out[rows, : found.shape[1]] = found
        return torch.zeros(*work.tokens.shape, 1, dtype=torch.int64) if out is None else out
