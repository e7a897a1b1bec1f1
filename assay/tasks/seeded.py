"""Randomness addressed by integers: the same seed and index give the same draw on every machine, in any order."""

from __future__ import annotations

import functools

import numpy as np

from assay.errors import UsageError


def generator(seed: int, *index: int) -> np.random.Generator:
    """Return the generator that belongs to ``(seed, *index)``; all non-negative."""
    return np.random.default_rng([seed, *index])


@functools.lru_cache(maxsize=16)
def permutation(size: int, seed: int, *index: int) -> np.ndarray:
    """Return the permutation of ``range(size)`` that belongs to ``(seed, *index)``, ``(size,)`` int64, read-only."""
    order = generator(seed, *index).permutation(size)
    order.flags.writeable = False
    return order


def check_seed(where: str, seed: int) -> None:
    """Raise UsageError for a seed that is negative or beyond 63 bits."""
    if seed < 0:
        raise UsageError(f"{where}: seed {seed} is negative; use 0 or more")
    if seed >= 2**63:
        raise UsageError(f"{where}: a seed of {seed.bit_length()} bits is too large; use one below 2^63")


def check_index(index: int, size: int | None) -> int:
    """Return ``index`` if a source of ``size`` tasks has it; raise IndexError otherwise."""
    if index < 0 or (size is not None and index >= size):
        raise IndexError(f"task {index} of a source with {'no end' if size is None else f'{size} tasks'}")
    return index
