"""Labels for every token from counting over solutions, and a value model trained on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from assay.batch import Batch
from assay.errors import UsageError
from assay.inference.heads.value_head import ValueHead
from assay.policies.base import Policy
from assay.rewards.step_models.states import states, width
from assay.rewards.step_models.training import descend
from assay.types import Ask, Episode, Group, Task


def prefix_values(tokens: Sequence[np.ndarray], correct: Sequence[bool]) -> list[np.ndarray]:
    """Return V_it = (right solutions that begin with y_i,1..t) / (solutions that do), ``(T_i,)`` for each i.

    A prefix is the same if its tokens are. Where a solution is alone with its prefix it is its own outcome; with one
    solution in all these are outcome labels. A prefix's label is the mean of its continuations', weighed by how many
    solutions take each.

    Args:
        tokens: of solutions to one problem.
        correct: their outcomes.
    """
    counts: dict[int, list[int]] = {}
    nodes: dict[tuple[int, int], int] = {}
    walks: list[list[int]] = []
    for row, right in zip(tokens, correct, strict=True):
        node, walk = 0, []
        for token in row.tolist():
            # A trie: a node is known by its parent and its token, which keeps this linear in the tokens.
            node = nodes.setdefault((node, token), len(nodes) + 1)
            tally = counts.setdefault(node, [0, 0])
            tally[0] += bool(right)
            tally[1] += 1
            walk.append(node)
        walks.append(walk)
    return [np.array([counts[n][0] / counts[n][1] for n in walk], dtype=np.float64) for walk in walks]


def surprise(policy: Policy, episodes: Sequence[Episode], budget: int = 8192) -> torch.Tensor:
    """Return the mean of -log pi(y_t | x, y_<t) over the tokens of all responses, with its gradient.

    Args:
        policy: whose language it is.
        episodes: prompts and responses.
        budget: tokens of a pass.
    """
    batch = Batch.from_groups([Group(Ask(Task("", ""), 1), (e,)) for e in episodes])
    parts = [batch.rows(rows) for rows in policy.micro_batches(batch, budget)]
    total = torch.stack([torch.where(p.mask, policy.forward(p).logprobs, 0).sum() for p in parts]).sum()
    return -total / batch.mask.sum()


@dataclass(frozen=True, slots=True)
class ValueTraining:
    """How a value model is trained: L = mean over response tokens of (f(x, y_<=t) - V_t)^2 - language log pi(y_t).

    Args:
        labels: ``tokens``: V_t of :func:`prefix_values`; ``outcome``: the solution's outcome on all of its tokens.
        loss: ``mse``, or ``bce``: cross entropy with V_t as a soft label.
        epochs, batch: passes over the solutions, and problems of an optimiser step.
        lr, backbone_lr: of AdamW, for the head and, above 0, for the policy under it, which is then changed in place.
        language: weight of the language model's own loss on the same tokens, which keeps a policy that is changed a
            model of language.

    Raises:
        UsageError: an option out of range, or ``language`` for a policy that does not learn.
    """

    labels: Literal["tokens", "outcome"] = "tokens"
    loss: Literal["mse", "bce"] = "mse"
    epochs: int = 20
    batch: int = 16
    lr: float = 0.03
    backbone_lr: float = 0.0
    language: float = 0.0

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch) < 1 or self.lr <= 0 or self.backbone_lr < 0:
            raise UsageError("a value model needs epochs and batch of at least 1, lr above 0, backbone_lr not below it")
        if self.language < 0 or (self.language and not self.backbone_lr):
            raise UsageError("a value model's language is a weight of 0 or more, and above 0 needs a backbone_lr")

    def fit(self, policy: Policy, groups: Sequence[Group], rng: np.random.Generator) -> ValueHead:
        """Return a head trained on the judged solutions of ``groups``, one problem each; abstentions are left out.

        Raises:
            UsageError: nothing was judged.
        """
        problems: list[tuple[list[Episode], list[np.ndarray]]] = []
        for group in groups:
            known = [
                (e, v.passed)
                for e, v in zip(group.episodes, group.verdicts, strict=True)
                if v.passed is not None and len(e.tokens)
            ]
            episodes, right = [e for e, _ in known], [p is True for _, p in known]
            if self.labels == "tokens":
                values = prefix_values([e.tokens for e in episodes], right)
            else:
                values = [np.full(len(e.tokens), float(r)) for e, r in zip(episodes, right, strict=True)]
            if episodes:
                problems.append((episodes, values))
        if not problems:
            raise UsageError("a value model has nothing to learn from: no solution was judged")
        head = ValueHead(width(policy)).to(next(policy.module.parameters()).device)
        sets = [{"params": list(head.parameters()), "lr": self.lr}]
        if self.backbone_lr:
            sets.append({"params": [p for p in policy.module.parameters() if p.requires_grad], "lr": self.backbone_lr})
        optimizer = torch.optim.AdamW(sets, weight_decay=0.0)
        kept = None if self.backbone_lr else [self._states(policy, episodes) for episodes, _ in problems]

        def pieces(chosen: list[int]) -> list[torch.Tensor]:
            hidden = torch.cat([self._states(policy, problems[i][0]) if kept is None else kept[i] for i in chosen])
            labels = torch.from_numpy(np.concatenate([v for i in chosen for v in problems[i][1]])).to(hidden)
            found = head(hidden)
            if self.loss == "mse":
                loss = (found - labels).square().mean()
            else:
                loss = torch.nn.functional.binary_cross_entropy(found, labels)
            if self.language:
                loss = loss + self.language * surprise(policy, [e for i in chosen for e in problems[i][0]])
            return [loss]

        descend(range(len(problems)), pieces, optimizer, self.epochs, self.batch, rng)
        return head

    def _states(self, policy: Policy, episodes: Sequence[Episode]) -> torch.Tensor:
        with torch.set_grad_enabled(self.backbone_lr > 0):
            return torch.cat(states(policy, episodes))
