"""Packed attention by torch's flex attention, where a GPU is: no padded rows, and a shared prompt's keys stay shared.

The padded rows of :class:`~.packed.SharedPrompts` repeat a prompt's keys for every response and compute
the longest response's length for all. Here queries and keys stay packed. A mask says which token sees which, and blocks
of 128 x 128 tokens in which nobody sees anybody are skipped.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import UsageError
from assay.policies.attention.packed import SharedPrompts
from assay.policies.attention.split import prompts_layout

Attention = Literal["auto", "sdpa", "flex"]
"""``auto`` is flex on a GPU where it works, else sdpa: padded rows and torch's scaled dot-product attention."""

BLOCK = 128
"""Tokens on a side of a block of the mask."""

ROWS = 2048
"""Queries whose rows of the mask are held at once."""


class FlexPrompts(SharedPrompts):
    """:class:`~.packed.SharedPrompts`, with attention over the packed tokens themselves.

    Token i sees token j where j is in i's own sequence (its prompt, or its response), or in the prompt of i's response,
    and stands no later: position_j <= position_i. With a window, only where position_i - position_j < window.
    """

    def __init__(
        self,
        prompts: Sequence[Tensor],
        responses: Sequence[Tensor],
        prompt_of: Sequence[int],
        device: torch.device,
    ):
        super().__init__(prompts, responses, prompt_of, device)
        p = torch.tensor([len(x) for x in prompts])
        r = torch.tensor([max(0, len(x) - 1) for x in responses])
        prompt = torch.repeat_interleave(torch.arange(len(p)), p)
        self.own = torch.cat([prompt, len(p) + torch.repeat_interleave(torch.arange(len(r)), r)]).to(device)
        of = torch.tensor(prompt_of, dtype=torch.int64)
        self.prompt = torch.cat([prompt, torch.repeat_interleave(of, r)]).to(device)
        self.index = self.position_ids[0]
        self.masks: dict[int | None, Any] = {}

    def sees(self, window: int | None) -> Callable[[Any, Any, Tensor, Tensor], Tensor]:
        """The mask as flex attention wants it: of batch, head, query and key indices."""
        own, prompt, position = self.own, self.prompt, self.index

        def mask(_b: Any, _h: Any, i: Int[Tensor, "..."], j: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
            near = position[j] <= position[i]
            if window is not None:
                near = near & (position[i] - position[j] < window)
            return near & ((own[j] == own[i]) | (own[j] == prompt[i]))

        return mask

    def mask(self, window: int | None) -> Any:
        """The block mask, made once for all layers of a kind."""
        if window not in self.masks:
            self.masks[window] = block_mask(self.sees(window), len(self.own), self.own.device)
        return self.masks[window]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float | None, window: int | None) -> Tensor:
        kernel = _kernel(q.device.type)
        out: Float[Tensor, "1 H S D"] = kernel(
            q, k, v, block_mask=self.mask(window), scale=scale, enable_gqa=q.shape[1] != k.shape[1]
        )
        return out.transpose(1, 2)


