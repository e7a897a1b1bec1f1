"""What an opinion on where a solution first goes wrong earns: for the index, for its form, and for being brief."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from assay.batch import Batch, Reward
from assay.errors import RunError, UsageError
from assay.registry import part
from assay.rewards.judged import judged
from assay.types import Task
from assay.verify.answer.extract import extract
from assay.verify.step_index import whole_number


@part("reward", "step_index")
@dataclass(frozen=True, slots=True)
class StepIndexReward:
    """R_i = right 1[index] + form 1[readable] + brief 1[index = -1 is right] / (1 + words / 100).

    For tasks of kind ``step_index``. A sample whose verifier abstained has no reward.

    Source: the training of FlexiVe's quick mode, of Solve-Detect-Verify (arXiv 2505.11966); the weights are choices.

    Args:
        right: for the right index.
        form: for a whole number in the last box.
        brief: most that there is for a short opinion which rightly finds no error.

    Raises:
        UsageError: a negative weight.
        RunError: a task's reference is no index.
    """

    right: float = 1.0
    form: float = 0.1
    brief: float = 0.0

    def __post_init__(self) -> None:
        if min(self.right, self.form, self.brief) < 0:
            raise UsageError("reward 'step_index': right, form and brief must not be negative")

    def __call__(self, batch: Batch) -> Reward:
        valid, values = judged(batch), []
        for task, episode, known in zip(batch.tasks, batch.episodes, valid.tolist(), strict=True):
            values.append(index_reward(task, episode.text, self.right, self.form, self.brief) if known else 0.0)
        rewards = torch.tensor(values, dtype=batch.rewards.dtype)
        return Reward(rewards, valid=valid, terms={"step_index": rewards})


def index_reward(task: Task, response: str, right: float = 1.0, form: float = 0.1, brief: float = 0.0) -> float:
    """Return what one response earns, see :class:`StepIndexReward`.

    Raises:
        RunError: the task's reference is not an index.
    """
    truth = whole_number(str(task.reference))
    if truth is None:
        raise RunError(
            f"reward 'step_index': task {task.id} has reference {task.reference!r}; it must be the index of the first "
            "wrong step, or -1"
        )
    found = whole_number(extract(response, ("boxed",), "none") or "")
    if found is None:
        return 0.0
    hit = found == truth
    return form + right * hit + (brief / (1 + len(response.split()) / 100) if hit and truth == -1 else 0.0)
