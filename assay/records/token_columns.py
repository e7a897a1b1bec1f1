"""What is kept of single tokens: columns of the rollout store that hold a list for each sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from assay.batch import Batch

PREFIX = "token/"

Decode = Callable[[Sequence[int]], str]


def token_columns(batch: Batch, decode: Decode, more: Mapping[str, Tensor]) -> dict[str, list[Any]]:
    """Return one list a sample and column, ``None`` where nothing is known of the sample.

    ``token/text`` is each token alone, so that a part of a character is a replacement character; ``token/advantage``,
    ``token/reward`` where rewards are placed on tokens; ``token/logprob`` and ``token/entropy`` (nats) as sampled;
    ``token/origin`` as :class:`assay.types.Origin`; and every signal with a number for each token, under its name.

    Args:
        batch: valued.
        decode: reads response tokens.
        more: further quantities ``(N, T)`` by name.
    """
    ends = [len(e.tokens) for e in batch.episodes]
    pieces = {t: decode([t]) for t in {t for e in batch.episodes for t in e.tokens.tolist()}}
    out: dict[str, list[Any]] = {
        "text": [[_storable(pieces[t]) for t in e.tokens.tolist()] for e in batch.episodes],
        "logprob": [None if e.logprobs is None else e.logprobs.tolist() for e in batch.episodes],
        "entropy": [None if e.entropies is None else e.entropies.tolist() for e in batch.episodes],
        "origin": [
            [0] * n if e.origins is None else e.origins.tolist() for n, e in zip(ends, batch.episodes, strict=True)
        ],
    }
    placed = {} if batch.token_rewards is None else {"reward": batch.token_rewards}
    signals = {k: v for k, v in batch.signals.items() if k not in batch.whole and v.shape == batch.tokens.shape}
    for name, values in {"advantage": batch.advantages, **placed, **signals, **more}.items():
        numbers = values.detach().to("cpu", torch.float32).tolist()
        out[name] = [row[:n] for row, n in zip(numbers, ends, strict=True)]
    return {PREFIX + name: rows for name, rows in out.items() if any(row is not None for row in rows)}


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
