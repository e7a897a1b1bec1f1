"""The tasks of an environment."""

from __future__ import annotations

from typing import Any

from assay.errors import UsageError
from assay.registry import build, part
from assay.tasks.base import TaskSource


@part("tasks", "environment")
def environment_tasks(environment: str | dict[str, Any], steps: bool = False) -> TaskSource:
    """Return the tasks that an environment sets.

    Args:
        environment: its name, or a table with ``name`` and options; the rollout plays in the same one.
        steps: set single steps of its plans, of one turn each, where it has such tasks (``screens``).

    Raises:
        UsageError: it has no single steps.
    """
    made = build("environment", environment)
    if steps and not hasattr(made, "steps"):
        raise UsageError(f"tasks 'environment': {environment!r} has no single steps to set; leave out steps")
    found: TaskSource = made.steps() if steps else made.tasks()
    return found
