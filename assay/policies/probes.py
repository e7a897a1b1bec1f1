"""Continuations probed at many prefixes of a response, each prefix computed once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from assay.batch import Batch
from assay.policies.attention.causal import causal
from assay.policies.attention.packed import FromRows, RowMap, ToRows, count_up
from assay.policies.base import Policy


class Probes:
    """Responses that continue shared prompts, and continuations that branch off after given numbers of their tokens.

    A continuation of a response after ``at`` of its tokens sees the prompt, these tokens and itself. In the padded view
    a row is its *trunk*, prompt and response, and beside it its continuations; trunks attend causally among themselves,
    continuations to both. Packed order: prompts, responses, then continuations without their last tokens, from which
    nothing is predicted.

    Attributes:
        predictors: ``(sum A,)`` packed index of the token that each continuation token is predicted from, in order.

    Args:
        prompts: U arrays of token ids, none empty.
        responses: N arrays of token ids, possibly empty.
        prompt_of: N indices into ``prompts``.
        at: for each response, after how many of its tokens each of its continuations begins.
        continuations: for each response, as many arrays of token ids, possibly empty.
        device: where the index tensors live.
    """

    def __init__(
        self,
        prompts: Sequence[Tensor],
        responses: Sequence[Tensor],
        prompt_of: Sequence[int],
        at: Sequence[Sequence[int]],
        continuations: Sequence[Sequence[Tensor]],
        device: torch.device,
    ):
        inputs = [c[:-1] for many in continuations for c in many]
        self.tokens = torch.cat([*prompts, *responses, *inputs]).to(device)
        p = torch.tensor([len(x) for x in prompts])
        r = torch.tensor([len(x) for x in responses])
        of = torch.tensor(prompt_of, dtype=torch.int64)
        whole = torch.tensor([len(c) for many in continuations for c in many], dtype=torch.int64)
        n = torch.tensor([len(c) for c in inputs], dtype=torch.int64)
        row = torch.repeat_interleave(torch.arange(len(responses)), torch.tensor([len(many) for many in continuations]))
        after = torch.tensor([a for points in at for a in points], dtype=torch.int64)
        prompt_start, response_start = p.cumsum(0) - p, p.sum() + r.cumsum(0) - r
        start = p.sum() + r.sum() + n.cumsum(0) - n

        # The trunk of row i is prompt_of[i] followed by response i.
        trunk, begins = p[of] + r, p[of][row] + after
        width, column = int(trunk.max()), torch.arange(int(trunk.max()))[None]
        in_prompt = column < p[of][:, None]
        packed = torch.where(
            in_prompt, prompt_start[of][:, None] + column, response_start[:, None] + column - p[of][:, None]
        )
        packed = torch.where(column < trunk[:, None], packed, 0)
        # Beside it, its continuations one after the other: where each token stands, and what it may see.
        before = torch.zeros(len(responses), dtype=torch.int64).index_add_(0, row, n)
        offset = n.cumsum(0) - n - (before.cumsum(0) - before)[row]
        of_token, j = torch.repeat_interleave(torch.arange(len(n)), n), count_up(n)
        beside = int(before.max()) if len(before) else 0
        cells = (row[of_token], offset[of_token] + j)
        side = torch.zeros(len(responses), beside, dtype=torch.int64)
        side[cells] = start[of_token] + j
        which = torch.full(side.shape, -1).index_put(cells, of_token)
        position = torch.zeros_like(side).index_put(cells, begins[of_token] + j)
        branch = torch.zeros_like(side).index_put(cells, begins[of_token])

        total = width + beside
        first = torch.full((len(prompts),), len(responses)).scatter_reduce(0, of, torch.arange(len(of)), "amin")
        scatter = torch.cat(
            [
                torch.repeat_interleave(first, p) * total + count_up(p),
                torch.repeat_interleave(torch.arange(len(responses)), r) * total
                + torch.repeat_interleave(p[of], r)
                + count_up(r),
                cells[0] * total + width + cells[1],
            ]
        )
        self.position_ids = torch.cat(
            [count_up(p), torch.repeat_interleave(p[of], r) + count_up(r), begins[of_token] + j]
        )[None].to(device)
        last = torch.where(after > 0, response_start[row] + after - 1, (prompt_start + p - 1)[of][row])
        asked, step = torch.repeat_interleave(torch.arange(len(whole)), whole), count_up(whole)
        self.predictors = torch.where(step == 0, last[asked], start[asked] + step - 1).to(device)
        self.map = RowMap(
            torch.cat([packed, side], 1).to(device),
            scatter.to(device),
            of.to(device),
            (torch.repeat_interleave(torch.arange(len(prompts)), p) * int(p.max()) + count_up(p)).to(device),
            int(p.max()),
            len(prompts),
        )
        self.width = width
        where = torch.cat([column.expand(len(responses), -1), position], 1)[:, None, :]
        self.gap = (position[:, :, None] - where)[:, None].to(device)
        own = (which[:, :, None] == which[:, None, :]) & (position[:, :, None] >= position[:, None, :])
        # A padded cell sees the others, so that its softmax is over something.
        self.seen = torch.cat([column[None] < branch[:, :, None], own], 2)[:, None].to(device)

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float | None, window: int | None) -> Tensor:
        q, k, v = (ToRows.apply(x[0].transpose(0, 1), self.map).transpose(1, 2) for x in (q, k, v))
        out = causal(q[:, :, : self.width], k[:, :, : self.width], v[:, :, : self.width], scale, window)
        if self.seen.shape[2]:
            near = self.seen if window is None else self.seen & (self.gap < window)
            grouped = q.shape[1] != k.shape[1]
            beside = F.scaled_dot_product_attention(
                q[:, :, self.width :], k, v, attn_mask=near, scale=scale, enable_gqa=grouped
            )
            out = torch.cat([out, beside], 2)
        return FromRows.apply(out.transpose(1, 2), self.map)[None]


def asked(policy: Policy, batch: Batch, temperature: float) -> Float[Tensor, "N K A"]:
    """Return the quantity ``continuation_logprobs``: what the batch's signals ask a policy for."""
    at = batch.signals["continuations_at"].cpu().tolist()
    what = batch.signals["continuations"].cpu().numpy()
    # One that is missing in front of others counts as empty, so that each keeps its place.
    texts = [
        [tokens[tokens >= 0] if a >= 0 else tokens[:0] for a, tokens in zip(row, many, strict=True)]
        for row, many in zip(at, what, strict=True)
    ]
    found = policy.continuations(batch, [[max(a, 0) for a in row] for row in at], texts, temperature)
    short = what.shape[2] - found.shape[2]
    return torch.nn.functional.pad(found, (0, short))


def padded(flat: Tensor, lengths: Int[Tensor, "N K"]) -> Tensor:
    """Lay values of continuations ``(sum A,)`` out as ``(N, K, A)``, zero after the end of each."""
    cells = torch.arange(int(lengths.max()) if lengths.numel() else 0) < lengths[..., None]
    out = torch.zeros(cells.shape, dtype=flat.dtype, device=flat.device)
    return out.masked_scatter(cells.to(flat.device), flat)
