"""The tasks of an environment."""

from __future__ import annotations

from typing import Any

from assay.registry import build, part
from assay.tasks.base import TaskSource


@part("tasks", "environment")
def environment_tasks(environment: str | dict[str, Any]) -> TaskSource:
    """Return the tasks that an environment sets.

    Args:
        environment: its name, or a table with ``name`` and options; the rollout plays in the same one.
    """
    found: TaskSource = build("environment", environment).tasks()
    return found
