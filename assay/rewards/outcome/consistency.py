"""Accuracy, form, and whether a thought leads to the same right option when the options stand in another order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from assay.batch import Batch, Reward
from assay.errors import RunError, UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.rollout.reread.reordered import REORDERED, Second
from assay.types import Task
from assay.verify.answer.options import listed

FORM = r"\s*<think>.*?</think>\s*<answer>.*?</answer>\s*"


@part("reward", "consistency")
@dataclass(frozen=True, slots=True)
class Consistency:
    """R_i = [right] + ``form`` [a thought, then the answer] + alpha

    with alpha = ``both`` where the answer and the one among reordered options are right, ``first`` or ``second`` where
    only that one is, else 0; rollout :class:`~assay.rollout.reread.reordered.Reordered` has the second. A response
    whose second answer could not be judged has no reward.

    Args:
        both, first, second: see above; at least 0, ``both`` the largest.
        form: weight of the form.

    Raises:
        UsageError: values that are not in this order; before a run, a task that is no question with options.
        RunError: a batch from another rollout.

    Source: ACRE (arXiv 2510.10104), which has these four cases; its values were not at hand.
    """

    both: float = 0.3
    first: float = 0.1
    second: float = 0.1
    form: float = 1.0

    def __post_init__(self) -> None:
        if min(self.first, self.second) < 0 or self.both <= max(self.first, self.second):
            raise UsageError(
                f"reward 'consistency': both {self.both:g} must be above first {self.first:g} and second "
                f"{self.second:g}, and these at least 0"
            )

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            if task.kind != "choice" or len(listed(task.question)) < 2:
                raise UsageError(
                    f"reward 'consistency': task {task.id} is no question of kind 'choice' that lists its options, as "
                    "lines such as 'A. red'; take other tasks"
                )

    def __call__(self, batch: Batch) -> Reward:
        seconds: list[Second] = []
        for i, episode in enumerate(batch.episodes):
            if REORDERED not in episode.meta:
                raise RunError(f"reward 'consistency': row {i} has no second answer; take rollout 'reordered'")
            seconds.append(episode.meta[REORDERED])
        rights = [v.passed is True for v in batch.verdicts]
        alphas = [self.alpha(right, bool(s.passed)) for right, s in zip(rights, seconds, strict=True)]
        formed = [re.fullmatch(FORM, e.text, re.DOTALL) is not None for e in batch.episodes]
        right, form, alpha = (torch.tensor(x, dtype=batch.rewards.dtype) for x in (rights, formed, alphas))
        known = torch.tensor([s.passed is not None for s in seconds], dtype=torch.bool)
        return Reward(
            right + self.form * form + alpha,
            valid=judged(batch) & known,
            terms={"right": right, "form": form, "consistency": alpha},
        )

    def alpha(self, right: bool, again: bool) -> float:
        """Return what two answers are worth together, of which the first and the second are right or not."""
        if right and again:
            return self.both
        return self.first if right else self.second if again else 0.0
