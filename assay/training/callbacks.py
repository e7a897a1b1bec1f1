"""Callbacks: code of one's own that is called as a run goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError
from assay.registry import part

if TYPE_CHECKING:
    from assay.batch import Batch
    from assay.config import RunConfig
    from assay.policies.base import Policy
    from assay.records.evaluation import Evaluation
    from assay.signals.base import Models
    from assay.types import Task


class Running:
    """What a callback sees of the run.

    Args:
        state: the :class:`assay.training.state.State`, which tells callbacks and so is not known here.

    Attributes:
        stopped: why it was asked to stop, or ``None``.
    """

    def __init__(self, state: Any):
        self._state = state
        self.stopped: str | None = None

    @property
    def folder(self) -> Path:
        return self._state.folder.path

    @property
    def config(self) -> RunConfig:
        return self._state.config

    @property
    def policy(self) -> Policy:
        """What learns; to be looked at, not changed."""
        return self._state.policy

    @property
    def models(self) -> Models:
        """What may be asked of the policy, and of the reference policy if the method keeps one."""
        return self._state.models

    @property
    def held_out(self) -> list[Task]:
        """The tasks that are measured and never trained on."""
        return self._state.eval_tasks

    @property
    def stage(self) -> str:
        """``warmup`` or ``rl``."""
        return self._state.stage

    @property
    def step(self) -> int:
        """Steps of the stage that are done."""
        return self._state.step

    def say(self, text: str) -> None:
        """Print a line."""
        self._state.reporter.line(text)

    def stop(self, reason: str) -> None:
        """End the run, or the stage that it is in, after this step, as if no step were left: what is held out is
        measured as at any end. A warm-up goes on to RL instead, which is as long as ever. ``reason`` is printed."""
        self.stopped = reason


class Callback:
    """Called as a run goes on, by its first process; override what is wanted.

    What it raises ends the run with a line that names it; what was stored stays. State of its own is not in
    checkpoints, and so not there after a resume.
    """

    def check(self, config: RunConfig) -> None:
        """Before anything expensive: raise :class:`assay.UsageError` for a configuration that does not suit."""

    def on_start(self, run: Running) -> None:
        """Before the first step, or the first after a resume."""

    def on_rollouts(self, run: Running, batch: Batch) -> None:
        """After an RL step with its valued batch: responses, verdicts, rewards, advantages; to be read only."""

    def on_step(self, run: Running, metrics: Mapping[str, float]) -> None:
        """After a step of either stage, with what ``metrics.jsonl`` has of it."""

    def on_evaluation(self, run: Running, evaluation: Evaluation) -> None:
        """After held-out tasks were measured; ``evaluation.label`` is ``before``, ``step-000025``, ``after``."""

    def on_checkpoint(self, run: Running, folder: Path) -> None:
        """After a checkpoint was stored."""

    def on_end(self, run: Running) -> None:
        """When the run ends, also by a failure or a signal."""


@part("callback", "early_stopping")
@dataclass
class EarlyStopping(Callback):
    """End RL when held-out pass@1 has not risen for some evaluations; they come every ``evaluate.every`` steps.

    Of a run in stages it ends the stage, and in the next one counts anew.

    Args:
        patience: evaluations without a rise, 1 or more.
        least: rise that counts.
    """

    patience: int = 3
    least: float = 0.0
    best: float = field(default=float("-inf"), init=False)
    without: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.patience < 1 or self.least < 0:
            raise UsageError(
                f"callback 'early_stopping': patience {self.patience}, least {self.least:g}: 1 or more, 0 or more"
            )

    def check(self, config: RunConfig) -> None:
        if config.evaluate.every == 0:
            raise UsageError("callback 'early_stopping' looks at evaluations during training: set evaluate.every")

    def on_evaluation(self, run: Running, evaluation: Any) -> None:
        found = evaluation.pass_interval(1)
        if found is not None and found.value > self.best + self.least:
            self.best, self.without = found.value, 0
        elif evaluation.label.startswith("after"):  # there is nothing left to end
            self.without = 0
        elif found is not None:
            self.without += 1
            if self.without >= self.patience:
                run.stop(f"held-out pass@1 has not risen above {self.best:.3f} for {self.without} evaluations")
