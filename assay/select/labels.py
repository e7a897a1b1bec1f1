"""Labels of visited states, learned from again and again: those of all steps are kept together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.turns.labelling import LABEL, label_of
from assay.types import Ask, Group, Task, Verdict


@part("select", "labels")
@dataclass(slots=True)
class Labels:
    """Weight 1 for labels and 0 for what was played, or the other way round; labels of earlier steps are replayed.

    With ``weigh = "labels"`` a step learns from its own labels, and then from ``replayed`` others, drawn from those of
    all steps before. With ``"played"`` it learns from what was played, and then from ``replayed`` labels, drawn from
    those of all steps so far.

    Args:
        weigh: see above.
        aggregate: replay labels of all steps (``union``), or of no other (``latest``).
        replayed: labels in a replay, at most.
        solved: keep only labels of episodes that end right.

    Raises:
        UsageError: ``replayed`` below 0.
    """

    weigh: Literal["labels", "played"] = "labels"
    aggregate: Literal["union", "latest"] = "union"
    replayed: int = 256
    solved: bool = False
    known: list[tuple[list[int], list[int]]] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.replayed < 0:
            raise UsageError(f"select 'labels': replayed {self.replayed} must be at least 0")

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        labels = [bool(e.meta.get(LABEL)) for e in batch.episodes]
        if self.weigh == "played":
            return torch.tensor([not label for label in labels]).to(batch.rewards)
        right = [not self.solved or v.passed is True for v in batch.verdicts]
        return torch.tensor([label and good for label, good in zip(labels, right, strict=True)]).to(batch.rewards)

    def replay(self, batch: Batch, rng: np.random.Generator) -> list[Batch]:
        """Return a batch of labels, and remember those that are new."""
        if self.aggregate == "latest" and self.weigh == "labels":
            return []
        new = [
            (e.prompt.tolist(), e.tokens.tolist())
            for e, v in zip(batch.episodes, batch.verdicts, strict=True)
            if e.meta.get(LABEL) and (not self.solved or v.passed is True)
        ]
        old = new if self.aggregate == "latest" else self.known + new * (self.weigh == "played")
        drawn = [old[i] for i in rng.permutation(len(old))[: self.replayed].tolist()]
        self.known += new
        return [relabelled(drawn, batch)] if drawn else []

    def state_dict(self) -> dict[str, Any]:
        return {"known": list(self.known)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.known = [(p, t) for p, t in state["known"]]


def relabelled(labels: Sequence[tuple[list[int], list[int]]], like: Batch) -> Batch:
    """Return a batch of labels, each a prompt and a response, of weight 1."""
    groups = []
    for i, (prompt, tokens) in enumerate(labels):
        one = label_of(np.array(prompt, dtype=np.int64), np.array(tokens, dtype=np.int64))
        groups.append(Group(Ask(Task(f"label-{i}", ""), 1), (one,), (Verdict.right(),)))
    return Batch.from_groups(groups, like.rewards.dtype)
