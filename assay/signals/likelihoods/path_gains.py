"""How much each beginning of a response helps to go on as a good chain of thought does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.registry import part
from assay.signals.base import Models
from assay.signals.likelihood import ReferenceLikelihood
from assay.signals.likelihood_value import first, value
from assay.types import Ask, Episode, Group

CHAINS = "chains"
"""Key of ``episode.meta``: token ids of each chain, without its answer."""


@part("signal", "path_gains")
@dataclass(frozen=True, slots=True)
class PathGains:
    """Signal ``path_gains`` ``(N, M)``: r_1 .. r_m of each response; NaN after them, and where nothing can be told.

    The reasoning z is cut into m <= ``most`` steps of as equal length as there is, and so is o*, the chain in
    ``meta["chains"]`` after which the reference y* is likeliest (the first of equals). With p_i the first i steps of z
    and s_t what o* has from its step t on:

        r_i = max_t [log pi(s_t | x, p_i) - log pi(s_t | x, mask_i)]  for i < m,      r_m = log pi(y* | x, z)

    each divided by the number of tokens it is over. mask_i is p_i with every token replaced by the model's padding
    token, which takes out how likely s_t is by itself; nothing at all, for a policy without one. What does not fit into
    the context or is impossible is left out of the maximum; if nothing is left, or there is no chain, r_i = 0. All by
    the policy as it is before the update.

    Args:
        likelihood: of the reference after the reasoning.
        most: steps, at least 1. The number of probes goes with its square.

    Raises:
        UsageError: ``most`` below 1.
    """

    likelihood: ReferenceLikelihood = field(default_factory=ReferenceLikelihood)
    most: int = 4

    whole = True

    def __post_init__(self) -> None:
        if self.most < 1:
            raise UsageError(f"signal 'path_gains': most {self.most} must be at least 1")

    @property
    def name(self) -> str:
        return "path_gains"

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N M"]:
        final = value(first(self.likelihood(batch, models)), "avg_logprob")
        best = self.best(batch, models)
        context = getattr(models.policy, "context", None)
        steps, at, what, owner = [], [], [], []
        for i, episode in enumerate(batch.episodes):
            [end] = self.likelihood.points(episode, batch.tasks[i], models) or [0]
            mine = borders(end, self.most)
            steps.append(len(mine))
            chain = best.get(int(batch.prompt_group[i]))
            starts = [0, *borders(len(chain), self.most)[:-1]] if chain is not None else []
            pairs = [
                (k, p, chain[s:])
                for k, p in enumerate(mine[:-1])
                for s in starts
                if chain is not None and (context is None or len(episode.prompt) + p + len(chain) - s <= context)
            ]
            owner.append([k for k, _, _ in pairs])
            at.append([p for _, p, _ in pairs])
            what.append([s for _, _, s in pairs])
        gain = per_token(models.continuations(batch, at, what)) - per_token(self.masked(batch, at, what, models))
        out = torch.full((len(batch), max(steps, default=0)), torch.nan, dtype=gain.dtype)
        for i, m in enumerate(steps):
            if m == 0 or bool(final[i].isnan()):
                continue
            out[i, : m - 1] = -torch.inf
            for j, k in enumerate(owner[i]):
                if bool(gain[i, j].isfinite()):
                    out[i, k] = torch.maximum(out[i, k], gain[i, j])
            out[i, : m - 1] = torch.where(out[i, : m - 1].isinf(), 0, out[i, : m - 1])
            out[i, m - 1] = final[i]
        return out

    def masked(self, batch: Batch, at: Any, what: Any, models: Models) -> Float[Tensor, "N K A"]:
        """Return the log-probabilities of the same texts after prefixes without content."""
        pad = getattr(getattr(models.policy, "tokenizer", None), "pad_token_id", None)
        if pad is None:
            return models.continuations(batch, [[0] * len(row) for row in at], what)
        blank = [
            Episode(e.prompt, np.full(len(e.tokens), pad, dtype=np.int64), e.mask, None, "", e.stop)
            for e in batch.episodes
        ]
        groups = [Group(Ask(task, 1), (e,)) for task, e in zip(batch.tasks, blank, strict=True)]
        return models.continuations(Batch.from_groups(groups, batch.logprobs.dtype), at, what)

    def best(self, batch: Batch, models: Models) -> dict[int, np.ndarray]:
        """Return the chain of each prompt group after which the reference is likeliest."""
        rows: dict[int, int] = {}
        for i, group in enumerate(batch.prompt_group.tolist()):
            if batch.episodes[i].meta.get(CHAINS):
                rows.setdefault(group, i)
        found = [(group, i, chain) for group, i in rows.items() for chain in batch.episodes[i].meta[CHAINS]]
        if not found:
            return {}
        groups = []
        for _, i, chain in found:
            episode = Episode(batch.episodes[i].prompt, chain, np.ones(len(chain), dtype=bool), None, "", "stop")
            groups.append(Group(Ask(batch.tasks[i], 1), (episode,)))
        after = ReferenceLikelihood("response", self.likelihood.open, self.likelihood.close, self.likelihood.closed)
        scores = value(first(after(Batch.from_groups(groups, batch.logprobs.dtype), models)), "logprob")
        best: dict[int, tuple[float, np.ndarray]] = {}
        for (group, _, chain), score in zip(found, scores.tolist(), strict=True):
            if score == score and (group not in best or score > best[group][0]):
                best[group] = (score, chain)
        return {group: chain for group, (_, chain) in best.items()}


def borders(length: int, most: int) -> list[int]:
    """Return where each of min(most, length) steps of as equal length as there is ends."""
    m = min(most, length)
    return [(k + 1) * length // m for k in range(m)]


def per_token(logprobs: Float[Tensor, "N K A"]) -> Float[Tensor, "N K"]:
    """Mean over the tokens of each text; NaN where there is none."""
    return logprobs.nanmean(-1)
