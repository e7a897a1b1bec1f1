"""Each task in the easiest of its variants that is not yet learned, up to the task itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from assay.curriculum.base import Stream
from assay.errors import UsageError
from assay.registry import part
from assay.types import Ask, Group, Task

ITSELF = "open_ended"
"""The name of the last variant: the task as it is."""


@part("curriculum", "variants")
@dataclass(slots=True)
class Variants:
    """A ladder of variants for each task; the next tasks of the stream, each on its own rung.

    ``task.meta["variants"]`` lists them, easiest first, each a table with ``variant``, its name, and what differs from
    the task: ``prompt``, ``reference``, ``kind``, and ``options`` of a choice. The task itself is the last rung. A rung
    that a task does not have is not there to be climbed.

        m = mean score of the task's responses in a step;   up one rung, and forget, iff mean(last W of m) > threshold

    A task never goes down. A step whose verdicts all abstain says nothing of it.

    Source: Cog-DRIFT (arXiv 2604.04767).

    Args:
        stream, prompts, group: supplied by the run.
        threshold: of the mean, which has to be above it, in [0, 1).
        window: W, the steps on a rung that count, or all of them while they are fewer.

    Raises:
        UsageError: an option out of range, or, in the first step, tasks of which none has a variant.
    """

    stream: Stream
    prompts: int
    group: int
    threshold: float = 0.5
    window: int = 1
    _rungs: dict[str, int] = field(default_factory=dict, init=False)
    _means: dict[str, list[float]] = field(default_factory=dict, init=False)
    _begun: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < 1 or self.window < 1:
            raise UsageError(
                f"curriculum 'variants': threshold {self.threshold} must be in [0, 1) and window {self.window} positive"
            )

    def check(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError where none of the tasks has variants; of none that are known nothing is said."""
        if tasks and not any(task.meta.get("variants") for task in tasks):
            raise UsageError(
                "curriculum 'variants': none of the first tasks has variants; make them with assay tasks make S042, "
                "and read the file with tasks.source.name=made"
            )

    def next(self, step: int) -> list[Ask]:
        tasks = self.stream.next(self.prompts)
        if not self._begun:
            self.check(tasks)
        self._begun = True
        return [Ask(self.now(task), self.group) for task in tasks]

    def now(self, task: Task) -> Task:
        """Return a task as it is asked now, of the same id; ``meta["variant"]`` says which variant it is."""
        ladder = task.meta.get("variants") or ()
        rung = self._rungs.get(task.id, 0)
        if rung >= len(ladder):
            return replace(task, meta={**task.meta, "variant": ITSELF, "rung": len(ladder)})
        return _as(task, ladder[rung], rung)

    def observe(self, groups: Sequence[Group]) -> None:
        """Move the tasks of a step up; of responses to a rung that was left meanwhile nothing is learned."""
        for group in groups:
            task, scores = group.task, [v.score for v in group.verdicts if v.passed is not None]
            rung = self._rungs.get(task.id, 0)
            if not scores or task.meta.get("variant", ITSELF) == ITSELF or task.meta["rung"] != rung:
                continue
            means = [*self._means.get(task.id, ()), sum(scores) / len(scores)][-self.window :]
            if sum(means) / len(means) > self.threshold:
                self._rungs[task.id], means = rung + 1, []
            self._means[task.id] = means

    def state_dict(self) -> dict[str, Any]:
        """Return the rung of each task that has left the first, and the means that count."""
        means = {id: list(m) for id, m in self._means.items()}
        return {"rungs": dict(self._rungs), "means": means, "begun": self._begun}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._rungs, self._begun = dict(state["rungs"]), bool(state.get("begun", True))
        self._means = {id: list(means) for id, means in state["means"].items()}


def _as(task: Task, variant: Mapping[str, Any], rung: int) -> Task:
    meta = {**task.meta, "variant": variant["variant"], "rung": rung}
    if "options" in variant:
        meta["options"] = variant["options"]
    return replace(
        task,
        prompt=variant["prompt"],
        reference=variant.get("reference", task.reference),
        kind=variant.get("kind", task.kind),
        meta=meta,
    )
