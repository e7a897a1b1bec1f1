"""Questions that another policy has set, when it is the run's policy's turn to learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.curriculum.base import Stream
from assay.errors import UsageError
from assay.registry import part
from assay.tasks.pictures.challenges import Challenges, read, written
from assay.types import Ask, Group, Task, pictures


@part("curriculum", "challenged")
@dataclass(slots=True)
class Challenged:
    """In the challenger's steps the run's own tasks, whose pictures are edited; else its questions, the hardest first.

    When its turn is over, the ``prompts * steps`` most difficult of its questions are taken, and asked in turn until it
    has its turn again. Where it has set none, the run's own tasks are asked.

    Args:
        stream, prompts, group: supplied by the run.
        bank: of questions; supplied by the method.
        challengers: whether a step, from 0, is the challenger's; supplied by the method.
        steps: of the run's policy between the challenger's turns.

    Raises:
        UsageError: before a run, a task without a picture.
    """

    stream: Stream
    prompts: int
    group: int
    bank: Challenges = field(default_factory=Challenges)
    challengers: Callable[[int], bool] = lambda step: False
    steps: int = 10
    _left: list[Task] = field(default_factory=list, init=False)
    _turn: int = field(default=0, init=False)

    def check(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            if not pictures(task.prompt):
                raise UsageError(
                    f"curriculum 'challenged': task {task.id} has no picture to be edited; take tasks with pictures, "
                    "such as tasks.source=shapes"
                )

    def next(self, step: int) -> list[Ask]:
        if self.challengers(step):
            self._left = []
            return [Ask(task, self.group) for task in self.stream.next(self.prompts)]
        if not self._left:
            self._left, self._turn = self.bank.taken(self.prompts * self.steps), 0
        if not self._left:
            return [Ask(task, self.group) for task in self.stream.next(self.prompts)]
        asked = [self._left[(self._turn + i) % len(self._left)] for i in range(self.prompts)]
        self._turn += self.prompts
        return [Ask(task, self.group) for task in asked]

    def observe(self, groups: Sequence[Group]) -> None:
        """Nothing: how hard questions are was found when they were set."""

    def state_dict(self) -> dict[str, Any]:
        return {"bank": self.bank.state_dict(), "left": [written(task) for task in self._left], "turn": self._turn}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.bank.load_state_dict(state["bank"])
        self._left, self._turn = [read(task) for task in state["left"]], int(state["turn"])
