"""Attention over packed tokens, for any transformers model that takes a named attention function.

Tokens of many sequences stand in one row, without padding: projections, norms and MLPs cost only real tokens, and a
prompt shared by several responses stands there once. Which token sees which is decided here, by a *layout* that the
caller passes through the model's keyword arguments (``assay_layout=...``). The layouts:

- :class:`SharedPrompts`: prompts, then responses that continue them; for training and scoring;
- :class:`Prefill`: prompts alone, whose keys and values enter a :class:`KeyValueCache`;
- :class:`Extend`: new tokens after what stands in rows of the cache already;
- :class:`Decode`: one new token per row of the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.policies.attention.causal import causal

NAME = "assay_packed"


class Layout(Protocol):
    """Says how the ``S`` packed tokens of one model call attend to each other.

    ``position_ids`` is ``(1, S)``, or ``(A, 1, S)`` where positions have several axes; ``attend`` takes one layer's
    queries ``(1, H, S, D)``, keys and values ``(1, H_kv, S, D)`` and returns ``(1, S, H, D)``. A token sees itself and
    what stands before it in its sequence, the last ``window`` tokens of that where the layer has a sliding window.
    """

    position_ids: Int[Tensor, "... 1 S"]

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float | None, window: int | None
    ) -> Tensor: ...


def packed_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    assay_layout: Layout | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    is_causal: bool | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """The attention function registered with transformers under :data:`NAME`. Attention dropout is not applied.

    Raises:
        NotImplementedError: the model asks for a kind of attention that the layouts do not compute.
    """
    if assay_layout is None:
        raise RuntimeError("a model set to packed attention was called without a layout; use CausalLM.forward")
    unknown = {
        "a mask of its own": attention_mask is not None,
        "capped attention scores": softcap is not None,
        "attention sinks": s_aux is not None,
        "attention to later tokens": is_causal is False,
    }
    for what, present in unknown.items():
        if present:
            raise NotImplementedError(f"it has {what}")
    layer: int = module.layer_idx  # type: ignore[assignment]
    return assay_layout.attend(layer, query, key, value, scaling, sliding_window), None


def register(opaque: bool = False) -> None:
    """Make the attention function known to transformers; ``opaque`` keeps compilers from looking into it, for good."""
    from transformers import AttentionInterface

    if opaque:
        AttentionInterface.register(NAME, torch.compiler.disable(packed_attention))
    elif NAME not in AttentionInterface().valid_keys():
        AttentionInterface.register(NAME, packed_attention)


def count_up(lengths: Int[Tensor, "N"]) -> Int[Tensor, "S"]:
    """Return 0, 1, ..., length - 1 for each length, one after the other."""
    start = lengths.cumsum(0) - lengths
    return torch.arange(int(lengths.sum())) - torch.repeat_interleave(start, lengths)


class SharedPrompts:
    """U prompts followed by N responses, each of which continues one of the prompts.

    Packed order: all prompts, then all responses. The last token of a response is never an input (nothing is predicted
    from it), so a response of T tokens contributes T - 1.

    Attributes:
        predictors: ``(sum T,)`` packed index of the token that each response token is predicted from, in order.

    Args:
        prompts: U arrays of token ids, none empty.
        responses: N arrays of token ids, possibly empty.
        prompt_of: N indices into ``prompts``.
        device: where the index tensors live.
    """

    def __init__(
        self,
        prompts: Sequence[Tensor],
        responses: Sequence[Tensor],
        prompt_of: Sequence[int],
        device: torch.device,
    ):
        inputs = [r[:-1] for r in responses]
        self.tokens = torch.cat([*prompts, *inputs]).to(device)
        p = torch.tensor([len(x) for x in prompts])
        r = torch.tensor([len(x) for x in inputs])
        of = torch.tensor(prompt_of, dtype=torch.int64)
        prompt_start = p.cumsum(0) - p
        response_start = p.sum() + r.cumsum(0) - r
        # Row i of the padded view is prompt_of[i] followed by response i, padded on the right with token 0.
        length = p[of] + r
        width = int(length.max())
        column = torch.arange(width)[None]
        in_prompt, in_row = column < p[of][:, None], column < length[:, None]
        packed = torch.where(
            in_prompt, prompt_start[of][:, None] + column, response_start[:, None] + column - p[of][:, None]
        )
        gather = torch.where(in_row, packed, 0)
        # Each packed token is read back from one row: a prompt's from the first row that continues it.
        first = torch.full((len(prompts),), len(inputs)).scatter_reduce(0, of, torch.arange(len(of)), "amin")
        rows = torch.arange(len(inputs))
        prompt_columns = count_up(p)
        response_columns = torch.repeat_interleave(p[of], r) + count_up(r)
        scatter = torch.cat(
            [
                torch.repeat_interleave(first, p) * width + prompt_columns,
                torch.repeat_interleave(rows, r) * width + response_columns,
            ]
        )
        self.position_ids = torch.cat([prompt_columns, response_columns])[None].to(device)
        # The first token of a response is predicted from the prompt's last, the others from their left neighbour.
        t = torch.tensor([len(x) for x in responses])
        step = count_up(t)
        row = torch.repeat_interleave(rows, t)
        self.predictors = torch.where(step == 0, (prompt_start + p - 1)[of][row], response_start[row] + step - 1).to(
            device
        )
        self.map = RowMap(
            gather.to(device),
            scatter.to(device),
            of.to(device),
            (torch.repeat_interleave(torch.arange(len(prompts)), p) * int(p.max()) + prompt_columns).to(device),
            int(p.max()),
            len(prompts),
        )

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float | None, window: int | None) -> Tensor:
        q, k, v = (ToRows.apply(x[0].transpose(0, 1), self.map).transpose(1, 2) for x in (q, k, v))
        out = causal(q, k, v, scale, window).transpose(1, 2)
        return FromRows.apply(out, self.map)[None]


class RowMap:
    """Index tensors that carry packed tokens ``(S, ...)`` to padded rows ``(N, L, ...)`` and back."""

    def __init__(self, gather: Tensor, scatter: Tensor, prompt_of: Tensor, prompts: Tensor, width: int, count: int):
        self.gather = gather  # (N, L) packed index of each cell, 0 where padded
        self.scatter = scatter  # (S,) flat cell each packed token is read back from
        self.prompt_of = prompt_of  # (N,) prompt of each row
        self.prompts = prompts  # (sum P,) cell of each prompt token in a (U, width) table
        self.width, self.count = width, count


class ToRows(torch.autograd.Function):
    """Packed ``(S, H, D)`` to padded rows ``(N, L, H, D)``.

    Its backward adds up the gradients that a shared prompt gets from its rows a row at a time; an indexed
    accumulation over single tokens would be an order of magnitude slower on a CPU.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: RowMap) -> Tensor:
        ctx.rows = rows
        return x.reshape(x.shape[0], -1).index_select(0, rows.gather.reshape(-1)).view(*rows.gather.shape, *x.shape[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        rows: RowMap = ctx.rows
        n, width, heads, dim = grad.shape
        grad = grad.reshape(n, width, heads * dim)
        shared = grad.new_zeros(rows.count, rows.width, heads * dim)
        shared.index_add_(0, rows.prompt_of, grad[:, : rows.width])
        prompt = shared.view(-1, heads * dim).index_select(0, rows.prompts)
        response = grad.reshape(-1, heads * dim).index_select(0, rows.scatter[len(rows.prompts) :])
        return torch.cat([prompt, response]).view(-1, heads, dim), None


class FromRows(torch.autograd.Function):
    """Padded rows ``(N, L, H, D)`` to packed ``(S, H, D)``; each packed token is read from exactly one cell."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: RowMap) -> Tensor:
        ctx.rows, ctx.shape = rows, x.shape
        n, width, heads, dim = x.shape
        return x.reshape(n * width, heads * dim).index_select(0, rows.scatter).view(-1, heads, dim)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        n, width, heads, dim = ctx.shape
        out = grad.new_zeros(n * width, heads * dim)
        out[ctx.rows.scatter] = grad.reshape(-1, heads * dim)
        return out.view(ctx.shape), None


class KeyValueCache:
    """Keys and values of B rows for every layer, prompts left-padded so that all rows write the same column.

    Finished rows leave by moving the last rows into their places, which copies only as many rows as finish.
    """

    def __init__(self) -> None:
        self.data: Tensor | None = None  # (layers, 2, B, H_kv, C, D)
        self._prompts: list[tuple[Tensor, Tensor]] = []

    def put_prompts(self, layer: int, k: Tensor, v: Tensor) -> None:
        """Store one layer's left-padded prompt keys and values, ``(U, H_kv, L, D)``; layers come in order."""
        if layer != len(self._prompts):
            raise RuntimeError(f"layer {layer} ran out of order in prefill")
        self._prompts.append((k, v))

    def start(
        self,
        prompt_of: Int[Tensor, "B"],
        width: int,
        capacity: int,
        before: Sequence[tuple[int, Sequence[Tensor]]] = (),
    ) -> None:
        """Give each row what it begins with, in one block with room for ``capacity`` more columns.

        Args:
            prompt_of: the stored prompt of each row after those of ``before``.
            width: columns of the longest prompt, all of which end together.
            before: of each of the first rows, where it begins and what is kept of it, ``(layers, 2, H_kv, n, D)`` in
                pieces; :class:`Extend` adds the rest of its prompt.
        """
        if self._prompts:
            like, layers = self._prompts[0][0], len(self._prompts)
        else:
            like, layers = before[0][1][0], len(before[0][1][0])
        heads, dim = like.shape[-3], like.shape[-1]
        count = len(before)
        self.data = like.new_empty(layers, 2, count + len(prompt_of), heads, width + capacity, dim)
        for layer, prompts in enumerate(self._prompts):
            for part, x in enumerate(prompts):
                # What a shorter prompt leaves is hidden, but has to be numbers.
                self.data[layer, part, count:, :, : width - x.shape[2]] = 0
                self.data[layer, part, count:, :, width - x.shape[2] : width] = x[prompt_of]
        for row, (first, pieces) in enumerate(before):
            self.data[:, :, row, :, :first] = 0
            ends = first + np.cumsum([piece.shape[3] for piece in pieces])
            for piece, end in zip(pieces, ends.tolist(), strict=True):
                self.data[:, :, row, :, end - piece.shape[3] : end] = piece
        self._prompts = []

    def reserve(self, column: int) -> None:
        """Grow by half when ``column`` does not fit."""
        assert self.data is not None
        if column >= self.data.shape[4]:
            self.data = F.pad(self.data, (0, 0, 0, self.data.shape[4] // 2 + 1))

    def move(self, source: Tensor, target: Tensor, column: int) -> None:
        """Copy rows ``source`` over rows ``target``, up to ``column``."""
        assert self.data is not None
        self.data[:, :, target, :, :column] = self.data[:, :, source, :, :column]


class Prefill:
    """U prompts, each seen by itself; keys and values go to ``cache``. ``last`` is where each one ends."""

    def __init__(self, prompts: Sequence[Tensor], cache: KeyValueCache, device: torch.device):
        lengths = torch.tensor([len(x) for x in prompts])
        width = int(lengths.max())
        end = lengths.cumsum(0)
        start = (end - lengths)[:, None]
        shift = (width - lengths)[:, None]
        column = torch.arange(width)[None]
        self.tokens = torch.cat(list(prompts)).to(device)
        self.position_ids = count_up(lengths)[None].to(device)
        self.right = torch.where(column < lengths[:, None], start + column, 0).to(device)
        self.left = torch.where(column >= shift, start + column - shift, 0).to(device)
        row = torch.repeat_interleave(torch.arange(len(prompts)), lengths)
        self.back = (row * width + count_up(lengths)).to(device)
        self.last = (end - 1).to(device)
        self.cache = cache

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float | None, window: int | None) -> Tensor:
        q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))  # (S, H, D)
        self.cache.put_prompts(layer, k[self.left].transpose(1, 2), v[self.left].transpose(1, 2))
        q, k, v = (x[self.right].transpose(1, 2) for x in (q, k, v))
        return causal(q, k, v, scale, window).transpose(1, 2).flatten(0, 1)[self.back][None]


class Extend:
    """New tokens of R rows of the cache, each after what stands in its row before; all rows end at column ``width``.

    Args:
        tokens: of each row, none empty.
        before: how many tokens each row has already.
        start: the first of the rows.
    """

    def __init__(
        self,
        tokens: Sequence[Tensor],
        before: Sequence[int],
        cache: KeyValueCache,
        start: int,
        width: int,
        device: torch.device,
    ):
        lengths, had = torch.tensor([len(x) for x in tokens]), torch.tensor(before)
        self.tokens = torch.cat(list(tokens)).to(device)
        self.position_ids = (torch.repeat_interleave(had, lengths) + count_up(lengths))[None].to(device)
        self.last = (lengths.cumsum(0) - 1).to(device)
        self.cache, self.rows, self.width, self.most = (
            cache,
            slice(start, start + len(tokens)),
            width,
            int(lengths.max()),
        )
        # Queries are padded on the left, so that column j of each row is seen from queries at j and after it.
        self.row = torch.repeat_interleave(torch.arange(len(tokens)), lengths).to(device)
        self.query = torch.repeat_interleave(self.most - lengths, lengths).to(device) + count_up(lengths).to(device)
        column, at = torch.arange(width, device=device), torch.arange(width - self.most, width, device=device)[:, None]
        self.away = at - column  # (most, width)
        self.inside = (column >= width - (had + lengths).to(device)[:, None])[:, None]  # (R, 1, width)
        self.masks: dict[int | None, Tensor] = {}

    def seen(self, window: int | None) -> Bool[Tensor, "R 1 most width"]:
        """Which columns of its row each query sees; what is padding sees none, for nobody."""
        if window not in self.masks:
            near = self.away >= 0 if window is None else (self.away >= 0) & (self.away < window)
            self.masks[window] = (near & self.inside)[:, None]
        return self.masks[window]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float | None, window: int | None) -> Tensor:
        assert self.cache.data is not None
        keys, values = self.cache.data[layer, :, self.rows, :, : self.width]
        columns = self.width - self.most + self.query
        keys[self.row, :, columns] = k[0].transpose(0, 1)
        values[self.row, :, columns] = v[0].transpose(0, 1)
        _, heads, _, dim = q.shape
        queries = q.new_zeros(len(keys), heads, self.most, dim)
        queries[self.row, :, self.query] = q[0].transpose(0, 1)
        out = F.scaled_dot_product_attention(
            queries, keys, values, attn_mask=self.seen(window), scale=scale, enable_gqa=heads != keys.shape[1]
        )
        return out[self.row, :, self.query][None]


