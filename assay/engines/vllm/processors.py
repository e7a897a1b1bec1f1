"""What we add to vLLM's sampler: log-probabilities after temperature and before truncation, entropies, catalogues.

vLLM can return log-probabilities before temperature or after top-p and top-k, but not what lies between. A processor of
logits runs just there. It subtracts from each row its log-sum-exp, which leaves the distribution alone, so that with
``logprobs_mode = "processed_logits"`` what is returned for a token that was drawn is its log-probability after
temperature, before truncation. Greedy requests skip that stage; for them another processor does it before, at
temperature 1.

In this process the two also look up, by the tag a request carries, where its entropies go and what it is confined to.
A server runs them too: ``--logits-processors assay.engines.vllm.processors:Tempered ...``.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.engines.trie import Trie

TAG = "assay_row"
"""Key of ``SamplingParams.extra_args`` under which a request names its entry in :data:`WATCHED`."""

NAMES = ("Tempered", "Greedy")
"""What this module makes when asked for: classes of vLLM's, which is imported only then."""

LOWEST = 1e-5
"""Temperatures below are greedy, in vLLM's sampler."""

ROWS = 64
"""Rows whose probabilities are held at once."""


@dataclass(slots=True)
class Watched:
    """A response in the making.

    Attributes:
        within: what it is confined to.
        end: token forced once it is complete.
        entropies: by position, in nats.
        node: of ``within``, after ``read`` tokens.
    """

    within: Trie | None = None
    end: int = 0
    entropies: dict[int, float] = field(default_factory=dict)
    node: int = 0
    read: int = 0

    def allowed(self, tokens: list[int], vocabulary: int) -> np.ndarray:
        """Return which tokens may come after ``tokens``, ``(V,)``."""
        assert self.within is not None
        for token in tokens[self.read :]:
            self.node = int(self.within.follow(np.array([self.node]), np.array([token]))[0])
        self.read = len(tokens)
        if self.within.complete(np.array([self.node]))[0]:
            only = np.zeros(vocabulary, dtype=bool)
            only[self.end] = True
            return only
        return self.within.mask(np.array([self.node]), vocabulary)[0]


WATCHED: dict[int, Watched] = {}
"""Responses of this process by tag, from before they are asked for until they are there."""


def normalise(logits: Float[Tensor, "B V"], entropies: bool) -> list[float]:
    """Turn logits into log-probabilities in place; return the entropies in nats, or nothing.

    With z the logits less their largest, S = sum_v exp z_v: log p_v = z_v - log S, and the entropy is
    log S - sum_v z_v exp(z_v) / S, so that exponentials are taken once.
    """
    found: list[float] = []
    for z in logits.split(ROWS):
        z.sub_(z.amax(-1, keepdim=True))
        chances = z.exp()
        total = chances.sum(-1)
        if entropies:
            mean = chances.mul_(z).sum(-1)
            if bool(mean.isnan().any()):  # of tokens that the model holds for impossible: 0 times minus infinity
                mean = (z.exp() * z.clamp(min=-1e4)).sum(-1)
            found += (total.log() - mean / total).tolist()
        z.sub_(total.log()[:, None])
    return found


@functools.cache
def _classes() -> dict[str, Any]:
    from vllm.v1.sample.logits_processor import LogitsProcessor, process_dict_updates

    class Normalised(LogitsProcessor):
        """Normalises rows, each known by its entry and its tokens so far, a list that vLLM goes on filling."""

        greedy = False

        def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool):
            self.rows: dict[int, tuple[Watched | None, list[int]]] = {}

        def is_argmax_invariant(self) -> bool:
            return not self.greedy

        def update_state(self, batch_update: Any) -> None:
            process_dict_updates(self.rows, batch_update, self._row)

        def _row(self, params: Any, prompt: Any, tokens: list[int]) -> tuple[Watched | None, list[int]] | None:
            if (params.temperature < LOWEST) != self.greedy:
                return None
            return WATCHED.get((params.extra_args or {}).get(TAG, -1)), tokens

        def apply(self, logits: Tensor) -> Tensor:
            if not self.rows:
                return logits
            at = sorted(self.rows)
            watched = any(self.rows[i][0] is not None for i in at)
            if self.greedy and len(at) < len(logits):
                part = logits[at]
                found = normalise(part, watched)
                logits[at] = part
                entropies = dict(zip(at, found, strict=False))
            else:
                # The others are greedy ones, which are normalised already: to do it again changes nothing.
                entropies = dict(enumerate(normalise(logits, watched)))
            for i in at:
                row, tokens = self.rows[i]
                if row is None:
                    continue
                row.entropies[len(tokens)] = entropies[i]
                if row.within is not None:
                    allowed = torch.from_numpy(row.allowed(tokens, logits.shape[1])).to(logits.device)
                    logits[i].masked_fill_(~allowed, -torch.inf)
            return logits

    made = {"Tempered": type("Tempered", (Normalised,), {"greedy": False})}
    made["Greedy"] = type("Greedy", (Normalised,), {"greedy": True})
    return made


def __getattr__(name: str) -> Any:
    if name in NAMES:
        return _classes()[name]
    raise AttributeError(name)
