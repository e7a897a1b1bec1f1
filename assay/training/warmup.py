"""Demonstrations for the supervised warm-up: tasks with their worked solutions, as a batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assay.batch import Batch
from assay.errors import UsageError
from assay.policies.causal_lm import CausalLM
from assay.types import Ask, Episode, Group, Task


def demonstrations(tasks: Sequence[Task], policy: CausalLM) -> Batch:
    """Return one sample per task whose response is the task's solution, every token learnable.

    Raises:
        UsageError: a task has no solution, or does not fit the model's context.
    """
    groups = []
    for task in tasks:
        if task.solution is None:
            raise UsageError(f"the warm-up needs worked solutions and task {task.id} has none; set warmup.steps = 0")
        prompt, response = policy.encode(task.prompt), policy.encode_response(task.solution)
        if len(prompt) + len(response) > policy.context:
            raise UsageError(
                f"task {task.id} with its solution takes {len(prompt) + len(response)} tokens; the model's context is "
                f"{policy.context}"
            )
        episode = Episode(
            prompt=prompt,
            tokens=response,
            mask=np.ones(len(response), dtype=bool),
            logprobs=None,
            text=task.solution,
            stop="eos",
        )
        groups.append(Group(Ask(task, 1), (episode,)))
    batch = Batch.from_groups(groups)
    batch.totals = batch.count()
    return batch
