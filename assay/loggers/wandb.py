"""Weights & Biases, https://docs.wandb.ai."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from assay.loggers.base import About, library
from assay.registry import part


@part("logger", "wandb")
class WandB:
    """Weights & Biases: curves by the steps of their stage, rollouts as tables, the configuration.

    Args:
        project: what runs that belong together share; the environment's WANDB_PROJECT, or else assay.
        mode: online sends as the run goes on; offline writes into the run's folder, for `wandb sync` later; none leaves
            it to WANDB_MODE, or else online.
        name: of the run; that of its folder if left out.
        rows: responses of a step in its table; 0 for no tables.
        tags: of the run.
    """

    def __init__(
        self,
        project: str | None = None,
        mode: Literal["online", "offline"] | None = None,
        name: str | None = None,
        rows: int = 16,
        tags: Sequence[str] = (),
    ):
        self.wandb = library("wandb", "wandb")
        self.project, self.mode, self.name, self.rows, self.tags = project, mode, name, rows, tuple(tags)

    def start(self, about: About) -> None:
        folder = about.folder / "wandb"
        folder.mkdir(parents=True, exist_ok=True)
        self._run = self.wandb.init(
            project=self.project or os.environ.get("WANDB_PROJECT") or about.project,
            name=self.name or about.name,
            id=about.id,
            resume="allow",
            mode=self.mode or os.environ.get("WANDB_MODE") or "online",
            config=dict(about.config),
            dir=str(folder),
            tags=self.tags,
            settings=self.wandb.Settings(silent=True, console="off"),
        )
        # Each stage counts its own steps, while a run of W&B has one counter that only goes up.
        for stage in ("warmup", "rl", "eval"):
            self._run.define_metric(f"{stage}/step", hidden=True)
            self._run.define_metric(f"{stage}/*", step_metric=f"{stage}/step")

    def metrics(self, stage: str, step: int, values: Mapping[str, float]) -> None:
        self._run.log({f"{stage}/step": step, **{f"{stage}/{k}": v for k, v in values.items()}})

    def table(self, name: str, step: int, rows: Sequence[Mapping[str, Any]]) -> None:
        columns = list(rows[0])
        table = self.wandb.Table(columns=columns, data=[[row[c] for c in columns] for row in rows])
        self._run.log({f"rl/{name}": table, "rl/step": step})

    def close(self) -> None:
        self._run.finish()
