"""Hard problems together with easier ones that are the same: a part of the solution is in the prompt already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assay.curriculum.base import Stream
from assay.errors import UsageError
from assay.registry import part
from assay.rollout.templates import check_template, through_template
from assay.tasks.chunks import solution_chunks
from assay.types import Ask, Group, Task


@part("curriculum", "begun")
@dataclass(slots=True)
class Begun:
    """The next ``prompts`` tasks of the stream, each with as many chunks of its solution as chance has it.

    A solution is cut by :func:`~assay.tasks.chunks.solution_chunks`; n of the chunks, n drawn evenly from ``given`` for
    each task and step, are written into the prompt, and kept as ``task.meta["begun"]``. A task without a solution is
    asked as it is, and so is one for which n is 0; of a solution of fewer chunks all are given at most. Evaluation sees
    none of it.

    Source: the second stage of SPARKLE (arXiv 2506.04723), which trains on all prefixes of hard problems' solutions.

    Args:
        stream, prompts, group: supplied by the run.
        chunks: of a solution.
        given: numbers of chunks to give, from 0 to ``chunks``.
        cut: where else than at paragraphs and sentences solutions are cut, a regular expression.
        template: writes ``{begun}`` to the ``{question}``.
        seed: of the draws.

    Raises:
        UsageError: a number of chunks there cannot be, or a template without ``{begun}``.
    """

    stream: Stream
    prompts: int
    group: int
    chunks: int = 4
    given: tuple[int, ...] = (0, 1, 2, 3, 4)
    cut: str | None = None
    template: str = "{question}\n\n{begun}"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.chunks < 1 or not self.given or not all(0 <= n <= self.chunks for n in self.given):
            raise UsageError(
                f"curriculum 'begun': given holds numbers from 0 to chunks = {self.chunks}, not {list(self.given)}"
            )
        check_template(self.template, "begun", "curriculum 'begun'")

    def next(self, step: int) -> list[Ask]:
        drawn = np.random.default_rng([self.seed, step]).choice(self.given, self.prompts)
        return [
            Ask(self._begun(task, int(n)), self.group)
            for task, n in zip(self.stream.next(self.prompts), drawn, strict=True)
        ]

    def _begun(self, task: Task, n: int) -> Task:
        begun = "".join(solution_chunks(task.solution or "", self.chunks, self.cut)[:n])
        if not begun:
            return task
        prompt = through_template(task.prompt, self.template, begun=begun)
        return replace(task, prompt=prompt, meta={**task.meta, "begun": begun})

    def observe(self, groups: Sequence[Group]) -> None:
        """What was drawn does not depend on what came back."""

    def state_dict(self) -> dict[str, Any]:
        """Empty: draws go by the step, and the trainer keeps the stream's position."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to take back."""
