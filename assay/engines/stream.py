"""Rows of a causal language model that are decoded side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int

from assay.engines.lean import Hidden
from assay.policies.attention import Decode, KeyValueCache, Prefill
from assay.policies.causal_lm import distinct


@dataclass(frozen=True, slots=True)
class Row:
    """One response to make: which request it answers, as which sample, after which prompt, at most how many tokens."""

    request: int
    sample: int
    prompt: np.ndarray
    limit: int


class Stream:
    """Rows that are decoded side by side: their keys and values, and the hidden state that each next token is of.

    Args:
        hidden_of: gives the hidden states of packed tokens on ``device``.

    Attributes:
        column: of the key-value block, where the next token goes.
    """

    def __init__(self, hidden_of: Hidden, rows: Sequence[Row], device: torch.device):
        self.hidden_of = hidden_of
        prompts, of = distinct([r.prompt for r in rows])
        prompt_of = torch.tensor(of, device=device)
        self.column, self.steps = max(map(len, prompts)), max(r.limit for r in rows)
        self.cache = KeyValueCache()
        prefill = Prefill([torch.from_numpy(p) for p in prompts], self.cache, device)
        self.hidden = hidden_of(prefill.tokens, prefill)[prefill.last[prompt_of]]
        self.cache.start(prompt_of, min(self.steps, 256))
        self.lengths = torch.tensor([len(r.prompt) for r in rows], device=device)
        self.bias = None
        padded = self.column - int(self.lengths.min())
        if padded:
            first = (self.column - self.lengths)[:, None]
            visible = torch.arange(padded, device=device)[None] >= first
            self.bias = torch.where(visible, 0.0, -torch.inf)[:, None, None].to(self.hidden.dtype)

    def drop(self, done: Bool[torch.Tensor, "B"]) -> Int[torch.Tensor, "K"]:
        """Leave out rows; return those kept, in their new order: the last take the places of what is left out."""
        left = int((~done).sum())
        holes = torch.nonzero(done[:left])[:, 0]
        movers = left + torch.nonzero(~done[left:])[:, 0]
        if len(holes):
            self.cache.move(movers, holes, self.column)
        keep = torch.arange(left, device=done.device)
        keep[holes] = movers
        self.lengths = self.lengths[keep]
        self.bias = None if self.bias is None else self.bias[keep]
        return keep

    def feed(self, token: torch.Tensor) -> None:
        """Go on by one token per row."""
        self.cache.reserve(self.column)
        layout = Decode(self.cache, self.lengths, len(token), self.column, self.bias)
        self.hidden = self.hidden_of(token, layout)
        self.lengths, self.column = self.lengths + 1, self.column + 1
