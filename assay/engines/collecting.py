"""From what was decoded, in tables with a row per response, to episodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from assay.engines.stream import Row
from assay.policies.causal_lm import CausalLM
from assay.types import Episode, Stop


def collect(
    policy: CausalLM,
    rows: Sequence[Row],
    tokens: Int[torch.Tensor, "B T"],
    logprobs: Float[torch.Tensor, "B T"],
    entropies: Float[torch.Tensor, "B T"],
    counts: Int[torch.Tensor, "B"],
    stopped: Bool[np.ndarray, "B"],
    out: list[list[Episode | None]],
    dead: Bool[torch.Tensor, "B"] | None = None,
) -> None:
    """Make the episodes, but for those of dead rows, and put each where its row belongs in ``out``.

    Args:
        counts: how long each response is.
        stopped: what ended neither by an end token nor for length.
    """
    lengths, left_out = counts.tolist(), [False] * len(rows) if dead is None else dead.tolist()
    responses = [ids[:n] for ids, n in zip(tokens.tolist(), lengths, strict=True)]
    texts = policy.tokenizer.batch_decode(responses, skip_special_tokens=True)
    ids, chosen, entropy = (x.cpu().numpy() for x in (tokens, logprobs, entropies))
    ends = set(policy.stop_ids)
    for i, (row, n) in enumerate(zip(rows, lengths, strict=True)):
        if left_out[i]:
            continue
        stop: Stop = "length"
        if n and responses[i][-1] in ends:
            stop = "eos"
        elif stopped[i]:
            stop = "stop"
        elif len(row.prompt) + n >= policy.context:
            stop = "context"
        # Copies, so that an episode kept for long does not keep the whole table.
        out[row.request][row.sample] = Episode(
            prompt=row.prompt,
            tokens=ids[i, :n].copy(),
            mask=np.ones(n, dtype=bool),
            logprobs=chosen[i, :n].copy(),
            entropies=entropy[i, :n].copy(),
            text=texts[i],
            stop=stop,
        )


def nothing(prompt: Int[np.ndarray, "P"], stop: Stop) -> Episode:
    """Return a response of no token, for which there is no room in the context, or none was asked for."""
    none = np.zeros(0, dtype=np.float32)
    return Episode(prompt, none.astype(np.int64), none.astype(bool), none, "", stop, entropies=none)
