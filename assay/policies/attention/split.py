"""Attention over long shared prompts: a prompt's own queries are computed once, not once per response.

The padded rows of :class:`~.packed.SharedPrompts` hold a prompt and a response each, and attention is
computed for all of a row. With a prompt of P tokens in front of a response of R, that is (P + R)^2 pairs per response,
of which P^2 are the same in the whole group. Here prompts attend by themselves, U rows of them, and only the R queries
of a response attend to its row's P + R keys.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor

from assay.policies.attention.causal import SHORT, causal
from assay.policies.attention.packed import FromRows, RowMap, SharedPrompts, ToRows, count_up


def worthwhile(prompts: Sequence[Tensor], responses: Sequence[Tensor], prompt_of: Sequence[int]) -> bool:
    """Whether splitting leaves less than two thirds of the pairs of tokens, in rows that are not short anyway."""
    whole = [len(prompts[u]) + len(r) for u, r in zip(prompt_of, responses, strict=True)]
    pairs = sum(len(x) ** 2 for x in prompts) + sum(n * len(r) for n, r in zip(whole, responses, strict=True))
    return max(whole, default=0) > SHORT and 3 * pairs < 2 * sum(n * n for n in whole)


def prompts_layout(
    prompts: Sequence[Tensor], responses: Sequence[Tensor], prompt_of: Sequence[int], device: torch.device
) -> SharedPrompts:
    """Return the layout of padded rows, or the one that splits them where that is worthwhile."""
    layout = SplitPrompts if worthwhile(prompts, responses, prompt_of) else SharedPrompts
    return layout(prompts, responses, prompt_of, device)


class SplitPrompts(SharedPrompts):
    """:class:`~.packed.SharedPrompts`, with the attention of prompts and of responses apart."""

    def __init__(
        self,
        prompts: Sequence[Tensor],
        responses: Sequence[Tensor],
        prompt_of: Sequence[int],
        device: torch.device,
    ):
        super().__init__(prompts, responses, prompt_of, device)
        lengths = torch.tensor([max(0, len(x) - 1) for x in responses])
        self.rows, self.width = len(lengths), int(lengths.max())
        row = torch.repeat_interleave(torch.arange(self.rows), lengths)
        self.cells = (row * self.width + count_up(lengths)).to(device)  # of each response input in (rows, width)
        before = torch.tensor([len(x) for x in prompts])[torch.tensor(prompt_of, dtype=torch.int64)].to(device)
        self.positions = before[:, None] + torch.arange(self.width, device=device)  # (rows, width)
        self.masks: dict[int | None, Tensor] = {}

    def seen(self, window: int | None) -> Bool[Tensor, "N 1 R C"]:
        """Which columns of its row each response token sees; what is padding sees something too, for nobody."""
        if window not in self.masks:
            away = self.positions[..., None] - torch.arange(self.map.gather.shape[1], device=self.positions.device)
            near = away >= 0 if window is None else (away >= 0) & (away < window)
            self.masks[window] = near[:, None]
        return self.masks[window]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float | None, window: int | None) -> Tensor:
        q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))  # (S, H, D)
        split, cells = len(self.map.prompts), self.map.prompts
        table = self.map.count, self.map.width
        alone_q, alone_k, alone_v = (_spread(x[:split], cells, *table).transpose(1, 2) for x in (q, k, v))
        alone = causal(alone_q, alone_k, alone_v, scale, window)
        prompts = _gather(alone.transpose(1, 2), cells)
        if not len(self.cells):
            return prompts[None]
        k, v = (ToRows.apply(x, self.map).transpose(1, 2) for x in (k, v))
        queries = _spread(q[split:], self.cells, self.rows, self.width).transpose(1, 2)
        out = F.scaled_dot_product_attention(
            queries, k, v, attn_mask=self.seen(window), scale=scale, enable_gqa=queries.shape[1] != k.shape[1]
        )
        return torch.cat([prompts, _gather(out.transpose(1, 2), self.cells)])[None]


def _spread(x: Tensor, cells: Int[Tensor, "S"], rows: int, width: int) -> Tensor:
    """Put packed ``(S, H, D)`` into cells of ``(rows, width, H, D)``, zero elsewhere."""
    flat = x.new_zeros(rows * width, x.shape[1] * x.shape[2]).index_copy(0, cells, x.reshape(len(x), -1))
    return flat.view(rows, width, *x.shape[1:])


def _gather(x: Tensor, cells: Int[Tensor, "S"]) -> Tensor:
    """Read ``(S, H, D)`` back from cells of ``(rows, width, H, D)``."""
    return FromRows.apply(x, RowMap(cells, cells, cells, cells, 0, 0))
