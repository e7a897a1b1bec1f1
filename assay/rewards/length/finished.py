"""A reward that a response has to come to its end for."""

from __future__ import annotations

from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.registry import part
from assay.rewards.wrapped import Around, terms_of, valid_in


@part("reward", "finished")
class Finished(Around):
    """R_i = r_i of the inner reward where the response ended by itself, ``unfinished`` where a limit cut it off.

    Source: the short window of DRIVE's first stage (arXiv 2511.06307), whose overlong responses earn 0.

    Args:
        reward: the inner one.
        unfinished: what a response that was cut off earns.
    """

    def __init__(self, reward: Any = "verdict", unfinished: float = 0.0):
        super().__init__({"reward": reward})
        self.unfinished = unfinished

    def __call__(self, batch: Batch) -> Reward:
        found = self.found(batch)
        cut = torch.tensor([episode.truncated for episode in batch.episodes])
        values = torch.where(cut, torch.full_like(found["reward"].values, self.unfinished), found["reward"].values)
        tokens = found["reward"].tokens
        if tokens is not None:
            tokens = torch.where(cut[:, None], torch.zeros_like(tokens), tokens)
        return Reward(values, tokens, valid_in(found, batch), terms_of(found) | {"cut": cut.to(values)})
