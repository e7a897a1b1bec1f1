"""Advantages on a tree of responses: what each branch added to the value of the one before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.ops import outcome
from assay.registry import part


@part("credit", "branch_values")
@dataclass(frozen=True, slots=True)
class BranchValues:
    """A_it = V(k_{j+1}) - V(k_j) for tokens from branch point k_j to k_{j+1}, and R_i - V(k_m) after the last.

    The branch points that response i runs through are k_0 = 0 < k_1 < ... < k_m (``meta["nodes"]``; the prompt alone
    where an episode names none), and V is the mean outcome of the group's active responses that run through the same
    point, which is known by the tokens before it. Advantages of a response, one of each segment, add up to R_i - V(0).

    Of right responses, those longer than the shortest right one, b, lose after the last branch point k_c they share
    with it: A <- A - |A| (1 - ((L_b - k_c) / (L_i - k_c))^alpha).

    Source: ROSE (arXiv 2601.05053).

    Args:
        alpha: of the length term, at least 0; 0 leaves it out.

    Raises:
        UsageError: ``alpha`` negative.
    """

    alpha: float = 1.0

    group_relative = True
    level = "token"

    def __post_init__(self) -> None:
        if self.alpha < 0:
            raise UsageError(f"credit 'branch_values': alpha {self.alpha:g} must be at least 0")

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "mean outcome at the branch before", "normalisation": "none"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        out = torch.zeros_like(batch.advantages)
        rewards = outcome(batch)
        for g in batch.group.unique().tolist():
            rows = [i for i in torch.nonzero(batch.group == g)[:, 0].tolist() if bool(batch.active[i])]
            tokens = [batch.episodes[i].tokens for i in rows]
            nodes = [
                _nodes(batch.episodes[i].meta.get("nodes", (0,)), len(t)) for i, t in zip(rows, tokens, strict=True)
            ]
            right = [batch.verdicts[i].passed is True for i in rows]
            found = advantages(tokens, nodes, [float(rewards[i]) for i in rows], right, self.alpha)
            for i, values in zip(rows, found, strict=True):
                out[i, : len(values)] = torch.from_numpy(values).to(out)
        return torch.where(batch.mask, out, 0)


def advantages(
    tokens: Sequence[np.ndarray],
    nodes: Sequence[Sequence[int]],
    rewards: Sequence[float],
    right: Sequence[bool],
    alpha: float,
) -> list[np.ndarray]:
    """Return the advantages ``(T_i,)`` of one group, see :class:`BranchValues`.

    Args:
        tokens: of each response.
        nodes: after how many tokens each passes a branch point, 0 first.
        rewards: outcomes.
        right: which are right, so that their lengths compare.
        alpha: of the length term.
    """
    through: dict[bytes, list[float]] = {}
    keys = [[t[:k].tobytes() for k in ks] for t, ks in zip(tokens, nodes, strict=True)]
    for mine, reward in zip(keys, rewards, strict=True):
        for key in mine:
            through.setdefault(key, []).append(reward)
    value = {key: sum(r) / len(r) for key, r in through.items()}
    out = []
    for t, ks, mine, reward in zip(tokens, nodes, keys, rewards, strict=True):
        row = np.zeros(len(t))
        ends = [*ks[1:], len(t)]
        after = [*(value[key] for key in mine[1:]), reward]
        for start, end, key, later in zip(ks, ends, mine, after, strict=True):
            row[start:end] = later - value[key]
        out.append(row)
    good = [i for i, r in enumerate(right) if r]
    if not good or not alpha:
        return out
    shortest = min(good, key=lambda i: len(tokens[i]))
    for i in good:
        if i == shortest:
            continue
        shared = max(k for k, key in zip(nodes[i], keys[i], strict=True) if key in keys[shortest])
        rest = len(tokens[i]) - shared
        if rest > 0:  # responses of no tokens may be right too
            factor = 1 - ((len(tokens[shortest]) - shared) / rest) ** alpha
            out[i][shared:] -= np.abs(out[i][shared:]) * factor
    return out


def _nodes(found: Sequence[int], length: int) -> tuple[int, ...]:
    """The branch points within a response."""
    return tuple(sorted({0, *(k for k in found if k < length)}))
