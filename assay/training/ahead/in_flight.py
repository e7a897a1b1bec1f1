"""What has been asked but not yet learned from, as plain data that ``torch.load`` reads without running code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from assay.errors import UsageError
from assay.types import Ask, Drawing, Episode, Fork, Group, Path, Span, Task, ToolCall, Turn, Verdict

RECORDS: dict[str, Any] = {
    c.__name__: c for c in (Ask, Drawing, Episode, Fork, Group, Path, Span, Task, ToolCall, Turn, Verdict)
}
ATOMS = (type(None), bool, float, str)
EXACT: dict[str, Any] = {"int": int, "Fraction": Fraction, "Decimal": Decimal}
"""Numbers that are written as text, integers where they are large."""


def pack(value: Any) -> dict[str, Any]:
    """Return asks, groups and what they are made of as numbers, text, lists, dictionaries and one tensor per dtype.

    Arrays are joined by dtype, each distinct one once, so that a checkpoint holds few tensors however many responses
    there are. ``unpack(pack(value)) == value``, types included, but that any mapping becomes a dictionary.

    Raises:
        UsageError: something is no plain data: it names where and what.
    """
    packer = _Packer()
    tree = packer.pack(value, type(value).__name__)
    arrays = {name: torch.from_numpy(np.concatenate(parts)) for name, parts in packer.arrays.items()}
    return {"tree": tree, "arrays": arrays}


def unpack(packed: Mapping[str, Any]) -> Any:
    """Return what :func:`pack` was given."""
    arrays = {name: tensor.numpy() for name, tensor in packed["arrays"].items()}
    return _unpack(packed["tree"], arrays, {})


class _Packer:
    """Everything but :data:`ATOMS` becomes a list that begins with the name of its kind."""

    def __init__(self) -> None:
        self.arrays: dict[str, list[np.ndarray]] = {}
        self._sizes: dict[str, int] = {}
        # With the array itself, whose id would otherwise be free for another one.
        self._known: dict[int, tuple[Any, list[Any]]] = {}

    def pack(self, value: Any, where: str) -> Any:
        kind = type(value).__name__
        if type(value) in ATOMS or (type(value) is int and abs(value) < 2**31):
            return value
        if isinstance(value, str) and not isinstance(value, Enum):
            return str(value)
        if RECORDS.get(kind) is type(value):
            return [kind, *(self.pack(getattr(value, f.name), f"{where}.{f.name}") for f in fields(value))]
        if EXACT.get(kind) is type(value):
            return [kind, str(value)]
        if type(value) in (list, tuple, set, frozenset):
            return [kind, *(self.pack(item, f"{where}[{i}]") for i, item in enumerate(value))]
        if isinstance(value, Mapping):
            pairs = ((self.pack(k, f"a key of {where}"), self.pack(v, f"{where}[{k!r}]")) for k, v in value.items())
            return ["dict", *(item for pair in pairs for item in pair)]
        if type(value) is bytes:
            return ["bytes", *self._put(np.frombuffer(value, np.uint8))]
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            if id(value) not in self._known:
                self._known[id(value)] = value, ["ndarray", *self._put(value)]
            return self._known[id(value)][1]
        if isinstance(value, np.generic) and value.dtype.kind in "biufc":
            return ["scalar", *self._put(np.asarray(value))]
        raise UsageError(
            f"overlap.staleness above 0 keeps in checkpoints what is asked ahead, but {where} is a {kind}, no plain "
            "data; use numbers, text, lists and dictionaries, or staleness 0"
        )

    def _put(self, array: np.ndarray) -> tuple[str, int, list[int]]:
        """Note an array down; return where it begins in the one of its dtype, and its shape."""
        name = array.dtype.name
        start = self._sizes.get(name, 0)
        self.arrays.setdefault(name, []).append(array.ravel())
        self._sizes[name] = start + array.size
        return name, start, list(array.shape)


def _unpack(tree: Any, arrays: Mapping[str, np.ndarray], known: dict[Any, np.ndarray]) -> Any:
    if not isinstance(tree, list):
        return tree
    kind, *inside = tree
    if kind in ("ndarray", "scalar", "bytes"):
        name, start, shape = inside
        size = int(np.prod(shape, dtype=np.int64))
        # Copied, so that no response keeps all others alive.
        found = known.setdefault((name, start, *shape), arrays[name][start : start + size].reshape(shape).copy())
        return found if kind == "ndarray" else found.tobytes() if kind == "bytes" else found[()]
    values = [_unpack(item, arrays, known) for item in inside]
    if kind in RECORDS:
        return RECORDS[kind](*values)
    if kind in EXACT:
        return EXACT[kind](*values)
    if kind == "dict":
        return dict(zip(values[::2], values[1::2], strict=True))
    return {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[kind](values)
