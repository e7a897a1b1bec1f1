"""The transformers engine as a server needs it: prompts that are tokens already, and tokens told as they are drawn."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.engines.stream import Row
from assay.engines.trie import Trie
from assay.errors import RunError
from assay.policies.attention import KeyValueCache
from assay.types import Episode, Prompt

Drawn = Callable[[int, int, int, float], None]
"""Called with a request's number, a response's number, a token and its log-probability."""


class Tokens(str):
    """A prompt as token ids."""

    ids: np.ndarray

    def __new__(cls, ids: Sequence[int] | np.ndarray) -> Tokens:
        made = super().__new__(cls, f"{len(ids)} tokens")
        made.ids = np.asarray(ids, dtype=np.int64)
        return made


class ServedEngine(HFEngine):
    """Decodes as :class:`HFEngine` does, the same tokens for the same seed.

    Attributes:
        drawn: told of every token at once; nobody if ``None``.
        stopping: once set, what is being generated ends with a RunError at its next token.
    """

    def __init__(self, engine: HFEngine):
        super().__init__(engine.policy, engine.max_rows)
        self.drawn: Drawn | None = None
        self.stopping = threading.Event()
        self._rows: list[Row] = []
        self._order = np.zeros(0, dtype=np.int64)

    def encode(self, prompt: Prompt) -> np.ndarray:
        return prompt.ids if isinstance(prompt, Tokens) else super().encode(prompt)

    def _decode(
        self,
        rows: list[Row],
        sampling: Sampling,
        within: Trie | None,
        noise: list[np.ndarray],
        out: list[list[Episode | None]],
    ) -> None:
        self._rows, self._order = rows, np.arange(len(rows))
        super()._decode(rows, sampling, within, noise, out)

    def _sample(self, *inputs: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        if self.stopping.is_set():
            raise RunError("the server is stopping")
        token, logprob, entropy = super()._sample(*inputs)
        if self.drawn is not None:
            for i, t, value in zip(self._order.tolist(), token.tolist(), logprob.tolist(), strict=True):
                self.drawn(self._rows[i].request, self._rows[i].sample, t, value)
        return token, logprob, entropy

    def _compact(self, cache: KeyValueCache, done: torch.Tensor, column: int) -> torch.Tensor:  # type: ignore[override]
        keep = HFEngine._compact(cache, done, column)
        self._order = self._order[keep.cpu().numpy()]
        return keep
