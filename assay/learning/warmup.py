"""Demonstrations for the supervised warm-up: tasks with their worked solutions, or played by a plan, as a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.batch import Batch
from assay.engines.speaking import Speaking
from assay.errors import UsageError
from assay.policies.causal_lm import CausalLM
from assay.types import Ask, Episode, Group, Task


def demonstrations(tasks: Sequence[Task], policy: CausalLM, rollout: Any = None) -> Batch:
    """Return one sample per task whose response is the task's solution, every token learnable.

    A task without one is demonstrated by the rollout, if it can: of several turns, those of the plan are learnable.

    Raises:
        UsageError: a task has no solution, or does not fit the model's context.
    """
    groups = []
    for task in tasks:
        if task.solution is not None:
            episode = _solved(task, task.solution, policy)
        elif hasattr(rollout, "demonstrate"):
            episode = rollout.demonstrate(task, _Speaker(policy))
        else:
            raise UsageError(
                f"the warm-up needs worked solutions and task {task.id} has none; name their field, "
                "tasks.source.solution=FIELD or, for answers alone, tasks.source.reference=FIELD, or set warmup.steps=0"
            )
        if len(episode.prompt) + len(episode.tokens) > policy.context:
            raise UsageError(
                f"task {task.id} with its solution takes {len(episode.prompt) + len(episode.tokens)} tokens; the "
                f"model's context is {policy.context}"
            )
        groups.append(Group(Ask(task, 1), (episode,)))
    batch = Batch.from_groups(groups)
    batch.totals = batch.count()
    return batch


def _solved(task: Task, solution: str, policy: CausalLM) -> Episode:
    response = policy.encode_response(solution)
    return Episode(
        prompt=policy.encode(task.prompt),
        tokens=response,
        mask=np.ones(len(response), dtype=bool),
        logprobs=None,
        text=solution,
        stop="eos",
    )


@dataclass(frozen=True, slots=True)
class _Speaker(Speaking):
    """Text and tokens of a policy, for a rollout that has something to say and nothing to generate."""

    policy: CausalLM
