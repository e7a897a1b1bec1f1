"""Episodes beside which it is noted what should have been said in the states that they came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from assay.engines.base import Engine
from assay.errors import UsageError
from assay.rollout.turns.multi_turn import MultiTurn
from assay.rollout.turns.under_way import Live
from assay.types import Ask, Episode, Group, Origin, Verdict

LABEL = "label"
"""Key in an episode's ``meta`` of what should have been said in a state that was visited."""


def label_of(context: np.ndarray, tokens: np.ndarray, text: str = "") -> Episode:
    """Return the tokens as a teacher's response to all that came before."""
    origins = np.full(len(tokens), Origin.TEACHER, dtype=np.uint8)
    mask = np.ones(len(tokens), dtype=bool)
    return Episode(context, tokens, mask, None, text, "eos", origins=origins, meta={LABEL: True})


class Labelling(MultiTurn):
    """Plays as ``multi_turn``; what a subclass notes comes back as a group of labels after the groups that were asked,
    one for each task, derived from it. Evaluations have no labels.

    ``name`` is what errors and metrics call it.
    """

    name = "labelling"
    _labels: dict[str, list[Episode]] | None = None

    def note(self, live: Live, label: Episode) -> None:
        """Keep a label of the state that an episode is in."""
        assert self._labels is not None
        self._labels.setdefault(live.trajectory, []).append(label)

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        if getattr(engine, "divided", None) is not None:
            raise UsageError(f"rollout {self.name!r} keeps its labels in one process; set scale.trainers = 1")
        self._labels = {}
        try:
            groups = super().collect(asks, engine, rng)
            labels = [self._labelled(group) for group in groups]
        finally:
            self._labels = None
        self._metrics = {**self._metrics, f"{self.name}/labels": float(sum(len(g.episodes) for g in labels))}
        return [*groups, *(group for group in labels if group.episodes)]

    def _labelled(self, group: Group) -> Group:
        """Return the labels of a group's episodes; each has the verdict of the episode that it is from."""
        assert self._labels is not None
        made, verdicts = list[Episode](), list[Verdict]()
        for episode, verdict in zip(group.episodes, group.verdicts, strict=True):
            mine = self._labels.get(str(episode.trajectory), [])
            made += mine
            verdicts += [verdict if verdict.passed is not None else Verdict.wrong("lost")] * len(mine)
        task = replace(group.task, id=f"{group.task.id}/labels", parent=group.task.id)
        return Group(replace(group.ask, task=task, n=len(made)), tuple(made), tuple(verdicts))
