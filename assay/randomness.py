"""Named random generators, all derived from the run's seed, all in the checkpoint."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np
import torch


def same_bits() -> None:
    """Let torch and cuBLAS take kernels whose results are the same each time; call it before a GPU is used.

    What has no such kernel runs as it is, and torch warns of it.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)


class Randomness:
    """One NumPy generator per purpose, so that drawing more for one purpose never shifts another; and torch's own."""

    def __init__(self, seed: int):
        self.seed = seed
        self._generators: dict[str, np.random.Generator] = {}
        torch.manual_seed(seed)

    def __call__(self, name: str) -> np.random.Generator:
        """Return the generator for ``name``, made on first use."""
        if name not in self._generators:
            self._generators[name] = self.fresh(name)
        return self._generators[name]

    def fresh(self, name: str) -> np.random.Generator:
        """Return a new generator for something done once: the same draws however often it is begun again."""
        key = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
        return np.random.default_rng([self.seed, key])

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {
            "numpy": {name: g.bit_generator.state for name, g in self._generators.items()},
            "torch": torch.get_rng_state(),
        }
        if torch.cuda.is_available():
            state["cuda"] = torch.cuda.get_rng_state_all()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        # One that was first used after the state was taken is to start afresh.
        self._generators.clear()
        for name, generator in state["numpy"].items():
            self(name).bit_generator.state = generator
        torch.set_rng_state(state["torch"])
        if "cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["cuda"])
