"""Values of prefixes from the responses that share them, without a critic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.batch import Batch, pad
from assay.errors import UsageError
from assay.ops import broadcast, group_mean, group_std, outcome
from assay.registry import part


@part("credit", "tempo")
@dataclass(frozen=True, slots=True)
class Tempo:
    """A_it = ((R_i - mean_g R) + td_weight (V(s_t+1) - V(s_t))) / (std_g R + epsilon).

    s_t is what stands before token t, V(s) the mean reward of the group's active responses that begin with s. Where all
    that reach s go on alike the difference is zero: only at tokens where responses of the group part ways does the
    advantage differ from GRPO's. Along a response the differences add up to R_i - V(where it began).

    Source: TEMPO (arXiv 2509.18314), prefix-to-tree values and branch-gated temporal differences.

    Args:
        td_weight: of the temporal difference; 0 is GRPO.
        normalise: divide by the group's standard deviation.
        ddof, epsilon: of it, as in credit ``grpo``.
    """

    td_weight: float = 1.0
    normalise: bool = True
    ddof: int = 1
    epsilon: float = 1e-6

    group_relative = True
    level = "token"

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "group mean, prefix values", "normalisation": "group std" if self.normalise else "none"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        rewards = outcome(batch)
        centred = rewards - group_mean(rewards, batch.group, batch.active)
        total = broadcast(centred, batch) + self.td_weight * temporal_differences(batch, rewards)
        if self.normalise:
            total = total / (group_std(rewards, batch.group, batch.active, self.ddof) + self.epsilon)[:, None]
        return total


def temporal_differences(batch: Batch, rewards: Float[Tensor, "N"]) -> Float[Tensor, "N T"]:
    """V(s_t+1) - V(s_t) on learnable tokens of active samples, V the mean of ``rewards`` over those who share a prefix.

    A prefix is prompt and response together, so that a response that goes on from another's prefix shares it. The end
    of a response counts as a token: what was cut off is not the beginning of what went on.

    Raises:
        UsageError: an episode forks, so that its tokens do not stand behind its prompt.
    """
    if any(e.forks for e in batch.episodes):
        raise UsageError("credit 'tempo' cannot tell prefixes where an episode forks; keep its context whole")
    out = torch.zeros_like(batch.advantages)
    active = batch.active
    rows = [np.concatenate([e.prompt, e.tokens]) for e in batch.episodes]
    starts = torch.tensor([len(e.prompt) for e in batch.episodes], dtype=torch.int64)
    ends = torch.tensor([len(row) for row in rows], dtype=torch.int64)
    tokens = pad(rows, max(map(len, rows), default=0), np.int64)
    tokens = torch.where(torch.arange(tokens.shape[1]) < ends[:, None], tokens, -1)
    node = batch.group
    value = group_mean(rewards, node, active)
    # As long as a group goes on alike, as in its prompt, no value changes; nor where all that go on stand alone.
    for at in range(_parting(tokens, node), tokens.shape[1]):
        if not _shared(node, active, at < ends):
            break
        node = _numbered(node, tokens[:, at])
        following = group_mean(rewards, node, active)
        # A response's last token leads to its end, whose value is that of all that end there.
        ended = at + 1 >= ends
        if bool(ended.any()):
            whole = group_mean(rewards, _numbered(node, ended.long()), active)
            following = torch.where(ended, whole, following)
        here = ((at >= starts) & (at < ends)).nonzero()[:, 0]
        out[here, at - starts[here]] = (following - value)[here]
        value = following
    return torch.where(batch.mask & active[:, None], out, 0)


def _parting(tokens: Int[Tensor, "N T"], group: Int[Tensor, "N"]) -> int:
    """The place before the first at which the samples of some group are not all alike; T if they always are."""
    number = group.unique(return_inverse=True)[1]
    first = torch.full((len(group),), len(group)).scatter_reduce(0, number, torch.arange(len(group)), "amin")
    unlike = (tokens != tokens[first[number]]).any(0).nonzero()
    return max(int(unlike[0, 0]) - 1, 0) if len(unlike) else tokens.shape[1]


def _numbered(node: Int[Tensor, "N"], branch: Int[Tensor, "N"]) -> Int[Tensor, "N"]:
    """Return the child that each branch of a node is, from 0: equal where node and branch are."""
    number = branch.unique(return_inverse=True)[1]
    return (node * len(branch) + number).unique(return_inverse=True)[1]


def _shared(node: Int[Tensor, "N"], active: Bool[Tensor, "N"], on: Bool[Tensor, "N"]) -> bool:
    """Whether some active sample that goes on stands at the same node as another."""
    _, number, counts = node[active].unique(return_inverse=True, return_counts=True)
    return bool((counts[number] > 1)[on[active]].any())