def block_mask(mask: Callable[[Any, Any, Tensor, Tensor], Tensor], length: int, device: torch.device) -> Any:
    """Return the ``BlockMask`` of ``length`` queries and as many keys.

    torch's ``create_block_mask`` holds all ``length^2`` answers at once; this holds :data:`ROWS` x ``length`` of them.
    """
    from torch.nn.attention.flex_attention import BlockMask

    columns = -(-length // BLOCK)
    keys = torch.arange(columns * BLOCK, device=device)
    counts = []
    for start in range(0, length, ROWS):
        queries = keys[start : start + ROWS]
        inside = (queries < length)[:, None] & (keys < length)
        seen = inside & mask(None, None, queries.clamp(max=length - 1)[:, None], keys.clamp(max=length - 1)[None])
        counts.append(seen.view(-1, BLOCK, columns, BLOCK).sum((1, 3)))
    count = torch.cat(counts)[None, None]
    full = count == BLOCK * BLOCK
    return BlockMask.from_kv_blocks(
        *_listed((count > 0) & ~full),
        *_listed(full),
        BLOCK_SIZE=BLOCK,
        mask_mod=mask,
        seq_lengths=(length, length),
    )


def _listed(blocks: Bool[Tensor, "1 1 Q K"]) -> tuple[Int[Tensor, "1 1 Q"], Int[Tensor, "1 1 Q K"]]:
    """How many key blocks each query block has, and their indices, the others after them."""
    order = torch.argsort(blocks.int(), dim=-1, descending=True, stable=True)
    return blocks.sum(-1).int(), order.int().contiguous()


@functools.cache
def _kernel(device: str) -> Callable[..., Tensor]:
    """The attention function: compiled once on a GPU. On a CPU, where it serves to check the mask, as written."""
    from torch.nn.attention.flex_attention import flex_attention

    written: Any = flex_attention
    return written if device == "cpu" else torch.compile(written)


def layout_for(setting: Attention, model: Any) -> Callable[..., SharedPrompts]:
    """Return the layout that trains a model: which kernel computes its attention.

    Under ``auto``, flex attention is taken on a GPU if it agrees there with the other way (:func:`disagreement`); if it
    does not, or cannot be compiled, the log says why.

    Raises:
        UsageError: flex attention was asked for and does not work.
    """
    weight = next(model.parameters())
    if setting == "sdpa" or (setting == "auto" and weight.device.type != "cuda"):
        return prompts_layout
    config = model.config.get_text_config()
    heads = config.num_attention_heads
    shared = getattr(config, "num_key_value_heads", None) or heads
    dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    reason = disagreement(heads, shared, dim, weight.dtype, weight.device)
    if not reason:
        return FlexPrompts
    if setting == "flex":
        raise UsageError(f'model.attention = "flex" does not work here, set "sdpa": {reason}')
    logging.getLogger(__name__).warning("flex attention does not work here and sdpa is used: %s", reason)
    return prompts_layout


@torch.enable_grad()
def disagreement(heads: int, shared: int, dim: int, dtype: torch.dtype, device: torch.device) -> str:
    """Say why flex attention cannot stand in for padded rows, of which it is tried on some; nothing if it can.

    Both ways attend over the same random input, with and without a window, and hand back gradients.

    Args:
        heads, shared: query and key heads.
        dim: size of a head.
        dtype, device: of the model.
    """
    generator = torch.Generator().manual_seed(0)
    prompts, responses = ([torch.zeros(n, dtype=torch.int64) for n in sizes] for sizes in ((150, 70), (40, 1, 200, 90)))
    ways = [way(prompts, responses, [0, 0, 1, 0], device) for way in (SharedPrompts, FlexPrompts)]
    size = len(ways[0].tokens)
    q, k, v, upstream = (
        torch.randn(1, h, size, dim, generator=generator).to(device, dtype) for h in (heads, shared, shared, heads)
    )
    try:
        for window in (None, 32):
            found = []
            for way in ways:
                inputs = [x.detach().requires_grad_() for x in (q, k, v)]
                out = way.attend(0, inputs[0], inputs[1], inputs[2], None, window)
                out.backward(upstream.transpose(1, 2))
                found.append([out.detach(), *(x.grad for x in inputs if x.grad is not None)])
            for a, b in zip(*found, strict=True):
                # Rounded to the model's precision on either side; sums over hundreds of tokens add their share.
                worst = float((a - b).abs().max() / a.abs().max())
                if not worst <= 16 * torch.finfo(dtype).eps:
                    return f"its results differ by {worst:.2g} of the largest"
    except Exception as error:  # compilers and drivers raise whatever they trip over
        return (str(error).strip() or type(error).__name__).splitlines()[0]
    return ""
