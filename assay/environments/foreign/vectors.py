"""Values of Gymnasium's spaces as vectors, which a policy of numbers reads and decides on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from assay.errors import UsageError


def sizes(world: Any) -> tuple[int, int]:
    """Return how many numbers an observation and an action of a world are.

    Raises:
        UsageError: they are no numbers.
    """
    seen, done = world.observation_space, world.action_space
    for what, space in (("observations", seen), ("actions", done)):
        if not (_box(space) or _discrete(space)):
            raise UsageError(f"a policy of numbers needs {what} of a Box or Discrete space, not of {space}; wrap it")
    if _box(done) and not (np.isfinite(done.low).all() and np.isfinite(done.high).all()):
        raise UsageError(f"a policy of numbers needs actions within bounds, not those of {done}; wrap it")
    return (int(seen.n) if _discrete(seen) else math.prod(seen.shape)), math.prod(done.shape) if _box(done) else 1


def vector(space: Any, value: Any) -> np.ndarray:
    """Return an observation as float32 ``(S,)``: a box's numbers, or of n places the one that it is marked by 1."""
    if _discrete(space):
        return np.eye(int(space.n), dtype=np.float32)[int(value) - int(space.start)]
    return np.asarray(value, dtype=np.float32).reshape(-1)


def taken(space: Any, decided: np.ndarray) -> Any:
    """Return the action of a space that numbers ``(A,)`` stand for; beyond [-1, 1] they count as the bound.

    A box's bounds are -1 and 1, and what lies between is linear. [-1, 1] is divided evenly among n discrete actions.
    """
    share = (np.clip(np.asarray(decided, dtype=np.float64), -1.0, 1.0) + 1) / 2
    if _discrete(space):
        return int(space.start) + min(int(share[0] * int(space.n)), int(space.n) - 1)
    return (space.low + share.reshape(space.shape) * (space.high - space.low)).astype(space.dtype)


def decided(space: Any, value: Any) -> np.ndarray:
    """Return numbers in [-1, 1] ``(A,)`` that stand for an action: what :func:`taken` undoes."""
    if _discrete(space):
        return np.array([(2 * (int(value) - int(space.start)) + 1) / int(space.n) - 1], dtype=np.float32)
    low, high = np.asarray(space.low, dtype=np.float64), np.asarray(space.high, dtype=np.float64)
    return (2 * (np.asarray(value) - low) / (high - low) - 1).reshape(-1).astype(np.float32)


def _box(space: Any) -> bool:
    return hasattr(space, "low") and hasattr(space, "high")


def _discrete(space: Any) -> bool:
    return hasattr(space, "n") and hasattr(space, "start")
