"""Rows of a causal language model that are decoded side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from assay.engines.lean import Hidden
from assay.engines.sessions import Kept
from assay.policies.attention.packed import Decode, Extend, KeyValueCache, Layout, Prefill
from assay.policies.causal_lm import distinct

Places = Callable[[np.ndarray], Int[torch.Tensor, "A P"] | None]

CELLS = 2**26
"""Pairs of a new token and one it may see that are looked at together."""


@dataclass(frozen=True, slots=True)
class Row:
    """One response to make: which request it answers, as which sample, after which prompt, at most how many tokens.

    Of a session, what is ``kept`` of the prompt's first tokens need not be computed.
    """

    request: int
    sample: int
    prompt: np.ndarray
    limit: int
    session: str | None = None
    kept: Kept | None = None

    @property
    def work(self) -> int:
        """Tokens to compute, at most."""
        return len(self.prompt) - (0 if self.kept is None else len(self.kept.tokens)) + self.limit


class Stream:
    """Rows that are decoded side by side: their keys and values, and the hidden state that each next token is of.

    Args:
        hidden_of: gives the hidden states of packed tokens on ``device``.
        rows: those of which something is kept come first.
        places: where a prompt's tokens stand, as :meth:`assay.policies.causal_lm.CausalLM.places`.

    Attributes:
        column: of the key-value block, where the next token goes.
        lengths: of the rows so far.
        next: where their next tokens stand.
    """

    def __init__(self, hidden_of: Hidden, rows: Sequence[Row], device: torch.device, places: Places):
        self.hidden_of, self.device = hidden_of, device
        self.places = places
        self.column, self.steps = max(len(r.prompt) for r in rows), max(r.limit for r in rows)
        # Of several models, each has keys and values of its own.
        self.cache: KeyValueCache = getattr(hidden_of, "cache", KeyValueCache)()
        kept = [r.kept for r in rows if r.kept is not None]
        of: list[int] = []
        read: list[torch.Tensor] = []
        if len(kept) < len(rows):
            prompts, of = distinct([r.prompt for r in rows[len(kept) :]])
            prefill = Prefill([torch.from_numpy(p) for p in prompts], self.cache, device)
            stand(prefill, [places(p) for p in prompts], [len(p) for p in prompts])
            read = [hidden_of(prefill.tokens, prefill)[prefill.last[torch.tensor(of, device=device)]]]
        self.cache.start(
            torch.tensor(of, dtype=torch.int64, device=device),
            self.column,
            min(self.steps, 256),
            [(self.column - len(r.prompt), k.pieces) for r, k in zip(rows, kept, strict=False)],
        )
        self.hidden = torch.cat([*self._continued(rows[: len(kept)]), *read])
        self.lengths = torch.tensor([len(r.prompt) for r in rows], device=device)
        self.next = torch.tensor([after(r.prompt, places) for r in rows], device=device)
        self.bias = None
        padded = self.column - int(self.lengths.min())
        if padded:
            first = (self.column - self.lengths)[:, None]
            visible = torch.arange(padded, device=device)[None] >= first
            self.bias = torch.where(visible, 0.0, -torch.inf)[:, None, None].to(self.hidden.dtype)

    def _continued(self, rows: Sequence[Row]) -> Iterator[torch.Tensor]:
        """Read what is new in the prompts of the first rows, so many at a time as can be; yield their last states."""
        new = [torch.from_numpy(r.prompt[len(r.kept.tokens) :]) for r in rows if r.kept is not None]
        start = 0
        while start < len(rows):
            end, longest = start, 0
            while end < len(rows):
                longest = max(longest, len(new[end]))
                if end > start and (end + 1 - start) * longest * self.column > CELLS:
                    break
                end += 1
            before = [len(r.prompt) - len(n) for r, n in zip(rows[start:end], new[start:end], strict=True)]
            layout = Extend(new[start:end], before, self.cache, start, self.column, self.device)
            at = [self.places(row.prompt) for row in rows[start:end]]
            read = [found if found is None else found[:, n:] for found, n in zip(at, before, strict=True)]
            stand(layout, read, list(map(len, new[start:end])))
            yield self.hidden_of(layout.tokens, layout)[layout.last]
            start = end

    def written(self, row: int, after: int) -> Float[torch.Tensor, "layers 2 H_kv n D"]:
        """Return the keys and values of a row's tokens but for the first ``after`` ones."""
        assert self.cache.data is not None
        first = self.column - int(self.lengths[row])
        return self.cache.data[:, :, row, :, first + after : self.column]

    def drop(self, done: Bool[torch.Tensor, "B"]) -> Int[torch.Tensor, "K"]:
        """Leave out rows; return those kept, in their new order: the last take the places of what is left out."""
        left = int((~done).sum())
        holes = torch.nonzero(done[:left])[:, 0]
        movers = left + torch.nonzero(~done[left:])[:, 0]
        if len(holes):
            self.cache.move(movers, holes, self.column)
        keep = torch.arange(left, device=done.device)
        keep[holes] = movers
        self.lengths, self.next = self.lengths[keep], self.next[keep]
        self.bias = None if self.bias is None else self.bias[keep]
        return keep

    def feed(self, token: torch.Tensor) -> None:
        """Go on by one token per row."""
        self.cache.reserve(self.column)
        layout = Decode(self.cache, self.next, len(token), self.column, self.bias)
        self.hidden = self.hidden_of(token, layout)
        self.lengths, self.next, self.column = self.lengths + 1, self.next + 1, self.column + 1


def after(prompt: np.ndarray, places: Places) -> int:
    """Return where the token after a prompt stands."""
    at = places(prompt)
    return len(prompt) if at is None else int(at.max()) + 1


def stand(layout: Layout, places: Sequence[Int[torch.Tensor, "A n"] | None], lengths: Sequence[int]) -> None:
    """Have a layout of sequences of such lengths say that they stand at ``places``, where these are given."""
    if axes := max((len(at) for at in places if at is not None), default=0):
        table = layout.position_ids.repeat(axes, 1)
        for at, part in zip(places, table.split(list(lengths), 1), strict=True):
            if at is not None:
                part.copy_(at)
        layout.position_ids = table[:, None]
