"""A policy's weights on their way to other processes: packed into blocks of bytes, and put back into a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.errors import RunError

BLOCK = 256 << 20
"""Bytes of a block, unless one tensor is larger."""


What = tuple[tuple[str, str, tuple[int, ...]], ...]
"""Name, type as torch writes it, and shape of tensors that are laid end to end."""


@dataclass(frozen=True, slots=True)
class Block:
    """Some tensors laid end to end.

    Attributes:
        what: they are.
        data: their bytes ``(B,)`` uint8, in the same order.
    """

    what: What
    data: np.ndarray

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield names and tensors, one copied at a time, as the block may be memory that others read."""
        return unpacked(self.what, lambda start, end: torch.from_numpy(self.data[start:end].copy()))


def unpacked(what: What, cut: Callable[[int, int], Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Yield names and tensors of a block of which ``cut`` copies the bytes from one place up to another."""
    at = 0
    for name, dtype, shape in what:
        size, kind = _nbytes(dtype, shape), getattr(torch, dtype)
        yield name, cut(at, at + size).view(kind).reshape(shape) if size else torch.empty(shape, dtype=kind)
        at += size


def nbytes(what: What) -> int:
    """Bytes of a block."""
    return sum(_nbytes(dtype, shape) for _, dtype, shape in what)


def _nbytes(dtype: str, shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64)) * int(getattr(torch, dtype).itemsize)


def packed(
    weights: Iterable[tuple[str, Tensor]], size: int = BLOCK, device: str | torch.device = "cpu"
) -> Iterator[tuple[What, Tensor]]:
    """Lay tensors end to end on a device, in order, in blocks of at most ``size`` bytes, or one larger tensor.

    Each block is a copy, and stays as it is when the policy goes on learning.
    """
    what: list[tuple[str, str, tuple[int, ...]]] = []
    parts: list[Tensor] = []
    held = 0
    for name, weight in weights:
        part = weight.detach().to(device).contiguous().reshape(-1).view(torch.uint8)
        if parts and held + len(part) > size:
            yield tuple(what), torch.cat(parts)
            what, parts, held = [], [], 0
        what.append((name, str(weight.dtype).removeprefix("torch."), tuple(weight.shape)))
        parts.append(part)
        held += len(part)
    if parts:
        yield tuple(what), torch.cat(parts)


def blocks(weights: Iterable[tuple[str, Tensor]], size: int = BLOCK) -> Iterator[Block]:
    """Pack tensors into blocks, see :func:`packed`."""
    for what, data in packed(weights, size):
        yield Block(what, data.numpy())


@dataclass(frozen=True, slots=True)
class Sent:
    """What was packed, for an engine to follow as it would follow the policy itself: one that asks for names alone."""

    blocks: Sequence[Block]

    def merged_state(self) -> Iterator[tuple[str, Tensor]]:
        """See :meth:`assay.policies.causal_lm.CausalLM.merged_state`; a copy of one tensor at a time."""
        return (named for block in self.blocks for named in block.tensors())

    @property
    def layout(self) -> list[What]:
        """What is in each block."""
        return [block.what for block in self.blocks]


def check(layout: Iterable[What], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise RunError for other weights than those of these names and shapes."""
    given = {name: shape for what in layout for name, _, shape in what}
    _refuse([name for name in sorted(given.keys() | shapes) if given.get(name) != shapes.get(name)])


def _refuse(odd: Sequence[str]) -> None:
    if odd:
        raise RunError(f"an engine was sent the weights of another model: {odd[0]} does not match")


@torch.no_grad()
def take(model: Any, weights: Iterable[tuple[str, Tensor]]) -> None:
    """Put weights, named as the model's files name them, into a transformers model without adapters.

    Raises:
        RunError: they are not this model's.
    """
    own = dict(model.named_parameters()) | {k: v for k, v in model.state_dict().items() if k not in _tied(model)}
    given = dict(_renamed(model, weights))
    odd = sorted((own.keys() ^ given.keys()) - _ignored(model))
    odd = odd or [k for k, v in given.items() if k in own and own[k].shape != v.shape]
    _refuse(odd)
    for name, weight in given.items():
        if name in own:
            own[name].copy_(weight)


def _tied(model: Any) -> set[str]:
    """Second names of weights that the model shares; a state dict has them, the weights that are sent do not."""
    return model.state_dict().keys() - dict(model.named_parameters()).keys() - dict(model.named_buffers()).keys()


def _ignored(model: Any) -> set[str]:
    return set(getattr(model, "_keys_to_ignore_on_save", None) or ())


def _renamed(model: Any, weights: Iterable[tuple[str, Tensor]]) -> Mapping[str, Tensor]:
    """The weights under the model's own names, where its files use others, such as a name for each expert."""
    from assay.policies.merge import _renamed as has_other_names

    if not has_other_names(model):
        return dict(weights)
    from assay.policies.loading import no_progress_bar

    with no_progress_bar():
        made = type(model).from_pretrained(None, config=model.config, state_dict=dict(weights), dtype=model.dtype)
    return {k: v for k, v in made.state_dict().items() if k not in _tied(made)}
