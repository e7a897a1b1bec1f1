"""A nano language model before and after RL, asked each held-out task as often as pass@k up to a large k needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.lab.settings.language._nano import train_from, warm_start


@dataclass(frozen=True, slots=True)
class Setting:
    """Sums of two numbers of up to ``digits`` digits, written digit by digit, by a model with one set of weights.

    The supervised warm start imitates right answers until a held-out pass@1 of ``start``; RL begins there and asks
    other sums than were shown. Held-out tasks are asked ``samples`` times by the model at the start and by the one at
    the end. An arm may give a table ``setting`` with ``steps`` of its own. Rate and steps were chosen from runs of GRPO
    alone, on seed 1000, so that pass@1 rises.

    Args:
        digits: of the numbers.
        start: held-out pass@1 at which the warm start ends.
        warmup: its supervised steps of 64 solutions, at most.
        steps: RL steps.
        prompts, group: tasks per step and responses per task.
        lr: of RL.
        tasks: held-out.
        samples: of each of them, 64 or more.
        hidden, layers: of the nano model.

    Raises:
        UsageError: fewer samples than pass@64 needs.
    """

    digits: int = 2
    start: float = 0.3
    warmup: int = 400
    steps: int = 300
    prompts: int = 16
    group: int = 8
    lr: float = 3e-4
    tasks: int = 100
    samples: int = 128
    hidden: int = 64
    layers: int = 2

    def __post_init__(self) -> None:
        if self.samples < 64:
            raise UsageError(f"setting 'boundary': {self.samples} samples of a task are fewer than pass@64 needs")

    def describe(self) -> dict[str, Any]:
        return {**asdict(self), "recipe": self.recipe(self.steps)}

    def recipe(self, steps: int) -> dict[str, Any]:
        """Return the sections of a run."""
        nano = {"hidden": self.hidden, "layers": self.layers, "heads": 4, "context": 48}
        source = {"name": "arithmetic", "operation": "addition", "digits": self.digits}
        return {
            "model": {"source": "nano", "nano": nano},
            "tasks": {"source": source, "eval_size": self.tasks},
            "warmup": {"steps": self.warmup, "target": self.start, "every": 10, "batch": 64, "lr": 3e-3},
            "rollout": {"prompts": self.prompts, "group": self.group, "max_tokens": 16},
            "train": {"steps": steps, "lr": self.lr, "ramp": 3},
            "evaluate": {"samples": self.samples},
        }

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return measures of the model at the end on held-out tasks, means over them.

        ``pass@k`` for k = 1, 2, 4, ... up to ``samples``; ``crossing``: the smallest k at which the model at the start
        catches up with the one at the end, 0 if at none up to ``samples``; ``crosses``: 1 if
        :func:`~assay.statistics.crossing.crossing` calls it that; ``rollouts``: how many RL sampled.
        """
        from assay.papers.multimodal_eval.s085_limit_of_rlvr import limit_of_rlvr
        from assay.records.evaluation import ladder

        method = {**arm}
        knobs = dict(method.pop("setting", {}))
        if set(knobs) - {"steps"}:
            raise UsageError("an arm may change the steps of its setting alone")
        steps = knobs.get("steps", self.steps)
        recipe = self.recipe(steps)
        result = train_from(warm_start(recipe, seed, folder), recipe, method, seed, folder / "run")
        assert result.before is not None and result.after is not None
        found = {}
        for k in ladder(self.samples):
            values = result.after.pass_at(k).values()
            found[f"pass@{k}"] = sum(values) / len(values)
        crossed = limit_of_rlvr(self.samples)(result.before, result.after)
        return {
            **found,
            "crossing": float(crossed.k or 0) if crossed.verdict == "crosses" else 0.0,
            "crosses": float(crossed.verdict == "crosses"),
            "rollouts": steps * self.prompts * self.group,
        }
