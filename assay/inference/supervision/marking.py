"""Labels of steps by a model that marks whole solutions, another one or the one that wrote them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.inference.supervision.completing import Search, Wanted
from assay.inference.supervision.prefixes import PrefixTree
from assay.rewards.process.first_error import FirstError
from assay.rewards.step_models.examples import StepExample, labels_of


@dataclass(frozen=True, slots=True)
class Sampled:
    """Samples whole responses and values nothing in between.

    Args:
        responses: to a task; equal ones are one.

    Raises:
        UsageError: fewer than one.
    """

    responses: int = 3

    def __post_init__(self) -> None:
        if self.responses < 1:
            raise UsageError("marks are of responses; sample at least 1")

    def __call__(self, tree: PrefixTree) -> Search:
        [sampled] = yield [Wanted(None, self.responses)]
        tree.rollouts += len(sampled)
        for found in sampled:
            tree.at(found.episode)


@dataclass(frozen=True, slots=True)
class Marks:
    """A judge names the first wrong step of each response in a tree; of the steps after it nothing is known.

    Args:
        judge: an engine, the specification of one, or a step index finder such as
            :class:`~assay.rewards.process.first_error.FirstError`; ``None`` for the model that wrote the responses.
        sampling: of its opinions, greedy if left out.

    Where a reply names no step, the response is left out.
    """

    judge: Any = None
    sampling: Sampling | None = None

    def __call__(self, tree: PrefixTree) -> list[StepExample]:
        rows = [tree.example(node.episode) for node in tree if node.episode is not None]
        rows = [row for row in rows if row.steps]
        found = self._finder(tree).find([(tree.task.question, row.steps) for row in rows]) if rows else []
        return [
            StepExample(row.task, row.steps, labels_of(mark.index, len(row.steps)), row.episode)
            for row, mark in zip(rows, found, strict=True)
            if mark.index is not None
        ]

    def _finder(self, tree: PrefixTree) -> Any:
        if hasattr(self.judge, "find"):
            return self.judge
        engine = tree.engine if self.judge is None else self.judge
        return FirstError(engine) if self.sampling is None else FirstError(engine, sampling=self.sampling)
