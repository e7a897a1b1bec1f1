"""A policy's hidden states after the tokens of responses."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, pad
from assay.policies.base import PolicyOutput
from assay.types import Ask, Episode, Group, Task

LAST = ("hidden",)
"""The last layer alone."""


@runtime_checkable
class Stateful(Protocol):
    """What hidden states are read of: a policy (:class:`assay.policies.base.Policy`), or less than one."""

    @property
    def module(self) -> torch.nn.Module: ...

    @property
    def width(self) -> int: ...

    def forward(self, batch: Batch, live: Collection[str] = (), temperature: float = 1.0) -> PolicyOutput: ...

    def micro_batches(self, batch: Batch, budget: int) -> list[Any]: ...


def width(policy: Stateful, layers: Sequence[str] = LAST) -> int:
    """Return the length of what :func:`states` returns: of hidden states; nodes and leaves of a tabular policy."""
    tree = getattr(policy, "tree", None)
    return policy.width * len(layers) if tree is None else policy.width + len(tree)


def states(
    policy: Stateful, episodes: Sequence[Episode], budget: int = 8192, layers: Sequence[str] = LAST
) -> list[Float[Tensor, "T D"]]:
    """Return the hidden state after each token of each response: what the next token would be predicted from.

    Of a tabular policy it is the node or leaf that the token leads to, as a one-hot vector. States have a gradient
    where the policy's parameters do and autograd is on.

    Args:
        policy: whose states they are.
        episodes: prompts and responses.
        budget: tokens of a pass.
        layers: whose states stand beside each other, ``hidden`` or ``hidden@0.5``, see
            :data:`assay.policies.base.QUANTITIES`.
    """
    if not episodes:
        return []
    if (tree := getattr(policy, "tree", None)) is not None:
        tokens = pad([e.tokens for e in episodes], max(len(e.tokens) for e in episodes), np.int64)
        lengths = torch.tensor([len(e.tokens) for e in episodes])
        nodes = tree.walk(tokens, lengths, policy.starts([e.prompt for e in episodes]))  # type: ignore[attr-defined]
        after = tree.children[nodes, tokens]
        places = torch.where(after < 0, policy.width - 1 - after, after)
        table = torch.nn.functional.one_hot(places, width(policy)).float()
        return [row[:n] for row, n in zip(table, lengths.tolist(), strict=True)]
    batch = lengthened(episodes)
    out: list[Tensor] = [torch.zeros(0, width(policy, layers))] * len(episodes)
    for rows in policy.micro_batches(batch, budget):
        live = policy.forward(batch.rows(rows), set(layers)).live
        hidden = torch.cat([live[name].float() for name in layers], -1)
        for row, i in zip(hidden, rows.tolist(), strict=True):
            out[i] = row[1 : len(episodes[i].tokens) + 1].clone()
    return out


def lengthened(episodes: Sequence[Episode]) -> Batch:
    """Return a batch of the responses with one token more: the state after their last token is what predicts it."""
    longer = [np.concatenate([e.tokens, np.zeros(1, dtype=np.int64)]) for e in episodes]
    made = [
        Episode(e.prompt, t, np.ones(len(t), dtype=bool), None, "", e.stop)
        for e, t in zip(episodes, longer, strict=True)
    ]
    return Batch.from_groups([Group(Ask(Task("", ""), 1), (e,)) for e in made])