class Decode:
    """One token per row of the cache, written at ``column``; ``bias`` ``(B, 1, 1, P)`` hides left padding.

    P is the number of columns in which there is any.
    """

    def __init__(self, cache: KeyValueCache, positions: Tensor, rows: int, column: int, bias: Tensor | None):
        self.cache, self.rows, self.column, self.bias = cache, rows, column, bias
        self.position_ids = positions[None]
        self._cells: dict[int, Int[Tensor, "BHkvR C"]] = {}  # of values, by the first column seen

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float | None, window: int | None) -> Tensor:
        assert self.cache.data is not None
        keys, values = self.cache.data[layer, :, : self.rows]
        keys[:, :, self.column] = k[0].transpose(0, 1)
        values[:, :, self.column] = v[0].transpose(0, 1)
        # Rows end in the same column, so a window is the same columns in all of them.
        seen = slice(max(0, self.column + 1 - window) if window is not None else 0, self.column + 1)
        _, heads, rows, dim = q.shape
        # Queries that share a key head form its rows, so that keys and values need not be repeated.
        q = q[0].transpose(0, 1).reshape(rows, keys.shape[1], heads // keys.shape[1], dim)
        q = q * (dim**-0.5 if scale is None else scale)
        # Kernels for batches of small products read the larger factor once, in order: first where queries form rows,
        # second where there is one for each key head.
        scores: Float[Tensor, "B Hkv R C"]
        if q.shape[2] == 1:
            scores = torch.matmul(q, keys[:, :, seen].transpose(-1, -2))
        else:
            scores = torch.matmul(keys[:, :, seen], q.transpose(-1, -2)).transpose(-1, -2)
        if self.bias is not None and seen.start < self.bias.shape[-1]:
            scores[..., : self.bias.shape[-1] - seen.start] += self.bias[..., seen.start :]
        weights = scores.softmax(-1, dtype=torch.float32).to(values.dtype)
        return self._mix(weights, values, seen).reshape(1, rows, heads, dim)

    def _mix(self, weights: Float[Tensor, "B Hkv R C"], values: Tensor, seen: slice) -> Float[Tensor, "B Hkv R D"]:
        """Return weighted sums of the values that are seen."""
        if values.device.type != "cpu" or values.dtype != torch.float32 or weights.shape[2] == 1:
            return torch.matmul(weights, values[:, :, seen])
        # For grouped queries, summing rows of a table takes about half the time of as many small products.
        rows, heads, capacity, dim = values.shape
        if seen.start not in self._cells:
            first = torch.arange(rows * heads)[:, None, None] * capacity
            cells = first + torch.arange(seen.start, seen.stop)
            self._cells[seen.start] = cells.expand(-1, weights.shape[2], -1).flatten(0, 1)
        cells = self._cells[seen.start]
        table = values.reshape(-1, dim)
        return F.embedding_bag(cells, table, mode="sum", per_sample_weights=weights.reshape(cells.shape))
