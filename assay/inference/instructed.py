"""What a run has found to be the best instruction, with every question."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.inference.base import Answer, Budget
from assay.inference.named import make_strategy
from assay.records.checkpoints import last_checkpoint
from assay.registry import part
from assay.rollout.single_turn import with_instruction
from assay.types import Task


@part("inference", "instructed")
@dataclass(frozen=True, slots=True)
class Instructed:
    """Any other strategy, under an instruction: the one that a run's curriculum ``instructions`` holds worth most.

    Source: INSPO (arXiv 2512.01945), see :class:`assay.curriculum.instructions.Instructions`.

    Args:
        run: folder of the run; or give ``instruction``.
        instruction: a text.
        inner: a strategy, by name or as a table.
        sampling: how tokens are drawn.

    Raises:
        UsageError: neither or both are given, or a run without instructions.
    """

    run: str = ""
    instruction: str = ""
    inner: Any = "sample"
    sampling: Sampling = field(default_factory=Sampling)

    def __post_init__(self) -> None:
        if bool(self.run) == bool(self.instruction):
            raise UsageError("inference 'instructed' needs the folder of a run, or an instruction")
        if self.run:
            object.__setattr__(self, "instruction", best_instruction(Path(self.run)))
        object.__setattr__(self, "inner", make_strategy(self.inner, sampling=self.sampling))

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        shown = [replace(task, prompt=with_instruction(task.prompt, self.instruction)) for task in tasks]
        found: list[Answer] = self.inner(shown, engine, budget, rng)
        return found


def best_instruction(run: Path) -> str:
    """Return the instruction worth most in a run's last checkpoint; of equal ones the oldest.

    Raises:
        UsageError: it has none.
    """
    state = torch.load(last_checkpoint(run)[2] / "trainer.pt", weights_only=True)["curriculum"]
    if not state.get("instructions"):
        raise UsageError(f"{run} keeps no instructions; its curriculum is not 'instructions'")
    text: str = max(state["instructions"], key=lambda row: row[2])[1]
    return text
