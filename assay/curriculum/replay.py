"""The run's tasks, and beside them general ones that the policy is not to unlearn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from assay.curriculum.base import Stream
from assay.errors import UsageError
from assay.registry import build, part
from assay.tasks.split import TrainStream
from assay.types import Ask, Group, Task


@part("curriculum", "replay")
@dataclass(slots=True)
class Replay:
    """In every step, the next tasks of the run's stream and a fixed share of tasks of another source.

    ``task.meta["source"]`` is ``general`` for the latter and, unless it says something already, ``target`` for the
    former. A sized general source is read in a random order, another in each round.

    Args:
        stream, prompts, group: supplied by the run; ``prompts`` are all the tasks of a step, ``group`` the responses to
            each.
        general: a task source, or the specification of one.
        share: of a step's tasks that are general, in (0, 1); rounded, and at least one of each kind.
        seed: of the order of the general tasks.

    Raises:
        UsageError: ``share`` out of range, fewer than two prompts, or an empty source.
    """

    stream: Stream
    prompts: int
    group: int
    general: Any
    share: float = 0.5
    seed: int = 0
    _general: TrainStream = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.share < 1 or self.prompts < 2:
            raise UsageError(
                f"curriculum 'replay': needs share in (0, 1) and 2 or more prompts, not {self.share:g} and "
                f"{self.prompts}"
            )
        source = build("tasks", self.general)
        if source.size == 0:
            raise UsageError("curriculum 'replay': the general source is empty")
        self._general = TrainStream(source, None, self.seed)

    def next(self, step: int) -> list[Ask]:
        count = min(max(round(self.share * self.prompts), 1), self.prompts - 1)
        target = [_labelled(t, t.meta.get("source", "target")) for t in self.stream.next(self.prompts - count)]
        general = [_labelled(t, "general") for t in self._general.next(count)]
        return [Ask(task, self.group) for task in (*target, *general)]

    def observe(self, groups: Sequence[Group]) -> None:
        """Nothing is learned from the groups."""

    def state_dict(self) -> dict[str, Any]:
        return {"general": self._general.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._general.load_state_dict(state["general"])


def _labelled(task: Task, label: str) -> Task:
    return replace(task, meta={**task.meta, "source": label})
