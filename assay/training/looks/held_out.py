"""What a policy makes of held-out responses that are on record: is it learning what it is shown?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.batch import Batch
from assay.config import RunConfig
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.recorded import Recorded
from assay.training.callbacks import Callback, Running
from assay.types import Ask


@part("callback", "held_out_records")
@dataclass
class HeldOutRecords(Callback):
    """Says now and then how held-out responses on record fare, and adds it to ``held_out.jsonl`` in the run's folder.

    ``loss`` is the mean of -log pi over the tokens of the responses that are best for their prompt; ``preferred`` the
    share of pairs of a prompt whose better response has gained more log-probability, relative to the weights that the
    run (or a resumed one) began with, than the worse; ties are halves.

    Args:
        every: steps between looks; the last step has one anyway.
    """

    every: int = 10
    start: Any = field(default=None, init=False, repr=False)

    def check(self, config: RunConfig) -> None:
        if self.every < 1:
            raise UsageError(f"callback 'held_out_records': every {self.every} must be 1 or more")

    def on_start(self, run: Running) -> None:
        found = [task for task in run.held_out if task.meta.get("responses")]
        if not found:
            raise UsageError(
                "callback 'held_out_records': held-out tasks have no responses on record; use tasks 'recorded'"
            )
        rollout = Recorded(Sampling(run.config.rollout.max_tokens))
        asks = [Ask(task, len(task.meta["responses"])) for task in found]
        groups = rollout.collect(asks, run.models.engine, np.random.default_rng(0))
        self.batch = Batch.from_groups([group for group in groups if group.episodes])
        self.start = self._logprobs(run)
        self._look(run)

    def on_step(self, run: Running, metrics: Mapping[str, float]) -> None:
        if run.stage == "rl" and run.step % self.every == 0:
            self._look(run)

    def on_end(self, run: Running) -> None:
        if self.start is not None and run.step % self.every:
            self._look(run)

    def _look(self, run: Running) -> None:
        now = self._logprobs(run)
        rewards = np.array([verdict.score for verdict in self.batch.verdicts])
        group, lengths = self.batch.prompt_group.numpy(), self.batch.lengths.numpy()
        together = (group[:, None] == group[None]) & (rewards[:, None] > rewards[None])
        best = ~together.any(0)
        row: dict[str, Any] = {"step": run.step, "loss": float(-now[best].sum() / lengths[best].sum())}
        if together.any():
            better, worse = together.nonzero()
            gained = now - self.start
            ahead = gained[better] - gained[worse]
            row["preferred"] = float((ahead > 0).mean() + (ahead == 0).mean() / 2)
        with (run.folder / "held_out.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        run.say("held-out records: " + "  ".join(f"{k} {v:.4g}" for k, v in row.items()))

    def _logprobs(self, run: Running) -> np.ndarray:
        """Return the log-probability ``(N,)`` of each response."""
        found = run.models.quantities(self.batch, {"logprobs"})["logprobs"]
        return np.asarray((found * self.batch.mask).sum(-1).double())
