"""A nano language model writes stack programs that hidden tests judge; few pass every test at first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from assay.lab.settings.language._nano import run_arm


@dataclass(frozen=True, slots=True)
class Setting:
    """Piecewise functions in, programs out: task source and verifier ``stack``.

    The supervised warm start imitates right programs until a held-out pass@1 of ``start``; RL begins there. ``after``,
    the held-out pass@1 at the end, is what arms are compared by. Learning rate and start were chosen from runs of the
    pass/fail arm alone, on seed 1000 with 80 steps, so that it improves.

    Args:
        cases, depth, tests: of the tasks, see :class:`assay.tasks.stack.Stack`.
        start: held-out pass@1 at which the warm start ends.
        warmup: its supervised steps of 64 solutions, at most.
        steps: RL steps.
        prompts, group: tasks per step and responses per task.
        lr: of RL; the same for every arm.
        hidden, layers: of the nano model.
    """

    cases: int = 3
    depth: int = 2
    tests: int = 10
    start: float = 0.15
    warmup: int = 400
    steps: int = 60
    prompts: int = 16
    group: int = 16
    lr: float = 1e-4
    hidden: int = 64
    layers: int = 2

    def describe(self) -> dict[str, Any]:
        return {**asdict(self), "recipe": self.recipe()}

    def recipe(self) -> dict[str, Any]:
        """Return the sections of a run."""
        source = {"name": "stack", "cases": self.cases, "depth": self.depth, "tests": self.tests}
        nano = {
            "hidden": self.hidden,
            "layers": self.layers,
            "heads": 4,
            "context": 160,
            "alphabet": "0123456789xy+-*mM<?:;()>",
        }
        return {
            "model": {"source": "nano", "nano": nano},
            "tasks": {"source": source, "eval_size": 200},
            "warmup": {"steps": self.warmup, "target": self.start, "every": 10, "batch": 64, "lr": 3e-3},
            "rollout": {"prompts": self.prompts, "group": self.group, "max_tokens": 64},
            "train": {"steps": self.steps, "lr": self.lr, "ramp": 5},
            "evaluate": {"samples": 4},
        }

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        return run_arm(self.recipe(), arm, seed, folder)
