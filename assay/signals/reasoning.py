"""Which tokens of a response are reasoning and which are its answer; and the reference in the answer's place."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from assay.batch import Batch
from assay.registry import part
from assay.signals.answer_tokens import opened
from assay.signals.base import Models
from assay.signals.likelihood import ReferenceLikelihood
from assay.signals.steps import decoder, token_ends

REASONING, OPENING, ANSWER, CLOSING = range(4)


@part("signal", "sections")
@dataclass(frozen=True, slots=True)
class Sections:
    """Signal ``sections`` ``(N, T)`` int64: what each token of a response is; -1 outside.

    0 reasoning, 1 what opens the answer, 2 the answer, 3 from there on; all as the task's verifier reads it. A token
    belongs to where it begins. A response without an answer is reasoning throughout. With ``open`` that mark counts
    instead: 1 is the last ``open`` in the response, 2 stands between it and the ``close`` after it; a response ending
    before ``close`` ends with its answer, but for its end-of-sequence token, which is 3.

    Args:
        open, close: what answers stand between; without ``open`` the verifier is asked.
        unfinished: whether the last words of a response that a limit cut off are its answer without a mark before them.
    """

    open: str | None = None
    close: str = "</answer>"
    unfinished: bool = True

    @property
    def name(self) -> str:
        return "sections"

    def __call__(self, batch: Batch, models: Models) -> Int[Tensor, "N T"]:
        decode = decoder(models)
        out = torch.full(batch.tokens.shape, -1, dtype=torch.int64)
        for row, episode, task in zip(out, batch.episodes, batch.tasks, strict=True):
            tokens = episode.tokens.tolist()
            row[: len(tokens)] = REASONING
            text = decode(tokens)
            place = opened(task, text, self.open, self.close, models)
            if place is None or not tokens:
                continue
            if episode.truncated and place.begin == place.start and not self.unfinished:
                continue
            where, begins, stops, _ = place
            ends, inner = token_ends(tokens, decode), range(len(tokens) - 1)

            def before(place: int, ends: Any = ends, inner: range = inner) -> int:
                """Return how many tokens begin before a place in the text."""
                return 1 + bisect_left(inner, place, key=ends) if place > 0 else 0

            row[before(where) : len(tokens)] = OPENING
            row[before(begins) : len(tokens)] = ANSWER
            over = before(stops) if stops >= 0 else len(tokens)
            if stops < 0 and episode.stop == "eos" and inner and ends(inner[-1]) >= len(text):
                over -= 1
            row[over : len(tokens)] = CLOSING
        return out


@dataclass(frozen=True, slots=True)
class Continuation:
    """Signals that ask the policy for the likelihood of the reference *with a gradient*.

    ``continuations`` ``(N, K, A)`` and ``continuations_at`` ``(N, K)`` as the quantity ``continuation_logprobs`` reads
    them, see :data:`assay.policies.base.QUANTITIES`: what :class:`~assay.signals.likelihood.ReferenceLikelihood` probes
    with and where, -1 where there is nothing. Of a continuation, the last tokens are those whose likelihood it tells.

    Args:
        likelihood: says what to probe with, and where.
        what: the tokens, or after how many tokens of the response they begin.
    """

    likelihood: ReferenceLikelihood = field(default_factory=ReferenceLikelihood)
    what: Literal["tokens", "at"] = "tokens"

    whole = True

    @property
    def name(self) -> str:
        return "continuations" if self.what == "tokens" else "continuations_at"

    def __call__(self, batch: Batch, models: Models) -> Int[Tensor, "N K A"] | Int[Tensor, "N K"]:
        at, what, _ = self.likelihood.plan(batch, models)
        k = max(map(len, at), default=0)
        if self.what == "at":
            return torch.tensor([[*row, *[-1] * (k - len(row))] for row in at], dtype=torch.int64).reshape(len(at), k)
        width = max((len(tokens) for many in what for tokens in many), default=0)
        table = np.full((len(what), k, width), -1, dtype=np.int64)
        for row, many in zip(table, what, strict=True):
            for cells, tokens in zip(row, many, strict=False):
                cells[: len(tokens)] = tokens
        return torch.from_numpy(table)


@dataclass(frozen=True, slots=True)
class Probed:
    """Signal ``(N, K)`` int64: after how many tokens each value of a likelihood is told; -1 where there is none.

    Args:
        likelihood: the signal whose places it says; its name is ``NAME_at``.
    """

    likelihood: ReferenceLikelihood

    whole = True

    @property
    def name(self) -> str:
        return f"{self.likelihood.name}_at"

    def __call__(self, batch: Batch, models: Models) -> Int[Tensor, "N K"]:
        return Continuation(self.likelihood, "at")(batch, models)
