"""The best weights of a stage, by its evaluations: what the next stage goes on from, or what the run leaves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from assay.errors import RunError
from assay.records.checkpoints import checkpoints, place
from assay.records.evaluation import Evaluation
from assay.records.files import damage
from assay.records.run_folder import RunFolder


def best_of(found: Iterable[Evaluation], metric: str, begun: int, upto: int) -> Evaluation | None:
    """Return the highest evaluation by a metric after more than ``begun`` steps and at most ``upto``.

    Of equals it is the first. Of one step the one with most samples counts. ``None`` where nothing could be judged.
    """
    by_step: dict[int, Evaluation] = {}
    for each in found:
        known = by_step.get(each.step)
        if begun < each.step <= upto and (known is None or len(each.samples) > len(known.samples)):
            by_step[each.step] = each
    values = {step: each.metrics().get(metric, math.nan) for step, each in sorted(by_step.items())}
    told = {step: value for step, value in values.items() if math.isfinite(value)}
    return by_step[max(told, key=lambda step: told[step])] if told else None


class Best:
    """Keeps the weights of a stage's best evaluation in ``best/rl-000025`` of the run's folder.

    Which they are follows from the evaluations that are stored, so that a resumed run finds what the uninterrupted one
    would have. Weights that a checkpoint would fall back on are kept too.

    Args:
        folder: of the run.
        metric: of :meth:`~assay.records.evaluation.Evaluation.metrics`.
        begun: steps before the stage.
    """

    def __init__(self, folder: RunFolder, metric: str, begun: int):
        self.folder, self.metric, self.begun = folder, metric, begun

    def at(self, step: int) -> Path:
        """Where the weights after ``step`` steps are."""
        return self.folder.best(step)

    def told(self, found: Evaluation) -> str:
        """Return the metric and its value in an evaluation."""
        return f"{self.metric} {found.metrics()[self.metric]:.3f}"

    def upto(self, step: int) -> Evaluation | None:
        """The stage's best evaluation in its steps up to ``step``."""
        return best_of(self.folder.evaluations(), self.metric, self.begun, step)

    def keep(self, step: int, save: Callable[[Path], Any]) -> None:
        """After an evaluation at ``step``: store the weights if it is the best so far, and remove what was before."""
        now = self.upto(step)
        if now is None:
            return
        if now.step == step:
            self.folder.save_best(step, lambda folder: save(folder / "policy"))
        numbers = {place(path)[1] for path in checkpoints(self.folder.path)}
        fallen_back_on = {found.step for n in numbers if (found := self.upto(min(n, step))) is not None}
        earlier_stages = range(self.begun + 1)
        self.folder.forget_best({now.step, *fallen_back_on, *earlier_stages})

    def take(self, step: int, load: Callable[[Path], Any]) -> Evaluation | None:
        """At the stage's end, after ``step`` steps: load its best weights, unless they are those that are there.

        Returns:
            Their evaluation; ``None`` where nothing could be judged, and the stage's last weights stay.

        Raises:
            RunError: they are not there as they were written.
        """
        found = self.upto(step)
        if found is not None and found.step < step:
            where = self.at(found.step)
            if wrong := damage(where):
                raise RunError(
                    f"the stage's best weights in {where}: it {wrong}; put them back, or start again in another run.dir"
                )
            load(where / "policy")
        return found
