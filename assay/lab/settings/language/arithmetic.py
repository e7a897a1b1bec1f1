"""A nano language model adds numbers: the smallest setting with a real model, its hidden states and its vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from assay.lab.settings.language._nano import run_arm


@dataclass(frozen=True, slots=True)
class Setting:
    """Sums of two numbers of up to ``digits`` digits, written digit by digit.

    The supervised warm start imitates right answers until a held-out pass@1 of ``start``; RL begins there. ``after``,
    the held-out pass@1 at the end, is what arms are compared by, or ``training``, the mean pass rate while training.

    Args:
        digits: of the numbers.
        start: held-out pass@1 at which the warm start ends.
        warmup: its supervised steps of 64 solutions, at most.
        steps: RL steps.
        prompts, group: tasks per step and responses per task.
        lr: of RL.
        epochs, mini_batches: passes over a step's batch, and optimiser steps per pass.
        hidden, layers: of the nano model.
    """

    digits: int = 2
    start: float = 0.3
    warmup: int = 400
    steps: int = 30
    prompts: int = 16
    group: int = 8
    lr: float = 3e-4
    epochs: int = 1
    mini_batches: int = 1
    hidden: int = 64
    layers: int = 2

    def describe(self) -> dict[str, Any]:
        return {**asdict(self), "recipe": self.recipe()}

    def recipe(self) -> dict[str, Any]:
        """Return the sections of a run."""
        nano = {"hidden": self.hidden, "layers": self.layers, "heads": 4, "context": 48}
        return {
            "model": {"source": "nano", "nano": nano},
            "tasks": {
                "source": {"name": "arithmetic", "operation": "addition", "digits": self.digits},
                "eval_size": 200,
            },
            "warmup": {"steps": self.warmup, "target": self.start, "every": 10, "batch": 64, "lr": 3e-3},
            "rollout": {"prompts": self.prompts, "group": self.group, "max_tokens": 16},
            "train": {
                "steps": self.steps,
                "lr": self.lr,
                "ramp": 3,
                "epochs": self.epochs,
                "mini_batches": self.mini_batches,
            },
            "evaluate": {"samples": 4},
        }

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        return run_arm(self.recipe(), arm, seed, folder)
