"""True rewards where a task is labelled, others where it is not."""

from __future__ import annotations

from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.errors import UsageError
from assay.registry import part
from assay.rewards.wrapped import Around, terms_of
from assay.types import Task


@part("reward", "by_label")
class ByLabel(Around):
    """R_i is the reward of one part for tasks with a label, and of another for tasks without.

    A task is labelled if its ``meta["labelled"]`` says so; without such an entry, if it has a reference.

    Args:
        labelled: the part for labelled tasks.
        unlabelled: for the others: the majority's answer as label, and none where two answers tie for it.

    Raises:
        UsageError: a part that puts rewards on tokens.
    """

    def __init__(self, labelled: Any = "verdict", unlabelled: Any = None):
        other = {"name": "majority", "ties": "none"} if unlabelled is None else unlabelled
        super().__init__({"labelled": labelled, "unlabelled": other})

    def __call__(self, batch: Batch) -> Reward:
        found = self.found(batch)
        if any(r.tokens is not None for r in found.values()):
            raise UsageError("reward 'by_label' takes rewards for responses, not for tokens")
        here = torch.tensor([is_labelled(task) for task in batch.tasks], dtype=torch.bool)
        every = torch.ones_like(batch.valid)
        one, other = (every if r.valid is None else r.valid for r in found.values())
        values = torch.where(here, found["labelled"].values, found["unlabelled"].values)
        return Reward(values, valid=torch.where(here, one, other), terms=terms_of(found))


def is_labelled(task: Task) -> bool:
    """Say whether a task's true answer may be read, see :class:`ByLabel`."""
    return bool(task.meta.get("labelled", task.reference is not None))
