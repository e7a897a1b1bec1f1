"""A critic that says where a solution first goes wrong: what it is asked, how it is read, and what its answer earns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from assay.batch import Batch, Reward
from assay.errors import RunError, UsageError
from assay.registry import part
from assay.types import Task
from assay.verify.answer.extract import extract

NO_ERROR = -1
"""The index a critic gives if no step is wrong."""

TEMPLATE = """Below are a problem, its reference answer, and a solution whose steps are numbered from 0.

Problem:
{problem}

Reference answer:
{reference}

Solution:
{steps}

Go through the solution step by step. Give the number of the earliest step that contains an error, or -1 if no step \
does. Reason first, then put the number, and nothing else, in \\boxed{}."""


def steps_of(text: str) -> list[str]:
    """Return the steps of a solution: its paragraphs, which blank lines separate; none for a blank text."""
    return [step.strip() for step in re.split(r"\n[ \t]*(?:\n[ \t]*)+", text.strip()) if step.strip()]


def question(problem: str, reference: object, steps: Sequence[str], template: str = TEMPLATE) -> str:
    """Return what a critic is asked of a solution."""
    shown = "\n".join(f"<step {i}>\n{step}\n</step {i}>" for i, step in enumerate(steps))
    parts = {"problem": problem, "reference": str(reference), "steps": shown}
    # One pass, so that braces in a solution are text.
    return re.sub(r"\{(problem|reference|steps)\}", lambda m: parts[m[1]], template)


def index_of(reply: str) -> int | None:
    r"""Return the whole number in the last ``\boxed{}`` of a critic's reply; ``None`` if there is none."""
    boxed = extract(reply, ("boxed",), "none")
    return int(boxed) if boxed is not None and re.fullmatch(r"[+-]?[0-9]{1,9}", boxed) else None


def critic_task(id: str, problem: str, reference: object, solution: str | Sequence[str], error: int) -> Task:
    """Return the task of finding the first error of a solution, for training a critic.

    Args:
        id: of the task.
        problem, reference: what was to be solved.
        solution: its text, or its steps.
        error: index of the earliest wrong step, or -1 if none is wrong.

    Raises:
        UsageError: there is no such step.
    """
    steps = steps_of(solution) if isinstance(solution, str) else list(solution)
    if not NO_ERROR <= error < len(steps):
        raise UsageError(f"task {id}: its first error is at step {error}, but the solution has {len(steps)} steps")
    meta = {"steps": len(steps)}
    return Task(id, question(problem, reference, steps), str(error), "exact", f"\\boxed{{{error}}}", meta=meta)


def located(said: int | None, truth: int, steps: int) -> float:
    """Return what a critic's answer earns, in [-1, 1].

    -1 if it cannot be read, names no step, or is wrong about whether there is an error; else
    1 - |said - truth| / steps, which is 1 where both say that there is none.

    Source: FAPO (arXiv 2510.22543), the step-level reward of its generative reward model.

    Args:
        said: index of the step, -1 for no error, ``None`` for an answer that cannot be read.
        truth: index, or -1.
        steps: of the solution.
    """
    if said is None or not NO_ERROR <= said < steps or (said == NO_ERROR) != (truth == NO_ERROR):
        return -1.0
    return 1.0 - abs(said - truth) / steps


@part("reward", "error_step")
@dataclass(frozen=True, slots=True)
class ErrorStep:
    """What a critic earns for locating the first error, see :func:`located`, on tasks made by :func:`critic_task`.

    Tasks of other kinds, which say no number of steps, have the verdict's score as reward. A sample whose verifier
    abstained has none.

    Raises:
        RunError: a task says its number of steps, but its reference is not an index.
    """

    def __call__(self, batch: Batch) -> Reward:
        valid = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        values = [
            verdict.score if "steps" not in task.meta else self.reward(task, episode.text)
            for task, episode, verdict in zip(batch.tasks, batch.episodes, batch.verdicts, strict=True)
        ]
        located_ = torch.tensor(values, dtype=batch.rewards.dtype)
        return Reward(located_, valid=valid, terms={"located": located_})

    def reward(self, task: Task, response: str) -> float:
        """Return what one response earns."""
        try:
            return located(index_of(response), int(task.reference), int(task.meta["steps"]))
        except (TypeError, ValueError):
            raise RunError(
                f"reward 'error_step': task {task.id} has reference {task.reference!r}; it must be the index of the "
                "first wrong step, or -1"
            ) from None
