"""Tasks in the order of the stream, with how much of each one's solution was shown when it was asked last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.curriculum.base import Stream
from assay.registry import part
from assay.types import Ask, Group


@part("curriculum", "paced")
@dataclass(slots=True)
class PacedTasks:
    """The next ``prompts`` tasks of the stream, ``group`` responses to each; remembers for rollout ``paced`` the share
    of a task's solution that its latest round showed.

    Source: SEELE (arXiv 2509.06923), section 4.2.

    Args:
        stream, prompts, group: supplied by the run.
    """

    stream: Stream
    prompts: int
    group: int
    shown_shares: dict[str, float] = field(default_factory=dict, init=False, repr=False)
    """By task id, in [0, 1]."""

    def next(self, step: int) -> list[Ask]:
        return [Ask(task, self.group) for task in self.stream.next(self.prompts)]

    def observe(self, groups: Sequence[Group]) -> None:
        for group in groups:
            shown = [e.meta["share"] for e in group.episodes if "share" in e.meta]
            if shown:
                self.shown_shares[group.task.id] = float(shown[-1])

    def state_dict(self) -> dict[str, Any]:
        return {"shown_shares": dict(self.shown_shares)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.shown_shares = dict(state["shown_shares"])
