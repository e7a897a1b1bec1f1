"""How likely the reference answer is after every turn of an episode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.ops.turns import own_turns
from assay.registry import part
from assay.signals.answer_tokens import answer_range
from assay.signals.base import Models
from assay.signals.likelihood import encoder
from assay.signals.steps import decoder
from assay.verify.answer.spans import Span
from assay.verify.text.text import references

BRIDGE = "<think>\nNow there's enough information to answer\n</think>\n<answer>\n"
"""What is put between a turn and the answer: a thought that is over."""
CLOSE = "\n</answer>"


@part("signal", "turn_likelihood")
@dataclass(frozen=True, slots=True)
class TurnLikelihood:
    """Signal ``(N, K)``: l_k = 1/L sum_j log pi(a_j | x, y_<k, open, a_<j) of the reference a before each turn k.

    y_<k is all that stands before turn k, the world's answer to turn k - 1 among it, by its very tokens. ``open``,
    a and ``close`` are written as one text, of which the tokens with a character of a in them are counted; of several
    references that are accepted a is the first. NaN where there is nothing: no reference that is a text or a number,
    no room in the model's context, or a turn that was not taken. Detached, by the policy as it sampled.

    Source: IGPO (arXiv 2510.14967), section 3.1, and its authors' code for the wording and the first reference.

    Args:
        open, close: see above.
        temperature: divides the logits; that of sampling if ``None``.
    """

    open: str = BRIDGE
    close: str = CLOSE
    temperature: float | None = None

    whole = True

    @property
    def name(self) -> str:
        return "turn_likelihood"

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N K"]:
        asked = [next((t for t in map(str.strip, references(task.reference)) if t), "") for task in batch.tasks]
        written = {text: self.written(text, models) for text in asked if text}
        context = getattr(models.policy, "context", None)
        turns = [own_turns(episode) for episode in batch.episodes]
        at: list[list[int]] = []
        what: list[list[np.ndarray]] = []
        for episode, own, text in zip(batch.episodes, turns, asked, strict=True):
            tokens, (start, stop) = written.get(text, NOTHING)
            room = context if context is not None else np.inf
            fits = [t.start for t in own if start < stop and len(episode.prompt) + t.start + len(tokens) <= room]
            at.append(fits)
            what.append([tokens[:stop]] * len(fits))
        found = models.continuations(batch, at, what, "policy", self.temperature)
        out = torch.full((len(batch), max(map(len, turns), default=0)), torch.nan, dtype=batch.logprobs.dtype)
        for i, (starts, text) in enumerate(zip(at, asked, strict=True)):
            start, stop = written.get(text, NOTHING)[1]
            for k in range(len(starts)):
                out[i, k] = found[i, k, start:stop].mean()
        return out

    def written(self, text: str, models: Models) -> tuple[np.ndarray, tuple[int, int]]:
        """Return the tokens of an answer with what is around it, and the range of those that write the answer."""
        whole = self.open + text + self.close
        tokens = encoder(models)(whole)
        begin, end = len(self.open), len(self.open) + len(text)

        def place(said: str) -> Span | None:
            return Span(begin, begin, end, end) if said == whole else None

        return tokens, answer_range(tokens.tolist(), decoder(models), place)


NOTHING: Any = (np.zeros(0, dtype=np.int64), (0, 0))


def gains(likelihood: Float[Tensor, "N K"], turns: Sequence[int], logarithm: bool) -> Float[Tensor, "N K"]:
    """Return p_{k+1} - p_k for every turn k but the last of ``turns[i]``, else 0; 0 too where one is not known.

    p = exp(l), or l itself with ``logarithm``.
    """
    p = likelihood if logarithm else likelihood.exp()
    out = torch.zeros_like(p)
    if p.shape[1] > 1:
        out[:, :-1] = p[:, 1:] - p[:, :-1]
    count = torch.tensor(turns)[:, None]
    return torch.where((torch.arange(p.shape[1]) < count - 1) & out.isfinite(), out, 0)
